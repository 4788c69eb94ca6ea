#include "report/cards/judge.h"

#include <cmath>

namespace layertrace::cards {
namespace {

std::optional<double> ratio(double a, double b) noexcept {
  const double result = a / b;
  return b != 0 && std::isfinite(result) ? std::optional(result) : std::nullopt;
}

std::optional<double> score_of(MetricComparison comparison, double before, double after) noexcept {
  switch (comparison) {
    case MetricComparison::kRatio:
      return ratio(after, before);
    case MetricComparison::kReciprocal:
      return ratio(before, after);
    case MetricComparison::kDifference:
      return after - before;
    case MetricComparison::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool is_low_better(const MetricInfo& info) noexcept {
  if (info.better != Better::kAsCompared) return info.better == Better::kLow;
  return info.comparison == MetricComparison::kReciprocal;
}

Judgement judge(const MetricInfo& info, double before, double after) noexcept {
  if (!std::isfinite(before) || !std::isfinite(after)) return {};
  Judgement out{score_of(info.comparison, before, after), Verdict::kSame};
  if (before == after) return out;
  const bool has_side =
      info.comparison != MetricComparison::kNone || info.better != Better::kAsCompared;
  if (!has_side) {
    out.verdict = after > before ? Verdict::kMore : Verdict::kLess;
  } else {
    out.verdict = (after < before) == is_low_better(info) ? Verdict::kBetter : Verdict::kWorse;
  }
  return out;
}

}  // namespace layertrace::cards
