// Values in the words of the JSON: times to the nanosecond, whole numbers that may stand in quotes,
// strings with their escapes undone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace layertrace::kineto {

// Decimal microseconds in nanoseconds, exactly: a double has steps of 250 ns where a clock counts
// from 1970. Nothing where it is no number, or too large a one.
std::optional<std::int64_t> parse_microseconds(std::string_view text) noexcept;

// A whole number; what follows a point is dropped. Nothing for other text.
std::optional<std::int64_t> parse_whole(std::string_view text) noexcept;

double parse_real(std::string_view text) noexcept;

// Bytes that are no UTF-8 stay as they are, and half of a surrogate pair becomes the three bytes
// that its number would have.
std::string unescape(std::string_view text);

}  // namespace layertrace::kineto
