// What layers computed and are made of, and what the device can do, as JSON.
#pragma once

#include <layertrace/profile.h>

#include "report/json_parts.h"

namespace layertrace::report {

// What operators computed in a phase, what memory that took, and how fast it was.
void put_amounts(Json& out, const PhaseStats& stats);

// What is known of a layer without its figures: parameters and shapes.
void put_facts(Json& out, const Profile& profile, const Layer& layer);

// Null for 0, which stands for what is not known.
Json known(double value);

Json device_json(const DeviceInfo& device);
// Of the counted steps as a whole: what allocators told, and a forecast.
Json memory_json(const Profile& profile);
Json operator_json(const Operator& op);
Json uncounted_json(const Profile& profile, const Operator& op);

}  // namespace layertrace::report
