// What a tree can show of a layer, column by column, and the names of columns and sort keys on a
// command line.
#pragma once

#include <span>
#include <string>
#include <string_view>
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
  const DeviceInfo& device;  // what rates are held against
  bool events_only = false;  // the GPU's times are by CUDA events
  bool has_gpu = false;      // one was recorded
};

// Of all cells of a profile's report.
CellStyle cell_style(const Profile& profile, const Glyphs& glyphs);

// The columns to show: those that were asked for, or the default ones that have something to say.
std::vector<Column> chosen_columns(const TreeOptions& options, const Profile& profile);

TableColumn table_column(Column column);

// Its cells are texts about the layer, which the tree writes; those of the others are figures.
bool is_text(Column column);

std::span<const Column> every_column();

// Some layer has something to show in it.
bool has_any(Column column, const Profile& profile);

// It is a length of time, beside which other such stand.
bool is_time(Column column);

// There is nothing of it without a GPU, though operators are activities, too.
bool is_of_gpu(Column column);

// It is empty where operators were not counted.
bool is_counted(Column column);

std::string_view column_name(Column column);

Cell figure_cell(Column column, const Figures& figures, const CellStyle& style);

// The same for brackets: exact counts, times without their share; "" for nothing.
std::string bracket_text(Column column, const Figures& figures, const CellStyle& style);

// Of a column of times, in nanoseconds.
double time_of(Column column, const Figures& figures, const CellStyle& style);

// "12.3 ms  45.6 %", of one width for all usual times, so that such texts align.
std::string time_and_share(double ns, const CellStyle& style);

}  // namespace layertrace::report
