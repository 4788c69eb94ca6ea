// What a report's page shows, as JSON for its script. Its keys are between this unit and
// html/page.js: programs read layers_json().
#pragma once

#include <layertrace/report.h>

#include "report/json_parts.h"

namespace layertrace::report {

Json page_data(const Profile& profile, const ReportOptions& options);

}  // namespace layertrace::report
