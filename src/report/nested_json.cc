// nested_json(): the layers with their times inside each other, as the model has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/figures.h"
#include "report/filter.h"
#include "report/fold_blocks.h"
#include "report/json_parts.h"
#include "report/lookup.h"
#include "report/text.h"

namespace layertrace {
namespace report {
namespace {

// PyTorch's own containers; of one that is none of them, null.
Json container_kind(const std::string& type) {
  constexpr std::array<std::string_view, 3> kKinds{"Sequential", "ModuleList", "ModuleDict"};
  const auto* found = std::ranges::find(kKinds, type);
  return found == kKinds.end() ? Json(nullptr) : Json(*found);
}

Json nested(const Profile& profile, const TreeOptions& options, const Node& node, int depth);

// By name. Two of one name can only be there where modules were called that nobody registered.
Json children_json(const Profile& profile, const TreeOptions& options,
                   const std::vector<Node>& nodes, int depth) {
  Json out = Json::object();
  for (const Node& node : nodes) {
    const std::string name = replace_invalid_utf8(node.first_name);
    std::string key = name;
    for (int i = 2; out.contains(key); ++i) key = fmt::format("{} ({})", name, i);
    out[key] = nested(profile, options, node, depth);
  }
  return out;
}

Json nested(const Profile& profile, const TreeOptions& options, const Node& node, int depth) {
  const Layer& layer = profile.layers[static_cast<std::size_t>(node.layers.front())];
  const Figures figures = figures_of(layer);
  const bool was_timed = layer.calls > 0 && !profile.run.summary;
  const auto time = [&](double ns) { return was_timed ? number(ns) : Json(nullptr); };
  Json out = Json::object();
  out["name"] = replace_invalid_utf8(layer.name);
  out["path"] = replace_invalid_utf8(layer.path);
  out["type"] = replace_invalid_utf8(layer.type);
  out["container"] = container_kind(layer.type);
  out["depth"] = depth;
  out["calls"] = number(layer.calls);
  out["forward_ns"] = time(figures.forward_ns);
  out["backward_ns"] = time(figures.backward_ns);
  out["recompute_ns"] = time(figures.recompute_ns);
  if (!profile.run.device.empty()) {
    const GpuTimes gpu = gpu_times(profile, figures);
    out["gpu_forward_ns"] = time(gpu.forward_ns);
    out["gpu_backward_ns"] = time(gpu.backward_ns);
  }
  const bool is_cut = options.depth >= 0 && depth >= options.depth;
  out["children"] =
      children_json(profile, options, is_cut ? std::vector<Node>() : node.children, depth + 1);
  return out;
}

}  // namespace
}  // namespace report

std::string nested_json(const Profile& profile, const TreeOptions& options) {
  const std::vector<int> roots = report::roots_of(profile, options.start);
  if (roots.empty() && !options.start.empty()) {
    std::string unknown = report::unknown_layer(profile, options.start, options.ascii);
    unknown.pop_back();  // its newline
    return report::dump(report::Json{{"error", unknown}}) + '\n';
  }
  const report::Filtered filtered = report::filter_layers(profile, options, roots);
  const auto nodes = report::make_nodes(profile, roots, false, options.sort, filtered.shown);
  report::Json out = report::Json::object();
  if (!profile.run.simulated.empty()) out["simulated"] = profile.run.simulated;
  out.update(nodes.size() == 1
                 ? report::nested(profile, options, nodes.front(), 0)
                 : report::Json{{"children", report::children_json(profile, options, nodes, 0)}});
  return out.dump(1, ' ', false, report::Json::error_handler_t::replace) + '\n';
}

}  // namespace layertrace
