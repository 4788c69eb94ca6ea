#include "report/fold_blocks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace layertrace::report {
namespace {

constexpr std::size_t kFewestBlocks = 3;

// "block12" as "block" and 12.
struct NumberedName {
  std::string_view stem;
  std::optional<std::uint64_t> number;
};

NumberedName split_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  const std::string_view tail = name.substr(digits);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), number);
  if (error != std::errc()) return {name, std::nullopt};
  return {name.substr(0, digits), number};
}

bool counts_up(std::string_view name, std::string_view next) {
  const NumberedName a = split_number(name);
  const NumberedName b = split_number(next);
  return a.number && b.number && a.stem == b.stem && *a.number + 1 == *b.number;
}

// Names in reading order: "2" before "10".
bool name_before(std::string_view left, std::string_view right) {
  const NumberedName a = split_number(left);
  const NumberedName b = split_number(right);
  if (a.number && b.number && a.stem == b.stem && *a.number != *b.number)
    return *a.number < *b.number;
  return left < right;
}

double sort_value(const Figures& figures, SortKey key) {
  switch (key) {
    case SortKey::kForward:
      return figures.forward_ns;
    case SortKey::kBackward:
      return figures.backward_ns;
    case SortKey::kTotal:
      return figures.total_ns;
    case SortKey::kSelf:
      return figures.self_ns;
    case SortKey::kCalls:
      return figures.calls;
    case SortKey::kActivities:
      return figures.activities;
    case SortKey::kGpu:
      return figures.gpu_total_ns;
    case SortKey::kFlops:
      return figures.flops;
    case SortKey::kBytes:
      return figures.bytes;
    case SortKey::kParams:
      return figures.params;
    case SortKey::kMemory:
      return figures.memory_peak;
    case SortKey::kDefinition:
    case SortKey::kName:
      break;
  }
  return 0;
}

void sort_nodes(std::vector<Node>& nodes, SortKey key) {
  if (key == SortKey::kDefinition) return;
  std::stable_sort(nodes.begin(), nodes.end(), [key](const Node& a, const Node& b) {
    if (key == SortKey::kName) return name_before(a.first_name, b.first_name);
    return sort_value(a.figures, key) > sort_value(b.figures, key);
  });
}

class NodeMaker {
 public:
  NodeMaker(const Profile& profile, bool fold, SortKey sort, const std::vector<bool>& shown)
      : layers_(profile.layers),
        fold_(fold),
        sort_(sort),
        children_(layers_.size()),
        shapes_(layers_.size()),
        below_(layers_.size()) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::ranges::copy_if(layers_[i].children, std::back_inserter(children_[i]),
                           [&](int child) { return shown[static_cast<std::size_t>(child)]; });
    }
    measure_from_the_leaves();
  }

  // The nodes of some siblings. `siblings[i]` are the layers in one place: one, or one of each
  // block being folded.
  std::vector<Node> make(const std::vector<std::vector<int>>& siblings) const {
    std::vector<Node> nodes;
    for (std::size_t begin = 0; begin < siblings.size();) {
      const std::size_t end = fold_ ? end_of_fold(siblings, begin) : begin + 1;
      nodes.push_back(make_node(siblings, begin, end));
      begin = end;
    }
    sort_nodes(nodes, sort_);
    return nodes;
  }

 private:
  // Children come after their parents, so that one pass from the end sees every layer's children
  // before it. Layers of one shape get the same number.
  void measure_from_the_leaves() {
    using Children = std::vector<std::pair<std::string, int>>;
    using Parameters = std::array<std::uint64_t, 3>;
    std::map<std::tuple<std::string, bool, bool, std::string, Parameters, Children>, int> numbers;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      Children children;
      for (const int child : children_[i]) {
        below_[i] += below_[child] + 1;
        children.emplace_back(layers_[child].name, shapes_[child]);
      }
      const Parameters parameters{layer.params, layer.params_trainable, layer.param_bytes};
      auto key = std::tuple(layer.type, layer.ran, layer.registered, layer.shared_with, parameters,
                            std::move(children));
      shapes_[i] = numbers.emplace(std::move(key), static_cast<int>(numbers.size())).first->second;
    }
  }

  // The layers of one place have one shape, so the first speaks for all.
  std::size_t end_of_fold(const std::vector<std::vector<int>>& siblings, std::size_t begin) const {
    const int first = siblings[begin].front();
    const bool bare = split_number(layers_[first].name).stem.empty();
    if (children_[first].empty() && !bare) return begin + 1;
    std::size_t end = begin + 1;
    while (
        end < siblings.size() && shapes_[siblings[end].front()] == shapes_[first] &&
        counts_up(layers_[siblings[end - 1].front()].name, layers_[siblings[end].front()].name)) {
      ++end;
    }
    return end - begin >= kFewestBlocks ? end : begin + 1;
  }

  Node make_node(const std::vector<std::vector<int>>& siblings, std::size_t begin,
                 std::size_t end) const {
    Node node;
    node.blocks = end - begin;
    node.first_name = layers_[siblings[begin].front()].name;
    node.last_name = layers_[siblings[end - 1].front()].name;
    for (std::size_t i = begin; i < end; ++i) {
      node.layers.insert(node.layers.end(), siblings[i].begin(), siblings[i].end());
    }
    std::vector<std::vector<int>> children(children_[node.layers.front()].size());
    for (const int layer : node.layers) {
      node.figures += figures_of(layers_[layer]);
      node.below += below_[layer];
      for (std::size_t i = 0; i < children.size(); ++i) children[i].push_back(children_[layer][i]);
    }
    node.children = make(children);
    return node;
  }

  const std::vector<Layer>& layers_;
  const bool fold_;
  const SortKey sort_;
  std::vector<std::vector<int>> children_;  // that are shown
  std::vector<int> shapes_;
  std::vector<std::size_t> below_;
};

}  // namespace

std::vector<Node> make_nodes(const Profile& profile, const std::vector<int>& roots, bool fold,
                             SortKey sort, const std::vector<bool>& shown) {
  std::vector<std::vector<int>> siblings;
  siblings.reserve(roots.size());
  for (const int root : roots) {
    if (shown[static_cast<std::size_t>(root)]) siblings.push_back({root});
  }
  return NodeMaker(profile, fold, sort, shown).make(siblings);
}

}  // namespace layertrace::report
