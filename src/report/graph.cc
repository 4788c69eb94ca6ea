// graph_dot(): the layers in Graphviz' language.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/columns.h"
#include "report/filter.h"
#include "report/fold_blocks.h"
#include "report/layer_times.h"
#include "report/lookup.h"
#include "report/numbers.h"
#include "report/row_texts.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

// Within a quoted label a backslash and an ampersand mean something else, too.
std::string dot_text(std::string_view text) {
  std::string out;
  for (const char c : clean(text, false)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
    if (c == '&') out += "amp;";
  }
  return out;
}

// From nearly white to a deep blue, in which text is white: one hue, so that lightness alone tells.
struct Fill {
  std::string color;
  std::string_view text;
};
Fill fill_of(double share) {
  constexpr std::array<double, 3> kLight = {0xf4, 0xf8, 0xfc};
  constexpr std::array<double, 3> kDeep = {0x1c, 0x4f, 0x8a};
  const double at = std::sqrt(std::clamp(share, 0.0, 1.0));
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < rgb.size(); ++i)
    rgb[i] = static_cast<int>(std::lround(kLight[i] + at * (kDeep[i] - kLight[i])));
  return {fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]),
          at > 0.7 ? "#ffffff" : "#16202b"};
}

class GraphWriter {
 public:
  GraphWriter(const Profile& profile, const GraphOptions& options)
      : profile_(profile),
        options_(options),
        base_ns_(share_base_ns(profile)),
        style_(cell_style(profile, glyphs_)),
        texts_(profile, options.columns, style_) {}

  std::string write(const std::vector<int>& roots) {
    const Filtered filtered = filter_layers(profile_, {.trainable = options_.trainable}, roots);
    out_ =
        "digraph layers {\n"
        "  graph [rankdir=LR, bgcolor=\"white\", nodesep=0.15, ranksep=0.45, labelloc=t,\n"
        "         fontname=\"Helvetica\", fontsize=11, fontcolor=\"#445260\",\n"
        "         label=\"" +
        caption(filtered.sentence) +
        "\"]\n"
        "  node [shape=box, style=\"filled,rounded\", penwidth=0.8, color=\"#8796a5\", "
        "margin=\"0.14,0.08\",\n"
        "        fontname=\"Helvetica\", fontsize=11]\n"
        "  edge [arrowhead=none, color=\"#b3bec9\", penwidth=0.9]\n";
    for (const Node& node :
         make_nodes(profile_, roots, options_.fold, SortKey::kDefinition, filtered.shown))
      add(node, -1, 0);
    return out_ + "}\n";
  }

 private:
  std::string caption(const std::string& filter) const {
    std::string text = subject();
    if (!filter.empty()) text += "\\n" + dot_text(filter);
    if (!profile_.run.simulated.empty() && !profile_.layers.empty() && !profile_.run.summary)
      text += "\\nSimulated GPU: its times say nothing about how fast a real one is";
    return text;
  }

  std::string subject() const {
    if (profile_.layers.empty()) return "no layers";
    if (profile_.run.summary)
      return options_.columns.empty() ? "parameters of each layer" : "figures of one call";
    const char* const clock = has_gpu(profile_) ? "GPU" : "host";
    const std::string step = format_time(base_ns_, glyphs_);
    if (options_.columns.empty())
      return fmt::format("{} time per step; shares of a step of {}", clock, step);
    return fmt::format("figures per step; colour by the {} time's share of a step of {}", clock,
                       step);
  }

  LayerTimes times_of(const Node& node) const {
    LayerTimes times;
    for (const int index : node.layers) {
      const Layer& layer = profile_.layers[static_cast<std::size_t>(index)];
      times += has_gpu(profile_) ? gpu_times(profile_, layer) : host_times(layer);
    }
    return times;
  }

