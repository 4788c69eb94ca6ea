// A tabular that needs no package, to stand in a document's table.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/tables/readable.h"

namespace layertrace {
namespace tables {
namespace {

// What means something else to LaTeX, and what its plain fonts lack.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kLatex{{
    {"\\", "\\textbackslash{}"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "\\textless{}"},
    {">", "\\textgreater{}"},
    {"|", "\\textbar{}"},
    {"&", "\\&"},
    {"%", "\\%"},
    {"$", "\\$"},
    {"#", "\\#"},
    {"_", "\\_"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"[", "{[}"},  // behind the end of a line it would be a length
    {"]", "{]}"},
    {"×", "$\\times$"},
    {"·", "$\\cdot$"},
    {"µ", "$\\mu$"},
    {"…", "\\ldots{}"},
}};

std::string escape_latex(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view from = text.substr(0, 1);
    std::string_view to = from;
    for (const auto& [special, escaped] : kLatex) {
      if (!text.starts_with(special)) continue;
      from = special;
      to = escaped;
      break;
    }
    out += to;
    text.remove_prefix(from.size());
  }
  return out;
}

}  // namespace
}  // namespace tables

std::string to_latex(const Table& table) {
  const std::vector<tables::ReadableColumn> columns = tables::readable(table);
  std::string out = "\\begin{tabular}{";
  for (const auto& column : columns) out += column.left ? 'l' : 'r';
  out += "}\n\\hline\n";
  const auto add_line = [&](const auto& text_of) {
    std::string_view separator;
    for (const auto& column : columns) {
      out += separator;
      out += tables::escape_latex(text_of(column));
      separator = " & ";
    }
    out += " \\\\\n";
  };
  add_line([](const auto& column) { return column.heading; });
  out += "\\hline\n";
  for (std::size_t row = 0; row < table.rows(); ++row)
    add_line([row](const auto& column) { return column.cells[row]; });
  out += "\\hline\n";
  for (const std::string& line : tables::note_lines(table)) {
    out += "\\multicolumn{" + std::to_string(columns.size()) + "}{l}{" +
           tables::escape_latex(line) + "} \\\\\n";
  }
  return out + "\\end{tabular}\n";
}

}  // namespace layertrace
