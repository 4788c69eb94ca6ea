#include "attribute/operator_times.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace layertrace {

OperatorTimes::Stack OperatorTimes::add_node(Stack around, NameId name) {
  if (nodes_.size() >= kMostNodes) return around;
  const auto stack = static_cast<Stack>(nodes_.size());
  nodes_.push_back({.around = around, .name = name});
  return stack;
}

OperatorTimes::Stack OperatorTimes::enter(Stack around, NameId name) {
  if (name == kNoName) return around;
  if (around == 0) {
    const std::size_t at = index(name);
    if (at >= outermost_.size()) outermost_.resize(at + 1);
    if (outermost_[at] == 0) outermost_[at] = add_node(0, name);
    return outermost_[at];
  }
  unsigned siblings = 0;
  for (Stack at = nodes_[around].first; at != 0; at = nodes_[at].next) {
    if (nodes_[at].name == name) return at;
    if (++siblings >= kMostSiblings) return around;
  }
  const Stack stack = add_node(around, name);
  if (stack == around) return around;
  nodes_[stack].next = nodes_[around].first;
  nodes_[around].first = stack;
  return stack;
}

std::vector<Operator> OperatorTimes::list(const Dictionary& dictionary, double steps) const {
  std::unordered_map<std::string_view, Operator> by_name;
  for (const Node& node : nodes_) {
    if (node.name == kNoName || node.calls == 0) continue;
    const std::string& name = dictionary.names[index(node.name)];
    Operator& op = by_name[name];
    op.name = name;
    op.counted = false;
    op.calls += static_cast<double>(node.calls) / steps;
  }
  std::vector<Operator> operators;
  operators.reserve(by_name.size());
  for (auto& [name, op] : by_name) operators.push_back(std::move(op));
  return operators;
}

void OperatorTimes::fill(std::vector<Operator>& operators, const Dictionary& dictionary,
                         double steps) const {
  const bool none_counted = operators.empty();
  if (none_counted) operators = list(dictionary, steps);
  std::unordered_map<std::string_view, Operator*> listed;
  for (Operator& op : operators) listed.emplace(op.name, &op);
  // What is inside comes after what is around it.
  std::vector<Operator*> owners(nodes_.size());
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const auto known = listed.find(dictionary.names[index(nodes_[i].name)]);
    owners[i] = known != listed.end() ? known->second : owners[nodes_[i].around];
    if (owners[i] != nullptr) owners[i]->host_ns += static_cast<double>(nodes_[i].self_ns) / steps;
  }
  if (!none_counted) return;
  std::ranges::sort(operators, [](const Operator& a, const Operator& b) {
    return std::tie(b.host_ns, a.name) < std::tie(a.host_ns, b.name);
  });
}

}  // namespace layertrace
