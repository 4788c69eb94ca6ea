// A table as people read it: the columns that say something, each in the one unit in which its
// largest figure is short, which the heading names; three significant digits.
#pragma once

#include <string>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::tables {

struct ReadableColumn {
  std::string heading;             // "forward host (ms)"
  bool left = false;               // text
  std::vector<std::string> cells;  // cleaned, not escaped; "" for nothing
};

std::vector<ReadableColumn> readable(const Table& table);

// What a reader must know, line by line; cleaned, not escaped.
std::vector<std::string> note_lines(const Table& table);

}  // namespace layertrace::tables
