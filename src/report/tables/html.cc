// A <table> for any page: notebooks, a dashboard, a report. Nothing of it but the alignment of
// figures is styled.
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/table.h"
#include "report/tables/readable.h"

namespace layertrace {
namespace tables {
namespace {

std::string html_cell(std::string_view tag, const ReadableColumn& column, std::string_view text) {
  std::string out = "<";
  out += tag;
  if (tag == "th") out += " scope=\"col\"";
  out += column.left ? " style=\"text-align:left\">" : " style=\"text-align:right\">";
  out += report::paint_html(text, report::Tone::kPlain);
  out += "</";
  out += tag;
  return out + ">";
}

}  // namespace
}  // namespace tables

std::string to_html(const Table& table) {
  const std::vector<tables::ReadableColumn> columns = tables::readable(table);
  std::string out = "<table class=\"layertrace\">\n";
  std::string caption;
  for (const std::string& line : tables::note_lines(table))
    caption += (caption.empty() ? "" : "<br>") + report::paint_html(line, report::Tone::kPlain);
  if (!caption.empty()) out += "<caption>" + caption + "</caption>\n";
  out += "<thead>\n<tr>";
  for (const auto& column : columns) out += tables::html_cell("th", column, column.heading);
  out += "</tr>\n</thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    out += "<tr>";
    for (const auto& column : columns) out += tables::html_cell("td", column, column.cells[row]);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

}  // namespace layertrace
