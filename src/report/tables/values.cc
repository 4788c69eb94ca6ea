#include "report/tables/values.h"

#include <cmath>

#include "report/text.h"

namespace layertrace::tables {

const TableValue& value_at(const TableColumn& column, std::size_t row) noexcept {
  static const TableValue nothing;
  return row < column.values.size() ? column.values[row] : nothing;
}

std::optional<std::string> text_of(const TableValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::nullopt : std::optional(report::replace_invalid_utf8(*text));
}

std::optional<std::int64_t> integer_of(const TableValue& value) noexcept {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

std::optional<double> real_of(const TableValue& value) noexcept {
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&value);
  return real == nullptr || !std::isfinite(*real) ? std::nullopt : std::optional(*real);
}

std::optional<bool> boolean_of(const TableValue& value) noexcept {
  const auto* boolean = std::get_if<bool>(&value);
  return boolean == nullptr ? std::nullopt : std::optional(*boolean);
}

bool has_value(const TableColumn& column, std::size_t row) noexcept {
  const TableValue& value = value_at(column, row);
  switch (column.kind) {
    case ColumnKind::kText:
      return std::holds_alternative<std::string>(value);
    case ColumnKind::kInteger:
      return integer_of(value).has_value();
    case ColumnKind::kReal:
      return real_of(value).has_value();
    case ColumnKind::kBoolean:
      return boolean_of(value).has_value();
  }
  return false;
}

}  // namespace layertrace::tables
