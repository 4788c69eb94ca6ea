#include "report/cards/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "report/cards/units.h"
#include "report/text.h"

namespace layertrace {
namespace cards {
namespace {

struct Entry {
  Registered metric;
  bool is_built_in = false;
  std::optional<Registered> overridden;  // a built-in one
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
};

Registry& registry() {
  // Never destroyed: metrics may hold what is of another language, which may be gone by then.
  static Registry* const kRegistry = [] {
    auto* made = new Registry;
    for (Registered& metric : built_in_metrics())
      made->entries.push_back({std::move(metric), true, std::nullopt});
    return made;
  }();
  return *kRegistry;
}

auto find(std::vector<Entry>& entries, std::string_view key) {
  return std::ranges::find_if(entries,
                              [&](const Entry& each) { return each.metric.info.key == key; });
}

std::string in_quotes(std::string_view key) { return '"' + report::clean(key, false) + '"'; }

std::string tried(std::string_view key) { return "cannot add the metric " + in_quotes(key); }

Error taken(const Entry& entry) {
  return {tried(entry.metric.info.key),
          entry.is_built_in && !entry.overridden ? "a built-in metric has this key"
                                                 : "another metric has this key already",
          "Choose another key, or say override to replace it"};
}

// All of them, or none.
std::optional<Error> refuse_all(std::vector<Entry>& entries, const std::vector<MetricInfo>& infos,
                                bool overrides) {
  std::set<std::string_view> keys;
  for (const MetricInfo& info : infos) {
    if (auto error = cards::refuse(info)) return error;
    if (!keys.insert(info.key).second) {
      return Error{tried(info.key), "two metrics of one function have this key",
                   "Give each its own"};
    }
    const auto entry = find(entries, info.key);
    if (entry != entries.end() && !overrides) return taken(*entry);
  }
  return std::nullopt;
}

template <typename Enum>
Result<Enum> parse(Enum last, std::string_view (*name_of)(Enum) noexcept, std::string_view what,
                   std::string_view name) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const std::string_view each = name_of(static_cast<Enum>(i));
    if (each == name) return static_cast<Enum>(i);
    if (!each.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  return Error{fmt::format("cannot use {} as {}", in_quotes(name), what), "no such name",
               "Use one of: " + known};
}

}  // namespace

std::vector<Registered> registered_metrics() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Registered> out;
  out.reserve(all.entries.size());
  for (const Entry& entry : all.entries) out.push_back(entry.metric);
  return out;
}

std::optional<Error> refuse(const MetricInfo& info) {
  if (info.key.empty())
    return Error{"cannot add a metric", "it has no key", "Give it one, such as \"accuracy\""};
  for (const MetricUnit& scale : info.scales) {
    if (scale.name.empty() || !(scale.size > 0) || !std::isfinite(scale.size)) {
      return Error{tried(info.key),
                   fmt::format("the scale {} is {}", in_quotes(scale.name), scale.size),
                   "Say how much of the metric's own unit it is, a number above 0"};
    }
  }
  const std::vector<MetricUnit> units = units_of(info);
  const bool is_known = std::ranges::find(units, info.shown_in, &MetricUnit::name) != units.end();
  if (info.shown_in.empty() || is_known) return std::nullopt;
  std::string known;
  for (const MetricUnit& unit : units) {
    if (!unit.name.empty()) known += (known.empty() ? "" : ", ") + report::clean(unit.name, false);
  }
  return Error{tried(info.key),
               fmt::format("a value in {} cannot be shown in {}", in_quotes(info.unit),
                           in_quotes(info.shown_in)),
               known.empty() ? "Give scales with it" : "Use one of: " + known + "; or give scales"};
}

}  // namespace cards

Result<void> add_metric(MetricInfo info, MetricFunction function, const MetricOptions& options) {
  MetricsFunction several = [one = std::move(function)](const MetricInput& input) {
    return std::vector<std::optional<double>>{one(input)};
  };
  return add_metric(std::vector{std::move(info)}, std::move(several), options);
}

Result<void> add_metric(std::vector<MetricInfo> infos, MetricsFunction function,
                        const MetricOptions& options) {
  if (infos.empty()) return Error{"cannot add metrics", "there are none", "Give one or more"};
  cards::Registry& all = cards::registry();
  // What is replaced goes when the lock is released: its end may be another language's business.
  std::vector<cards::Registered> replaced;
  const std::lock_guard lock(all.mutex);
  if (auto error = cards::refuse_all(all.entries, infos, options.override)) return *error;
  const auto shared = std::make_shared<const MetricsFunction>(std::move(function));
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name.empty()) infos[i].name = infos[i].key;
    cards::Registered metric{std::move(infos[i]), shared, i};
    const auto entry = cards::find(all.entries, metric.info.key);
    if (entry == all.entries.end()) {
      all.entries.push_back({std::move(metric), false, std::nullopt});
      continue;
    }
    if (entry->is_built_in && !entry->overridden) {
      entry->overridden = std::move(entry->metric);
    } else {
      replaced.push_back(std::move(entry->metric));
    }
    entry->metric = std::move(metric);
  }
  return {};
}

bool remove_metric(std::string_view key) {
  cards::Registry& all = cards::registry();
  cards::Registered removed;
  const std::lock_guard lock(all.mutex);
  const auto entry = cards::find(all.entries, key);
  if (entry == all.entries.end()) return false;
  if (entry->overridden) {
    removed = std::exchange(entry->metric, std::move(*entry->overridden));
    entry->overridden.reset();
    return true;
  }
  if (entry->is_built_in) return false;
  removed = std::move(entry->metric);
  all.entries.erase(entry);
  return true;
}

std::vector<MetricInfo> metrics() {
  std::vector<MetricInfo> out;
  for (cards::Registered& each : cards::registered_metrics()) out.push_back(std::move(each.info));
  return out;
}

Result<MetricComparison> parse_metric_comparison(std::string_view name) {
  return cards::parse(MetricComparison::kDifference, &metric_comparison_name,
                      "a comparison of metrics", name);
}

Result<Better> parse_better(std::string_view name) {
  return cards::parse(Better::kLow, &better_name, "what is better", name);
}

}  // namespace layertrace