  void add(const Node& node, int parent, int depth) {
    const int id = next_++;
    const Layer& layer = profile_.layers[static_cast<std::size_t>(node.layers.front())];
    const LayerTimes times = times_of(node);
    const bool has_times = layer.ran && !profile_.run.summary;
    const Fill fill = fill_of(has_times && base_ns_ > 0 ? times.total_ns() / base_ns_ : 0);
    out_ += fmt::format("  n{} [label=\"{}\", fillcolor=\"{}\", fontcolor=\"{}\"{}]\n", id,
                        label(node, layer, times, has_times, depth), fill.color, fill.text,
                        layer.ran || profile_.run.summary ? "" : ", style=\"rounded,dashed\"");
    if (parent >= 0) out_ += fmt::format("  n{} -> n{}\n", parent, id);
    if (node.children.empty()) return;
    if (options_.depth >= 0 && depth >= options_.depth) {
      const int cut = next_++;
      out_ += fmt::format(
          "  n{} [label=\"… {} {} below\", shape=plaintext, style=\"\", fontcolor=\"#5b6875\"]\n"
          "  n{} -> n{} [style=dotted]\n",
          cut, format_count(std::uint64_t{node.below}), node.below == 1 ? "layer" : "layers", id,
          cut);
      return;
    }
    for (const Node& child : node.children) add(child, id, depth + 1);
  }

  std::string label(const Node& node, const Layer& layer, const LayerTimes& times, bool has_times,
                    int depth) const {
    std::string name = depth == 0 && !options_.start.empty() ? layer.path : node.first_name;
    if (node.blocks > 1) name += fmt::format("{}{}", glyphs_.dash, node.last_name);
    std::string text = dot_text(name);
    if (!options_.columns.empty()) return text + attributes(node, layer);
    if (node.blocks > 1) {
      text += fmt::format("\\n{} {} {}", node.blocks, glyphs_.times, dot_text(layer.type));
    } else if (!layer.path.empty()) {
      text += "\\n" + dot_text(layer.type);
    }
    if (!layer.shared_with.empty()) text += "\\n= " + dot_text(layer.shared_with);
    if (profile_.run.summary) {
      return text + fmt::format("\\n{} parameters", format_si(node.figures.params));
    }
    if (!has_times) return text + "\\nnot run";
    if (base_ns_ > 0)
      text += fmt::format("\\n{} of the step", format_share(times.total_ns() / base_ns_));
    return text + fmt::format("\\nforward {}, backward {}", format_time(times.forward_ns, glyphs_),
                              format_time(times.backward_ns, glyphs_));
  }

  // A line for each, as brackets have them; what is empty is left out.
  std::string attributes(const Node& node, const Layer& layer) const {
    std::string text;
    if (!layer.shared_with.empty()) text += "\\n= " + dot_text(layer.shared_with);
    for (const Column column : options_.columns) {
      const std::string value =
          is_text(column) ? texts_.cell(column, node) : bracket_text(column, node.figures, style_);
      if (!value.empty())
        text += fmt::format("\\n{}={}", table_column(column).label, dot_text(value));
    }
    if (!layer.ran && !profile_.run.summary) text += "\\nnot run";
    return text;
  }

  const Profile& profile_;
  const GraphOptions& options_;
  const double base_ns_;
  const Glyphs& glyphs_ = glyphs_for(false);
  const CellStyle style_;
  const RowTexts texts_;
  std::string out_;
  int next_ = 0;
};

}  // namespace
}  // namespace report

std::string graph_dot(const Profile& profile, const GraphOptions& options) {
  std::vector<int> roots;
  if (options.start.empty()) {
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
      if (profile.layers[i].parent < 0) roots.push_back(static_cast<int>(i));
    }
  } else if (const Layer* start = profile.find(options.start)) {
    roots.push_back(static_cast<int>(start - profile.layers.data()));
  } else {
    std::string unknown = report::unknown_layer(profile, options.start, false);
    unknown.pop_back();  // its newline
    return fmt::format("digraph layers {{\n  n0 [shape=box, label=\"{}\"]\n}}\n",
                       report::dot_text(unknown));
  }
  return report::GraphWriter(profile, options).write(roots);
}

}  // namespace layertrace
