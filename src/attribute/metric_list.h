// A run's metrics: each key once, and the last value that was given to it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <layertrace/profile.h>

namespace layertrace {

inline void put_metric(std::vector<MetricValue>& metrics, MetricValue metric) {
  const auto same = std::ranges::find_if(
      metrics, [&](const MetricValue& each) { return each.info.key == metric.info.key; });
  if (same == metrics.end()) {
    metrics.push_back(std::move(metric));
  } else {
    *same = std::move(metric);
  }
}

}  // namespace layertrace
