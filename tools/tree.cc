#include "tree.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include <layertrace/trace.h>

namespace layertrace::tools {
namespace {

// What names stand for.
Result<TreeOptions> tree_options(const TreeArguments& arguments) {
  TreeOptions options = arguments.options;
  options.fold = !arguments.no_fold;
  for (const std::string& name : arguments.columns) {
    const auto column = parse_column(name);
    if (!column) return column.error();
    options.columns.push_back(*column);
  }
  const auto sort = parse_sort_key(arguments.sort);
  if (!sort) return sort.error();
  options.sort = *sort;
  const auto style = parse_tree_style(arguments.style);
  if (!style) return style.error();
  options.style = *style;
  if (!arguments.view.empty()) {
    const auto view = parse_view(arguments.view);
    if (!view) return view.error();
    options.view = *view;
  }
  if (!arguments.min_share.empty()) {
    const auto share = parse_share(arguments.min_share);
    if (!share) return share.error();
    options.min_share = *share;
  }
  options = for_terminal(1, options);
  if (arguments.color == "always") options.color = true;
  if (arguments.color == "never") options.color = false;
  return options;
}

}  // namespace

// "5%", "5" and "0.05"? A percentage, with or without its sign; else nobody could say what 1 is.
Result<double> parse_share(std::string_view text) {
  std::string_view digits = text;
  while (!digits.empty() && (digits.back() == '%' || digits.back() == ' ')) digits.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || !std::isfinite(percent) || percent < 0 || percent > 100) {
    return Error{"cannot use \"" + std::string(text) + "\" as a share", "it is no percentage",
                 "Give a number from 0 to 100: 2.5%"};
  }
  return percent / 100;
}

Result<TreeFormat> parse_tree_format(std::string_view name) {
  if (name == "text") return TreeFormat::kText;
  if (name == "repr") return TreeFormat::kRepr;
  if (name == "json") return TreeFormat::kJson;
  return Error{"cannot use \"" + std::string(name) + "\" as a format", "no such name",
               "Use one of: text, repr, json"};
}

Result<std::string> tree_report(const TreeArguments& arguments) {
  const auto options = tree_options(arguments);
  if (!options) return options.error();
  const auto format = parse_tree_format(arguments.format);
  if (!format) return format.error();
  const auto profile = load(arguments.file);
  if (!profile) return profile.error();
  if (profile->find(options->start) == nullptr && !options->start.empty()) {
    return Error{"cannot show " + options->start, "no layer has this path",
                 "`layertrace tree " + arguments.file + "` shows those that exist"};
  }
  switch (*format) {
    case TreeFormat::kText:
      break;
    case TreeFormat::kRepr:
      return repr_tree(*profile, *options);
    case TreeFormat::kJson:
      return nested_json(*profile, *options);
  }
  return tree(*profile, *options);
}

}  // namespace layertrace::tools
