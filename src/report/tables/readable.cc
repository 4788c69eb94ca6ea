#include "report/tables/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "report/numbers.h"
#include "report/tables/values.h"
#include "report/text.h"

namespace layertrace::tables {
namespace {

// A unit in which a figure is shown, and what of the column's own it is.
struct Scale {
  std::string_view unit;
  double size = 1;
};

// A unit of columns, the end of their names that says it, and what it is shown in: the smallest
// first.
struct UnitInfo {
  std::string_view unit;
  std::string_view suffix;
  std::array<Scale, 6> scales;  // as many as have a size
};

constexpr Scale kNoScale{"", 0};
constexpr double kKibi = 1024;

constexpr std::array kUnits{
    UnitInfo{"ns", "_ns", {{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, kNoScale, kNoScale}}},
    UnitInfo{"ms", "_ms", {{{"ms", 1}, kNoScale, kNoScale, kNoScale, kNoScale, kNoScale}}},
    UnitInfo{"samples/s",
             "_per_s",
             {{{"samples/s", 1}, kNoScale, kNoScale, kNoScale, kNoScale, kNoScale}}},
    UnitInfo{"bytes",
             "_bytes",
             {{{"B", 1},
               {"KiB", kKibi},
               {"MiB", kKibi* kKibi},
               {"GiB", kKibi* kKibi* kKibi},
               {"TiB", kKibi* kKibi* kKibi* kKibi},
               kNoScale}}},
    UnitInfo{"bytes/s",
             "_bytes_per_s",
             {{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, kNoScale}}},
    UnitInfo{"FLOP",
             "",
             {{{"FLOP", 1},
               {"kFLOP", 1e3},
               {"MFLOP", 1e6},
               {"GFLOP", 1e9},
               {"TFLOP", 1e12},
               {"PFLOP", 1e15}}}},
    UnitInfo{"MAC",
             "",
             {{{"MAC", 1},
               {"kMAC", 1e3},
               {"MMAC", 1e6},
               {"GMAC", 1e9},
               {"TMAC", 1e12},
               {"PMAC", 1e15}}}},
    UnitInfo{"FLOP/s",
             "_per_s",
             {{{"FLOP/s", 1},
               {"kFLOP/s", 1e3},
               {"MFLOP/s", 1e6},
               {"GFLOP/s", 1e9},
               {"TFLOP/s", 1e12},
               {"PFLOP/s", 1e15}}}},
    UnitInfo{"share", "_share", {{{"%", 0.01}, kNoScale, kNoScale, kNoScale, kNoScale, kNoScale}}},
};

const UnitInfo* info_of(std::string_view unit) {
  const auto* found = std::ranges::find(kUnits, unit, &UnitInfo::unit);
  return found == kUnits.end() ? nullptr : found;
}

double largest(const TableColumn& column) {
  double most = 0;
  for (const TableValue& value : column.values)
    most = std::max(most, std::abs(real_of(value).value_or(0)));
  return most;
}

Scale scale_of(const TableColumn& column) {
  const UnitInfo* info = info_of(column.unit);
  if (info == nullptr) return {column.unit, 1};
  const double most = largest(column);
  Scale chosen = info->scales.front();
  for (const Scale& scale : info->scales) {
    if (scale.size > 0 && scale.size <= most) chosen = scale;
  }
  return chosen;
}

std::string heading_of(const TableColumn& column, const Scale& scale) {
  const UnitInfo* info = info_of(column.unit);
  std::string_view name = column.name;
  if (info != nullptr && !info->suffix.empty() && name.ends_with(info->suffix))
    name.remove_suffix(info->suffix.size());
  std::string text = report::clean(name, false);
  std::ranges::replace(text, '_', ' ');
  return scale.unit.empty() ? text : fmt::format("{} ({})", text, scale.unit);
}

// Three significant digits, without an exponent where that is readable: "1,234", "12.3", "0.00123".
std::string digits(double value) {
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e15;
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size < kLeast || size >= kMost) return fmt::format("{:.2e}", value);
  const std::string sign = value < 0 ? "-" : "";
  if (size >= 99.95) return sign + report::format_count(std::round(size));
  if (size == std::trunc(size)) return fmt::format("{:.0f}", value);
  const int places = 2 - static_cast<int>(std::floor(std::log10(size * 1.0005)));
  return fmt::format("{:.{}f}", value, std::max(0, places));
}

std::string cell_text(const TableColumn& column, std::size_t row, const Scale& scale) {
  const TableValue& value = value_at(column, row);
  if (!has_value(column, row)) return {};
  switch (column.kind) {
    case ColumnKind::kText:
      return report::clean(text_of(value).value_or(""), false);
    case ColumnKind::kInteger:
      if (scale.size == 1) {
        const std::int64_t whole = integer_of(value).value_or(0);
        if (whole >= 0) return report::format_count(static_cast<std::uint64_t>(whole));
      }
      return digits(real_of(value).value_or(0) / scale.size);
    case ColumnKind::kReal:
      return digits(real_of(value).value_or(0) / scale.size);
    case ColumnKind::kBoolean:
      return boolean_of(value).value_or(false) ? "yes" : "no";
  }
  return {};
}

// What is empty throughout says nothing, unless the table is empty as a whole.
bool is_shown(const Table& table, const TableColumn& column) {
  if (column.detail) return false;
  if (table.rows() == 0) return true;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (has_value(column, row)) return true;
  }
  return false;
}

}  // namespace

std::vector<ReadableColumn> readable(const Table& table) {
  std::vector<ReadableColumn> out;
  for (const TableColumn& column : table.columns) {
    if (!is_shown(table, column)) continue;
    const Scale scale = scale_of(column);
    ReadableColumn shown{heading_of(column, scale), column.kind == ColumnKind::kText, {}};
    for (std::size_t row = 0; row < table.rows(); ++row)
      shown.cells.push_back(cell_text(column, row, scale));
    out.push_back(std::move(shown));
  }
  return out;
}

std::vector<std::string> note_lines(const Table& table) {
  std::vector<std::string> lines;
  const std::string_view note = table.note;
  for (std::size_t begin = 0; begin < note.size();) {
    const std::size_t end = std::min(note.find('\n', begin), note.size());
    if (end > begin) lines.push_back(report::clean(note.substr(begin, end - begin), false));
    begin = end + 1;
  }
  return lines;
}

}  // namespace layertrace::tables
