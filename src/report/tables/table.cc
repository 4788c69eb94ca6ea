// The type itself, and the names of kinds and formats.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <layertrace/report.h>

#include "report/text.h"

namespace layertrace {
namespace tables {
namespace {

template <typename T>
using Name = std::pair<std::string_view, T>;

constexpr std::array kKindNames{
    Name<TableKind>{"layers", TableKind::kLayers},
    Name<TableKind>{"kernels", TableKind::kKernels},
    Name<TableKind>{"operators", TableKind::kOperators},
    Name<TableKind>{"calls", TableKind::kCalls},
    Name<TableKind>{"steps", TableKind::kSteps},
    Name<TableKind>{"parameters", TableKind::kParameters},
    Name<TableKind>{"sizes", TableKind::kSizes},
    Name<TableKind>{"ledger", TableKind::kLedger},
    Name<TableKind>{"metrics", TableKind::kMetrics},
};

constexpr std::array kFormatNames{
    Name<TableFormat>{"json", TableFormat::kJson},
    Name<TableFormat>{"csv", TableFormat::kCsv},
    Name<TableFormat>{"md", TableFormat::kMarkdown},
    Name<TableFormat>{"html", TableFormat::kHtml},
    Name<TableFormat>{"latex", TableFormat::kLatex},
    Name<TableFormat>{"parquet", TableFormat::kParquet},
};

template <typename Names>
auto parse(const Names& names, std::string_view what,
           std::string_view name) -> Result<decltype(names.front().second)> {
  std::string known;
  for (const auto& [each, value] : names) {
    if (each == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  return Error{fmt::format("cannot use \"{}\" as a {}", report::clean(name, false), what),
               "no such name", "Use one of: " + known};
}

}  // namespace
}  // namespace tables

std::string_view column_kind_name(ColumnKind kind) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"text", "integer", "real", "boolean"};
  return kNames[static_cast<std::size_t>(kind)];
}

const TableColumn* Table::find(std::string_view column) const noexcept {
  const auto found = std::ranges::find(columns, column, &TableColumn::name);
  return found == columns.end() ? nullptr : &*found;
}

Result<TableKind> parse_table_kind(std::string_view name) {
  if (name == "ops") name = "operators";  // as the command says
  return tables::parse(tables::kKindNames, "table", name);
}

Result<TableFormat> parse_table_format(std::string_view name) {
  if (name == "markdown") name = "md";
  if (name == "tex") name = "latex";
  return tables::parse(tables::kFormatNames, "format of a table", name);
}

std::string write(const Table& table, TableFormat format) {
  switch (format) {
    case TableFormat::kJson:
      return to_json(table);
    case TableFormat::kCsv:
      return to_csv(table);
    case TableFormat::kMarkdown:
      return to_markdown(table);
    case TableFormat::kHtml:
      return to_html(table);
    case TableFormat::kLatex:
      return to_latex(table);
    case TableFormat::kParquet:
      return to_parquet(table);
  }
  return {};
}

}  // namespace layertrace
