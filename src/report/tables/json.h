// A row of a table in JSON, which reports have inside other objects.
#pragma once

#include <cstddef>

#include <layertrace/report.h>

#include "report/json_parts.h"

namespace layertrace::tables {

// By the names of the columns; null where nothing is known.
report::Json row_json(const Table& table, std::size_t row);

}  // namespace layertrace::tables
