#include "report/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace layertrace::report {
namespace {

struct TimeText {
  std::string number;
  std::string unit;
};

std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

TimeText split_time(double ns, const Glyphs& glyphs) {
  if (!std::isfinite(ns) || ns < 0) return {"?", "ns"};
  if (ns > 0 && ns < 1) return {"<1", "ns"};
  if (ns < 999.5) return {fmt::format("{:.0f}", ns), "ns"};  // a fraction of a nanosecond is noise
  if (ns < 999.5e3) return {three_digits(ns / 1e3), fmt::format("{}s", glyphs.micro)};
  if (ns < 999.5e6) return {three_digits(ns / 1e6), "ms"};
  if (ns < 999.5e9) return {three_digits(ns / 1e9), "s"};
  return {format_count(std::round(ns / 1e9)), "s"};
}

std::string with_separators(std::string digits) {
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

}  // namespace

std::string format_time(double ns, const Glyphs& glyphs) {
  const TimeText text = split_time(ns, glyphs);
  return fmt::format("{} {}", text.number, text.unit);
}

std::string format_time_range(double least_ns, double most_ns, const Glyphs& glyphs) {
  const TimeText least = split_time(least_ns, glyphs);
  const TimeText most = split_time(most_ns, glyphs);
  if (least.unit != most.unit) {
    return fmt::format("{} {}{}{} {}", least.number, least.unit, glyphs.dash, most.number,
                       most.unit);
  }
  if (least.number == most.number) return fmt::format("{} {}", most.number, most.unit);
  return fmt::format("{}{}{} {}", least.number, glyphs.dash, most.number, most.unit);
}

std::string format_share(double share) {
  const double percent = share * 100;
  if (!std::isfinite(percent) || percent < 0) return "? %";
  if (percent == 0) return "0 %";
  if (percent < 0.1) return "<0.1 %";
  if (percent < 99.9) return fmt::format("{:.1f} %", percent);
  // Rounding errors of a sum aside, only the whole is 100 %.
  if (percent < 100 - 1e-9) return percent < 99.95 ? "99.9 %" : ">99.9 %";
  return fmt::format("{:.0f} %", percent);
}

std::string format_count(std::uint64_t count) { return with_separators(fmt::format("{}", count)); }

std::string format_count(double count) {
  if (!std::isfinite(count) || count < 0) return "?";
  const bool whole = std::abs(count - std::round(count)) < 1e-9;
  if (whole || count >= 99.95) return with_separators(fmt::format("{:.0f}", count));
  if (count < 0.01) return "<0.01";
  return count < 0.995 ? fmt::format("{:.2f}", count) : fmt::format("{:.1f}", count);
}

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value) || value < 0) return "?";
  constexpr double kKilo = 1000;
  std::string prefix;
  for (const char* larger : {"k", "M", "G", "T", "P", "E"}) {
    if (value < 999.5) break;
    value /= kKilo;
    prefix = larger;
  }
  const bool whole = prefix.empty() && value == std::trunc(value);
  const std::string number = whole ? fmt::format("{:.0f}", value) : three_digits(value);
  prefix += unit;
  return prefix.empty() ? number : fmt::format("{} {}", number, prefix);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr double kKilo = 1024;
  auto value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < kKilo) break;
    value /= kKilo;
    unit = larger;
  }
  const bool whole = value == std::trunc(value) || value >= 99.95;
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, unit);
}

}  // namespace layertrace::report
