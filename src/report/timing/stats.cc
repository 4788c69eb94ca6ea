// What times come to.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <layertrace/timing.h>

#include "report/timing/columns.h"

namespace layertrace {
namespace {

using timing::kNsPerMs;

// Of sorted times; between the two nearest, in proportion.
double quantile_ms(const std::vector<std::uint64_t>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto at_below = static_cast<double>(sorted[below]);
  if (below + 1 >= sorted.size()) return at_below / kNsPerMs;
  const auto at_above = static_cast<double>(sorted[below + 1]);
  return (at_below + (at_above - at_below) * (place - static_cast<double>(below))) / kNsPerMs;
}

}  // namespace

TimeStats time_stats(std::vector<std::uint64_t> ns) {
  TimeStats stats;
  if (ns.empty()) return stats;
  std::ranges::sort(ns);
  const auto count = static_cast<double>(ns.size());
  double sum = 0;
  for (const std::uint64_t each : ns) sum += static_cast<double>(each);
  const double mean = sum / count;
  double squares = 0;
  for (const std::uint64_t each : ns) {
    const double from_mean = static_cast<double>(each) - mean;
    squares += from_mean * from_mean;
  }
  stats.count = ns.size();
  stats.mean_ms = mean / kNsPerMs;
  if (ns.size() > 1) stats.stdev_ms = std::sqrt(squares / (count - 1)) / kNsPerMs;
  stats.min_ms = static_cast<double>(ns.front()) / kNsPerMs;
  stats.p5_ms = quantile_ms(ns, 0.05);
  stats.p25_ms = quantile_ms(ns, 0.25);
  stats.median_ms = quantile_ms(ns, 0.5);
  stats.p75_ms = quantile_ms(ns, 0.75);
  stats.p90_ms = quantile_ms(ns, 0.9);
  stats.p95_ms = quantile_ms(ns, 0.95);
  stats.p99_ms = quantile_ms(ns, 0.99);
  stats.max_ms = static_cast<double>(ns.back()) / kNsPerMs;
  return stats;
}

std::optional<double> scope_overhead(const Benchmark& benchmark) {
  const double without = time_stats(benchmark.total_ns).median_ms;
  const double with = time_stats(benchmark.scoped_ns).median_ms;
  if (without <= 0 || with <= 0) return std::nullopt;
  return with / without - 1;
}

}  // namespace layertrace
