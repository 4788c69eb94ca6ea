#include "report/row_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/numbers.h"
#include "report/text.h"

namespace layertrace::report {
namespace {

constexpr double kOutlier = 1.25;           // a block this far above the mean is named
constexpr std::size_t kLeadingColumns = 2;  // forward and backward, mostly

}  // namespace

RowTexts::RowTexts(const Profile& profile, const std::vector<Column>& columns,
                   const CellStyle& style)
    : profile_(profile),
      style_(style),
      has_many_times_(std::ranges::count_if(columns, is_time) > 1) {
  std::ranges::copy_if(columns, std::back_inserter(leading_), is_time);
  if (leading_.size() > kLeadingColumns) leading_.resize(kLeadingColumns);
  if (leading_.empty()) leading_.push_back(Column::kTotal);
}

const Layer& RowTexts::first_layer(const Node& node) const {
  return profile_.layers[static_cast<std::size_t>(node.layers.front())];
}

std::string RowTexts::cleaned(const std::string& text) const {
  return clean(text, style_.glyphs.ascii);
}

std::string RowTexts::name(const Node& node) const {
  std::string first = cleaned(node.first_name);
  if (node.blocks == 1) return first;
  return fmt::format("{}{}{}", first, style_.glyphs.dash, cleaned(node.last_name));
}

std::string RowTexts::cell(Column column, const Node& node) const {
  if (column == Column::kType) return type(node);
  // Layers of one row may differ in it: then the first speaks, and says so.
  const std::string first = of_layer(column, first_layer(node));
  const bool is_same = std::ranges::all_of(node.layers, [&](int layer) {
    return of_layer(column, profile_.layers[static_cast<std::size_t>(layer)]) == first;
  });
  return is_same ? first : fmt::format("{} {}", first, style_.glyphs.ellipsis);
}

std::string RowTexts::of_layer(Column column, const Layer& layer) const {
  if (column == Column::kName) return cleaned(layer.name);
  if (column == Column::kPath) return cleaned(layer.path);
  if (column == Column::kKernelSize) return cleaned(layer.kernel_size);
  if (layer.shapes.empty()) return "";
  const CallShapes& most = layer.shapes.front();
  const bool is_input = column == Column::kInputShapes;
  std::string shapes = cleaned(is_input ? most.input : most.output);
  const bool is_same = std::ranges::all_of(layer.shapes, [&](const CallShapes& each) {
    return is_input ? each.input == most.input : each.output == most.output;
  });
  return is_same ? shapes : fmt::format("{} {}", shapes, style_.glyphs.ellipsis);
}

std::string RowTexts::type(const Node& node) const {
  const Layer& layer = first_layer(node);
  const std::string type = cleaned(layer.type);
  if (node.blocks > 1) return fmt::format("{} {} {}", node.blocks, style_.glyphs.times, type);
  const bool named_by_class = layer.path.empty();  // a root, whose row would say its type twice
  return named_by_class ? "" : type;
}

std::string RowTexts::note(const Node& node) const {
  const Layer& layer = first_layer(node);
  std::vector<std::string> parts;
  if (!layer.shared_with.empty()) {
    parts.push_back(fmt::format("= {}", cleaned(layer.shared_with)));
  } else if (!layer.ran && (!profile_.run.summary || was_called(profile_))) {
    parts.emplace_back("not run");
  }
  if (!layer.registered) parts.emplace_back("(unregistered)");
  if (node.blocks > 1 && layer.ran) parts.push_back(spread(node));
  return fmt::format("{}", fmt::join(parts, " "));
}

// "1.00 GFLOP–4.00 GFLOP"; nothing of blocks that compute as much, which most do.
std::string RowTexts::flops_range(const Node& node) const {
  double least = 0;
  double most = 0;
  for (std::size_t i = 0; i < node.layers.size(); ++i) {
    const Layer& layer = profile_.layers[static_cast<std::size_t>(node.layers[i])];
    const double flops = figures_of(layer).flops;
    least = i == 0 ? flops : std::min(least, flops);
    most = std::max(most, flops);
  }
  const std::string from = format_si(least, "FLOP");
  const std::string to = format_si(most, "FLOP");
  return from == to ? "" : fmt::format("{}{}{}", from, style_.glyphs.dash, to);
}

// "each 1.20–1.40 ms forward, 2.40–2.70 ms backward", and which block it is that takes far more
// than the others. A summary has no times.
std::string RowTexts::spread(const Node& node) const {
  std::vector<double> sums(node.layers.size());
  std::vector<std::string> parts;
  const std::vector<Column> timed = profile_.run.summary ? std::vector<Column>() : leading_;
  for (const Column column : timed) {
    double least = 0;
    double most = 0;
    for (std::size_t i = 0; i < node.layers.size(); ++i) {
      const Layer& layer = profile_.layers[static_cast<std::size_t>(node.layers[i])];
      const double ns = time_of(column, figures_of(layer), style_);
      least = i == 0 ? ns : std::min(least, ns);
      most = std::max(most, ns);
      sums[i] += ns;
    }
    if (most == 0) continue;
    const std::string range = format_time_range(least, most, style_.glyphs);
    parts.push_back(has_many_times_ ? fmt::format("{} {}", range, table_column(column).title)
                                    : range);
  }
  if (std::string flops = flops_range(node); !flops.empty()) parts.push_back(std::move(flops));
  if (parts.empty()) return "";
  std::string text = fmt::format("each {}", fmt::join(parts, ", "));
  const auto slowest = std::ranges::max_element(sums);
  double sum = 0;
  for (const double each : sums) sum += each;
  if (sum > 0 && *slowest >= kOutlier * sum / static_cast<double>(sums.size())) {
    const int layer = node.layers[static_cast<std::size_t>(slowest - sums.begin())];
    text +=
        fmt::format(", most in {}", cleaned(profile_.layers[static_cast<std::size_t>(layer)].path));
  }
  return text;
}

}  // namespace layertrace::report
