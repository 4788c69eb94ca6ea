// repr_tree(): the model as PyTorch prints it, with times where a module's own words stand.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>

#include "report/figures.h"
#include "report/filter.h"
#include "report/fold_blocks.h"
#include "report/ledger.h"
#include "report/lookup.h"
#include "report/numbers.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

class ReprWriter {
 public:
  ReprWriter(const Profile& profile, const TreeOptions& options, const ExtraReprs& extra)
      : profile_(profile), options_(options), extra_(extra) {}

  std::string write(const Node& node, int depth = 0) const {
    const Layer& layer = profile_.layers[static_cast<std::size_t>(node.layers.front())];
    const std::string type = clean(layer.type, options_.ascii);
    std::vector<std::string> lines = own_lines(layer);
    const bool is_leaf = lines.size() <= 1 && node.children.empty();
    if (is_leaf) return fmt::format("{}({})", type, lines.empty() ? "" : lines.front());
    if (options_.depth >= 0 && depth >= options_.depth && !node.children.empty()) {
      lines.push_back(fmt::format("{} {} below", format_count(std::uint64_t{node.below}),
                                  node.below == 1 ? "layer" : "layers"));
    } else {
      for (const Node& child : node.children) {
        if (!profile_.layers[static_cast<std::size_t>(child.layers.front())].registered) continue;
        lines.push_back(fmt::format("({}): {}", clean(child.first_name, options_.ascii),
                                    write(child, depth + 1)));
      }
    }
    std::string out = type + "(\n";
    for (const std::string& line : lines) out += indented(line);
    return out + ')';
  }

 private:
  static std::string indented(std::string_view lines) {
    std::string out;
    for (std::size_t begin = 0; begin <= lines.size();) {
      const std::size_t end = std::min(lines.find('\n', begin), lines.size());
      out += fmt::format("  {}\n", lines.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }

  // What the module says of itself, and its times behind that.
  std::vector<std::string> own_lines(const Layer& layer) const {
    std::vector<std::string> lines;
    if (const auto found = extra_.find(layer.path); found != extra_.end()) {
      std::string_view rest = found->second;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        lines.push_back(clean(rest.substr(0, end), options_.ascii));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    const std::string times = times_text(layer);
    if (times.empty()) return lines;
    if (lines.size() == 1) {
      lines.front() += ", " + times;
    } else {
      lines.push_back(times);
    }
    return lines;
  }

  // Nothing of what was not called: a list's members may have been, which say so themselves.
  std::string times_text(const Layer& layer) const {
    if (layer.calls == 0 || profile_.run.summary) return "";
    const Figures figures = figures_of(layer);
    std::vector<std::string> parts;
    const auto add = [&](std::string_view what, double ns) {
      parts.push_back(fmt::format("{}: {:.3f}ms", what, ns / 1e6));
    };
    add("Forward Time", figures.forward_ns);
    if (figures.backward_ns > 0) add("Backward Time", figures.backward_ns);
    if (!profile_.run.device.empty()) {
      const GpuTimes gpu = gpu_times(profile_, figures);
      add("GPU Forward Time", gpu.forward_ns);
      if (gpu.backward_ns > 0) add("GPU Backward Time", gpu.backward_ns);
    }
    return fmt::format("{}", fmt::join(parts, "|"));
  }

  const Profile& profile_;
  const TreeOptions& options_;
  const ExtraReprs& extra_;
};

}  // namespace
}  // namespace report

std::string repr_tree(const Profile& profile, const TreeOptions& options, const ExtraReprs& extra) {
  const std::vector<int> roots = report::roots_of(profile, options.start);
  if (roots.empty() && !options.start.empty())
    return report::unknown_layer(profile, options.start, options.ascii);
  const report::Filtered filtered = report::filter_layers(profile, options, roots);
  if (filtered.passed == 0 && !filtered.sentence.empty()) return filtered.sentence + '\n';
  const report::ReprWriter writer(profile, options, extra);
  std::string out = report::simulation_note(profile.run, options.ascii);
  if (!out.empty()) out += '\n';
  for (const report::Node& node :
       report::make_nodes(profile, roots, false, options.sort, filtered.shown)) {
    const Layer& layer = profile.layers[static_cast<std::size_t>(node.layers.front())];
    if (layer.registered) out += writer.write(node) + '\n';
  }
  return out;
}

}  // namespace layertrace
