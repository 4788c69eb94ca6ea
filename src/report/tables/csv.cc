// As RFC 4180 has it: a heading, lines that end in CRLF, fields in quotes where they need it.
// Nothing is an empty field; a text that is empty is a pair of quotes.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include <layertrace/report.h>

#include "report/tables/values.h"

namespace layertrace {
namespace tables {
namespace {

std::string csv_field(std::string_view text) {
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string_view::npos &&
      text.front() != ' ' && text.back() != ' ')
    return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv_cell(const TableColumn& column, std::size_t row) {
  const TableValue& value = value_at(column, row);
  if (!has_value(column, row)) return {};
  switch (column.kind) {
    case ColumnKind::kText:
      return csv_field(text_of(value).value_or(""));
    case ColumnKind::kInteger:
      return fmt::format("{}", integer_of(value).value_or(0));
    case ColumnKind::kReal:
      return fmt::format("{}",
                         real_of(value).value_or(0));  // as many digits as bring the same back
    case ColumnKind::kBoolean:
      return boolean_of(value).value_or(false) ? "true" : "false";
  }
  return {};
}

}  // namespace
}  // namespace tables

std::string to_csv(const Table& table) {
  std::string out;
  const auto add_line = [&](const auto& field_of) {
    std::string_view separator;
    for (const TableColumn& column : table.columns) {
      out += separator;
      out += field_of(column);
      separator = ",";
    }
    out += "\r\n";
  };
  add_line([](const TableColumn& column) { return tables::csv_field(column.name); });
  for (std::size_t row = 0; row < table.rows(); ++row)
    add_line([row](const TableColumn& column) { return tables::csv_cell(column, row); });
  return out;
}

}  // namespace layertrace
