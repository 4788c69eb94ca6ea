#include "report/cards/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "report/numbers.h"
#include "report/text.h"

namespace layertrace {
namespace cards {
namespace {

constexpr double kKibi = 1024;

struct KnownUnit {
  std::string_view unit;
  // The first ones, from small to large, are chosen from; the others are shown where asked for.
  std::vector<std::pair<std::string_view, double>> multiples;
  std::size_t chosen_from = 0;
};

const std::vector<KnownUnit>& known_units() {
  static const auto* const kUnits = new std::vector<KnownUnit>{
      {"bytes",
       {{"bytes", 1},
        {"KiB", kKibi},
        {"MiB", kKibi * kKibi},
        {"GiB", kKibi * kKibi * kKibi},
        {"TiB", kKibi * kKibi * kKibi * kKibi},
        {"kB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"TB", 1e12}},
       5},
      {"s", {{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}, 4},
      {"parameters",
       {{"parameters", 1}, {"thousands", 1e3}, {"millions", 1e6}, {"billions", 1e9}},
       4},
  };
  return *kUnits;
}

// "MACs" has KiloMACs, MegaMACs and so on, and so has all else that is counted in an s.
constexpr std::array<std::pair<std::string_view, double>, 6> kPrefixes{
    {{"", 1}, {"Kilo", 1e3}, {"Mega", 1e6}, {"Giga", 1e9}, {"Tera", 1e12}, {"Peta", 1e15}}};
constexpr std::array<std::string_view, 3> kPrefixed{"MACs", "FLOPs", "Ops"};

// What is chosen from, and what there is beside it.
struct Multiples {
  std::vector<MetricUnit> chosen_from;
  std::vector<MetricUnit> others;
};

Multiples multiples_of(const MetricInfo& info) {
  Multiples out;
  const auto known = std::ranges::find(known_units(), info.unit, &KnownUnit::unit);
  if (known != known_units().end()) {
    for (std::size_t i = 0; i < known->multiples.size(); ++i) {
      const auto& [name, size] = known->multiples[i];
      (i < known->chosen_from ? out.chosen_from : out.others).push_back({std::string(name), size});
    }
  } else if (std::ranges::find(kPrefixed, info.unit) != kPrefixed.end()) {
    for (const auto& [prefix, size] : kPrefixes)
      out.chosen_from.push_back({std::string(prefix) + info.unit, size});
  } else {
    out.chosen_from.push_back({info.unit, 1});
  }
  for (const MetricUnit& scale : info.scales) out.chosen_from.push_back(scale);
  std::ranges::stable_sort(out.chosen_from, {}, &MetricUnit::size);
  return out;
}

}  // namespace

std::vector<MetricUnit> units_of(const MetricInfo& info) {
  Multiples multiples = multiples_of(info);
  std::ranges::copy(multiples.others, std::back_inserter(multiples.chosen_from));
  return std::move(multiples.chosen_from);
}

MetricUnit unit_of(const ComparedMetric& row) {
  double most = 0;
  for (const ComparedMetric::Side& side : row.models)
    most = std::max(most, std::abs(side.value.value_or(0)));
  return shown_unit(row.info, most);
}

const std::string& name_of(const MetricInfo& info) noexcept {
  return info.name.empty() ? info.key : info.name;
}

std::string heading_of(const MetricInfo& info, const MetricUnit& shown) {
  return shown.name.empty() ? name_of(info) : fmt::format("{} ({})", name_of(info), shown.name);
}

std::string figure(double value) {
  constexpr double kLeast = 1e-3;
  constexpr double kFewDigits = 1e3;
  constexpr double kWhole = 1e5;
  constexpr double kMost = 1e15;
  const double size = std::abs(value);
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (value == 0) return "0";
  if (size < kLeast || size >= kMost) return fmt::format("{:.3e}", value);
  const std::string_view sign = value < 0 ? "-" : "";
  if (size == std::trunc(size) || size >= kWhole)
    return fmt::format("{}{}", sign, report::format_count(std::round(size)));
  if (size < kFewDigits) return fmt::format("{:.4f}", value);
  const double tenths = std::round(size * 10);
  return fmt::format("{}{}.{:.0f}", sign, report::format_count(std::floor(tenths / 10)),
                     std::fmod(tenths, 10));
}

}  // namespace cards

MetricUnit shown_unit(const MetricInfo& info, double value) {
  if (!info.shown_in.empty()) {
    const std::vector<MetricUnit> units = cards::units_of(info);
    const auto found = std::ranges::find(units, info.shown_in, &MetricUnit::name);
    if (found != units.end()) return *found;
    return {info.unit, 1};
  }
  const std::vector<MetricUnit> units = cards::multiples_of(info).chosen_from;
  const auto own = std::ranges::find(units, info.unit, &MetricUnit::name);
  if (value == 0 || !std::isfinite(value)) return own != units.end() ? *own : units.front();
  MetricUnit chosen = units.front();
  for (const MetricUnit& unit : units) {
    if (unit.size <= std::abs(value)) chosen = unit;
  }
  return chosen;
}

}  // namespace layertrace
