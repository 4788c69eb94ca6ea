#include "report/filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/figures.h"
#include "report/numbers.h"
#include "report/text.h"

namespace layertrace::report {
namespace {

bool matches_one(std::string_view pattern, std::string_view text) {
  // Where the last star was, and from where in the text it was tried: one more character for it,
  // and again.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool passes(const Profile& profile, const TreeOptions& options, const Layer& layer,
            double step_ns) {
  if (!options.match.empty() && !matches(options.match, layer.path)) return false;
  if (!options.type.empty() && !matches(options.type, layer.type)) return false;
  if (options.trainable && layer.params_trainable == 0) return false;
  if (options.min_share <= 0) return true;
  return step_ns > 0 && leading_ns(profile, figures_of(layer)) >= options.min_share * step_ns;
}

std::string conditions(const TreeOptions& options) {
  std::vector<std::string> parts;
  const auto quoted = [&](const std::string& pattern) {
    return fmt::format("\"{}\"", clean(pattern, options.ascii));
  };
  if (!options.match.empty())
    parts.push_back(fmt::format("with a path like {}", quoted(options.match)));
  if (!options.type.empty()) parts.push_back(fmt::format("of type {}", quoted(options.type)));
  if (options.trainable) parts.emplace_back("with trainable parameters");
  if (options.min_share > 0) {
    parts.push_back(fmt::format("with at least {} of the step", format_share(options.min_share)));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

bool matches(std::string_view patterns, std::string_view text) {
  for (std::size_t begin = 0;;) {
    const std::size_t comma = std::min(patterns.find(',', begin), patterns.size());
    if (matches_one(patterns.substr(begin, comma - begin), text)) return true;
    if (comma == patterns.size()) return false;
    begin = comma + 1;
  }
}

Filtered filter_layers(const Profile& profile, const TreeOptions& options,
                       const std::vector<int>& roots) {
  Filtered filtered;
  filtered.shown.assign(profile.layers.size(), false);
  const std::string why = conditions(options);
  const double step_ns = share_base_ns(profile);
  std::vector<bool> is_inside(profile.layers.size(), false);
  for (const int root : roots) is_inside[static_cast<std::size_t>(root)] = true;
  // Parents come before children.
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const Layer& layer = profile.layers[i];
    if (layer.parent >= 0 && is_inside[static_cast<std::size_t>(layer.parent)]) is_inside[i] = true;
    if (!is_inside[i]) continue;
    ++filtered.all;
    if (!why.empty() && !passes(profile, options, layer, step_ns)) continue;
    ++filtered.passed;
    for (auto at = static_cast<int>(i); at >= 0 && !filtered.shown[static_cast<std::size_t>(at)];
         at = profile.layers[static_cast<std::size_t>(at)].parent)
      filtered.shown[static_cast<std::size_t>(at)] = true;
  }
  if (why.empty()) return filtered;
  filtered.sentence = filtered.passed == 0
                          ? fmt::format("No layer is there {}.", why)
                          : fmt::format("Shown: {} of {} layers, those {}, and what holds them.",
                                        format_count(std::uint64_t{filtered.passed}),
                                        format_count(std::uint64_t{filtered.all}), why);
  return filtered;
}

}  // namespace layertrace::report
