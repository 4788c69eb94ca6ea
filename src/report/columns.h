// What a tree can show of a layer, column by column, and the names of columns and sort keys on a
// command line.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

#include "report/figures.h"
#include "report/table.h"
#include "report/text.h"

namespace layertrace::report {

// What all cells of a report have in common.
struct CellStyle {
  const Glyphs& glyphs;
  double step_ns;            // what shares are shares of; 0: no shares
  bool ops;                  // there are activities: operators, or what a GPU did
  bool events_only = false;  // the GPU's times are by CUDA events
};

// The columns to show: those that were asked for, or the default ones that have something to say.
std::vector<Column> chosen_columns(const TreeOptions& options, const Profile& profile);

TableColumn table_column(Column column);

// A cell of any column but the type's.
Cell figure_cell(Column column, const Figures& figures, const CellStyle& style);

// "12.3 ms  45.6 %", of one width for all usual times, so that such texts align.
std::string time_and_share(double ns, const CellStyle& style);

}  // namespace layertrace::report
