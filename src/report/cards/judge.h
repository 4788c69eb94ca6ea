// Two values of a metric: how much better or worse the second is, as the metric is compared.
#pragma once

#include <optional>

#include <layertrace/report.h>

namespace layertrace::cards {

bool is_low_better(const MetricInfo& info) noexcept;

struct Judgement {
  std::optional<double> score;  // a ratio or a difference; nothing where there is none
  Verdict verdict = Verdict::kUnknown;
};
// Of a metric that is not compared, less, more or the same.
Judgement judge(const MetricInfo& info, double before, double after) noexcept;

}  // namespace layertrace::cards
