#include "kineto/text_values.h"

#include <array>
#include <charconv>
#include <limits>

namespace layertrace::kineto {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Digits and a decimal exponent, as whole units of 10^-scale; rounded towards zero.
std::optional<std::int64_t> parse_scaled(std::string_view text, int scale) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool negative = text.starts_with('-');
  std::size_t at = negative || text.starts_with('+') ? 1 : 0;
  const std::size_t first = at;
  std::uint64_t value = 0;
  int behind_point = 0;
  int dropped = 0;  // digits before the point that did not fit
  bool point = false;
  bool any = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
    } else if (is_digit(c)) {
      any = true;
      const auto digit = static_cast<std::uint64_t>(c - '0');
      if (value > (kMost - digit) / 10 || dropped != 0 || behind_point >= 18) {
        if (!point) ++dropped;
        continue;
      }
      value = value * 10 + digit;
      if (point) ++behind_point;
    } else {
      break;
    }
  }
  if (!any || at == first) return std::nullopt;
  int exponent = 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && text[at] == '+') ++at;
    const auto [end, error] =
        std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (error != std::errc()) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
  }
  if (at != text.size() || exponent > 1000 || exponent < -1000) return std::nullopt;
  int shift = exponent + scale + dropped - behind_point;
  for (; shift > 0 && value != 0; --shift) {
    if (value > kMost / 10) return std::nullopt;
    value *= 10;
  }
  for (; shift < 0 && value != 0; ++shift) value /= 10;
  const auto result = static_cast<std::int64_t>(value);
  return negative ? -result : result;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The four digits of \uXXXX.
std::optional<std::uint32_t> parse_hex(std::string_view text) noexcept {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t code = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    code = code << 4 | static_cast<std::uint32_t>(digit);
  }
  return code;
}

char simple_escape(char c) noexcept {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;  // the character itself; JSON has it so for " \ and /
  }
}

}  // namespace

std::optional<std::int64_t> parse_microseconds(std::string_view text) noexcept {
  // What nearly all of them look like: digits, a point, three digits.
  const std::size_t size = text.size();
  if (size >= 5 && size <= 19 && text[size - 4] == '.') {
    std::int64_t value = 0;
    bool plain = true;
    for (std::size_t i = 0; i < size; ++i) {
      if (i == size - 4) continue;
      plain &= is_digit(text[i]);
      value = value * 10 + (text[i] - '0');
    }
    if (plain) return value;
  }
  return parse_scaled(text, 3);
}

std::optional<std::int64_t> parse_whole(std::string_view text) noexcept {
  if (!text.empty() && text.size() <= 18) {
    std::int64_t value = 0;
    bool plain = true;
    for (const char c : text) {
      plain &= is_digit(c);
      value = value * 10 + (c - '0');
      if (!plain) break;
    }
    if (plain) return value;
  }
  return parse_scaled(text, 0);
}

double parse_real(std::string_view text) noexcept {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    const auto code = text[i] == 'u' ? parse_hex(text.substr(i + 1)) : std::nullopt;
    if (!code) {
      if (text[i] == 'u') out += '\\';  // no escape that JSON has: as it stands
      out += simple_escape(text[i]);
      continue;
    }
    i += 4;
    std::uint32_t whole = *code;
    if (whole >= 0xd800 && whole < 0xdc00 && text.substr(i + 1).starts_with("\\u")) {
      const auto low = parse_hex(text.substr(i + 3));
      if (low && *low >= 0xdc00 && *low < 0xe000) {
        whole = 0x10000 + ((whole - 0xd800) << 10) + (*low - 0xdc00);
        i += 6;
      }
    }
    append_utf8(out, whole);
  }
  return out;
}

}  // namespace layertrace::kineto
