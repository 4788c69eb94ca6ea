// Metrics as rows, which cards and runs have alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::cards {

Table metrics_table(std::string name, const std::vector<MetricValue>& metrics);

// "high", "low", or "" where neither is.
std::string_view better_side(const MetricInfo& info) noexcept;

}  // namespace layertrace::cards
