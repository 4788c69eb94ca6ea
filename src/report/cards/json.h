// A metric in JSON, which cards and runs have alike.
#pragma once

#include <optional>

#include <layertrace/profile.h>

#include "report/json_parts.h"

namespace layertrace::report {

Json metric_json(const MetricInfo& info, const std::optional<double>& value);

}  // namespace layertrace::report
