// A table's columns, as Arrow's C data interface describes them.
#pragma once

#include <layertrace/report.h>

#include "report/tables/arrow_abi.h"

namespace layertrace::tables {

// Fills in `out`, which the caller releases.
void export_schema(const Table& table, ArrowSchema* out);

}  // namespace layertrace::tables
