// A table in the making: rows of any type, and for each column how to read it from a row.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

namespace layertrace::tables {

inline TableValue cell(TableValue value) { return value; }
inline TableValue cell(std::string text) { return TableValue(std::move(text)); }
inline TableValue cell(std::string_view text) { return TableValue(std::string(text)); }
inline TableValue cell(const char* text) { return TableValue(std::string(text)); }
template <std::floating_point T>
TableValue cell(T real) {
  return TableValue(static_cast<double>(real));
}
template <std::integral T>
TableValue cell(T number) {
  if constexpr (std::same_as<T, bool>) {
    return TableValue(number);
  } else {
    return TableValue(static_cast<std::int64_t>(number));
  }
}
template <typename T>
TableValue cell(const std::optional<T>& value) {
  return value ? cell(*value) : TableValue();
}

// Where "" says that there is none.
inline TableValue text_if_any(const std::string& text) {
  return text.empty() ? TableValue() : TableValue(text);
}

// Where 0 says that it is not known.
inline TableValue if_positive(double value) { return value > 0 ? cell(value) : TableValue(); }

template <typename Row>
class Sheet {
 public:
  Sheet(std::string name, std::vector<Row> rows) : rows_(std::move(rows)) {
    table_.name = std::move(name);
  }

  template <typename Read>
  Sheet& text(std::string name, const Read& read) {
    return add(std::move(name), "", ColumnKind::kText, read);
  }
  template <typename Read>
  Sheet& integer(std::string name, std::string unit, const Read& read) {
    return add(std::move(name), std::move(unit), ColumnKind::kInteger, read);
  }
  template <typename Read>
  Sheet& real(std::string name, std::string unit, const Read& read) {
    return add(std::move(name), std::move(unit), ColumnKind::kReal, read);
  }
  template <typename Read>
  Sheet& boolean(std::string name, const Read& read) {
    return add(std::move(name), "", ColumnKind::kBoolean, read);
  }
  // Of the column that was added last.
  Sheet& detail() {
    table_.columns.back().detail = true;
    return *this;
  }

  const std::vector<Row>& rows() const noexcept { return rows_; }
  Table take() { return std::move(table_); }

 private:
  template <typename Read>
  Sheet& add(std::string name, std::string unit, ColumnKind kind, const Read& read) {
    TableColumn column{std::move(name), std::move(unit), kind, false, {}};
    column.values.reserve(rows_.size());
    for (const Row& row : rows_) column.values.push_back(cell(read(row)));
    table_.columns.push_back(std::move(column));
    return *this;
  }

  std::vector<Row> rows_;
  Table table_;
};

}  // namespace layertrace::tables
