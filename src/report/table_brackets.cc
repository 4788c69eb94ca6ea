// The same rows with what there is of each in brackets behind its name.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/table.h"
#include "report/text.h"

namespace layertrace::report {
namespace {

// "[Parameters=288, MACs=256]"; nothing where there is nothing.
std::string bracket(const Table& table, const TableRow& row) {
  const std::size_t count =
      row.note.text.empty() ? row.cells.size() : std::min(row.note_column, row.cells.size());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < count; ++i) {
    if (!row.cells[i].text.empty())
      parts.push_back(fmt::format("{}={}", table.columns[i].label, row.cells[i].text));
  }
  return parts.empty() ? "" : fmt::format(" [{}]", fmt::join(parts, ", "));
}

}  // namespace

std::string render_brackets(const Table& table, std::size_t width, bool color,
                            std::string_view ellipsis) {
  std::string out;
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    const TableRow& row = table.rows[i];
    std::string rest = bracket(table, row);
    if (!row.note.text.empty()) rest += "  " + row.note.text;
    if (width > 0) {
      const std::size_t used = display_width(row.branches) + display_width(row.name.text);
      rest = shorten_end(rest, width - std::min(width, used), ellipsis);
    }
    out += paint(row.branches, Tone::kDim, color) + paint(row.name.text, row.name.tone, color) +
           rest + '\n';
  }
  return out;
}

}  // namespace layertrace::report
