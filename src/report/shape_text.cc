#include "report/shape_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace layertrace::report {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_of_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  if (text.empty() || !is_digit(text.front())) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// Behind the opening bracket, up to and with the closing one.
std::optional<std::vector<std::int64_t>> take_sizes(std::string_view& text) {
  std::vector<std::int64_t> sizes;
  if (take(text, "]")) return sizes;
  while (const auto number = take_number(text)) {
    sizes.push_back(*number);
    if (take(text, "]")) return sizes;
    if (!take(text, ",")) return {};
    take(text, " ");
  }
  return {};
}

}  // namespace

std::vector<TensorText> parse_shapes(std::string_view text) {
  std::vector<TensorText> tensors;
  while (!text.empty()) {
    const auto length =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_of_name) - text.begin());
    if (length == 0) {
      text.remove_prefix(1);
      continue;
    }
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (!is_letter(name.front()) || !take(text, "[")) continue;
    auto sizes = take_sizes(text);
    if (!sizes) return {};
    tensors.push_back({std::string(name), std::move(*sizes)});
  }
  return tensors;
}

std::vector<std::int64_t> parse_kernel_size(std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (const auto number = take_number(text)) {
    sizes.push_back(*number);
    if (text.empty()) return sizes;
    if (!take(text, " × ")) return {};
  }
  return {};
}

double product(const std::vector<std::int64_t>& sizes, std::size_t from, std::size_t to) {
  double result = 1;
  for (std::size_t i = from; i < std::min(to, sizes.size()); ++i)
    result *= static_cast<double>(sizes[i]);
  return result;
}

}  // namespace layertrace::report
