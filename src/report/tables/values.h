// What a cell holds, read as its column's kind. Whatever does not fit, or is no number that the
// forms have a way to write, is nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <layertrace/report.h>

namespace layertrace::tables {

const TableValue& value_at(const TableColumn& column, std::size_t row) noexcept;

// Valid UTF-8.
std::optional<std::string> text_of(const TableValue& value);
std::optional<std::int64_t> integer_of(const TableValue& value) noexcept;
std::optional<double> real_of(const TableValue& value) noexcept;  // of an integer, too
std::optional<bool> boolean_of(const TableValue& value) noexcept;

// Whether the cell holds anything of its column's kind.
bool has_value(const TableColumn& column, std::size_t row) noexcept;

}  // namespace layertrace::tables
