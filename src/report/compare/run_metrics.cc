#include "report/compare/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "report/cards/judge.h"
#include "report/cards/units.h"

namespace layertrace::comparison {
namespace {

const MetricValue* find(const Profile& run, const std::string& key) {
  const auto found = std::ranges::find_if(
      run.metrics, [&](const MetricValue& each) { return each.info.key == key; });
  return found == run.metrics.end() ? nullptr : &*found;
}

// Each once, in the order of the first run that has it.
std::vector<MetricInfo> infos_of(const std::vector<Profile>& runs) {
  std::vector<MetricInfo> infos;
  for (const Profile& run : runs) {
    for (const MetricValue& metric : run.metrics) {
      const auto has_key = [&](const MetricInfo& each) { return each.key == metric.info.key; };
      if (std::ranges::none_of(infos, has_key)) infos.push_back(metric.info);
    }
  }
  return infos;
}

}  // namespace

double relative(double before, double after) {
  if (before == after) return 0;
  if (before == 0) return std::copysign(HUGE_VAL, after);
  return (after - before) / std::abs(before);
}

void compare_metrics(const std::vector<Profile>& runs, Comparison& out) {
  bool is_any_compared = false;
  for (const MetricInfo& info : infos_of(runs)) {
    NotInAll missing{"metric", info.key, {}};
    ComparedRow row{.kind = "metric",
                    .name = cards::name_of(info),
                    .type = "",
                    .metric = info.key,
                    .unit = info.unit,
                    .runs = {},
                    .info = info};
    bool is_compared = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      ComparedFigure& side = row.runs.emplace_back();
      const MetricValue* metric = find(runs[i], info.key);
      if (metric == nullptr || !metric->value) continue;
      missing.runs.push_back(i);
      if (metric->info.unit != info.unit) {
        out.notes.push_back(fmt::format(R"({} of {} is in "{}", not in "{}": it is not compared)",
                                        row.name, out.names[i], metric->info.unit, info.unit));
        continue;
      }
      const double value = *metric->value;
      side = {.known = true, .value = value, .low = value, .high = value};
      if (i == 0 || !row.runs[0].known) continue;
      is_compared = true;
      side.change = relative(row.runs[0].value, value);
      side.verdict = cards::judge(info, row.runs[0].value, value).verdict;
    }
    if (missing.runs.size() != runs.size()) out.not_in_all.push_back(std::move(missing));
    if (is_compared) out.rows.push_back(std::move(row));
    is_any_compared |= is_compared;
  }
  if (is_any_compared) {
    out.notes.emplace_back(
        "a run has one value of each metric: how much they vary is not known, and any difference "
        "counts as better or worse");
  }
}

}  // namespace layertrace::comparison
