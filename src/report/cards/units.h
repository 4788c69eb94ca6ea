// What the values of metrics are shown in: a unit's multiples, and figures as people read them.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::cards {

// Those that the info brings, then those that are known of its unit. Never without the unit itself.
std::vector<MetricUnit> units_of(const MetricInfo& info);

// Of the row's largest figure, so that all are in one.
MetricUnit unit_of(const ComparedMetric& row);

// The key where it has no name.
const std::string& name_of(const MetricInfo& info) noexcept;

// "Model size (MiB)".
std::string heading_of(const MetricInfo& info, const MetricUnit& shown);

// "42.8014", "1,234.5", "376,830", "3.20e-05", "12" for what is whole.
std::string figure(double value);

}  // namespace layertrace::cards
