// {"table": …, "columns": [{"name", "kind", "unit"}…], "rows": [{…}…]}: a row is an object, so that
// each reads alone.
#include <string>

#include <layertrace/report.h>

#include "report/tables/json.h"
#include "report/tables/values.h"

namespace layertrace {
namespace tables {
namespace {

report::Json cell_json(const TableColumn& column, std::size_t row) {
  const TableValue& value = value_at(column, row);
  if (!has_value(column, row)) return nullptr;
  switch (column.kind) {
    case ColumnKind::kText:
      return text_of(value).value_or("");
    case ColumnKind::kInteger:
      return integer_of(value).value_or(0);
    case ColumnKind::kReal:
      return report::number(real_of(value).value_or(0));
    case ColumnKind::kBoolean:
      return boolean_of(value).value_or(false);
  }
  return nullptr;
}

report::Json column_json(const TableColumn& column) {
  return {{"name", column.name},
          {"kind", column_kind_name(column.kind)},
          {"unit", report::text_or_null(column.unit)}};
}

}  // namespace

report::Json row_json(const Table& table, std::size_t row) {
  report::Json object = report::Json::object();
  for (const TableColumn& column : table.columns) object[column.name] = cell_json(column, row);
  return object;
}

}  // namespace tables

std::string to_json(const Table& table) {
  std::string out = "{\"table\":" + report::dump(table.name);
  if (!table.note.empty()) out += ",\n\"note\":" + report::dump(table.note);
  out += ",\n\"columns\":" + report::dump_lines(table.columns, tables::column_json);
  out += ",\n\"rows\":[";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    out += row == 0 ? "\n" : ",\n";
    out += report::dump(tables::row_json(table, row));
  }
  return out + "]}\n";
}

}  // namespace layertrace
