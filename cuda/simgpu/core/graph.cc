#include "core/graph.h"

#include <unordered_map>
#include <utility>

namespace simgpu {
namespace {

class Planner {
 public:
  // Adds a graph's nodes behind `before`; gives what stands for its end. False: they wait for each
  // other.
  bool add(const Graph& graph, std::size_t before, bool has_before, std::size_t* end) {
    std::unordered_map<const Node*, std::size_t> places;
    std::vector<bool> done(graph.nodes.size(), false);
    std::unordered_map<const Node*, bool> is_awaited;
    std::size_t left = graph.nodes.size();
    while (left != 0) {
      const std::size_t left_before = left;
      for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node* node = graph.nodes[i].get();
        if (done[i] || !is_ready(*node, places)) continue;
        done[i] = true;
        --left;
        PlannedNode planned{node, {}};
        for (const Node* each : node->after) {
          planned.after.push_back(places[each]);
          is_awaited[each] = true;
        }
        if (node->after.empty() && has_before) planned.after.push_back(before);
        plan_.push_back(std::move(planned));
        std::size_t place = plan_.size() - 1;
        for (int body = 0; std::cmp_less(body, node->bodies.size()); ++body) {
          if (node->chosen != Node::kAll && node->chosen != body) continue;
          if (!add(*node->bodies[static_cast<std::size_t>(body)], place, true, &place))
            return false;
        }
        places[node] = place;
      }
      if (left == left_before) return false;
    }
    PlannedNode join{nullptr, {}};
    for (const auto& node : graph.nodes) {
      if (!is_awaited[node.get()]) join.after.push_back(places[node.get()]);
    }
    if (join.after.empty() && has_before) join.after.push_back(before);
    plan_.push_back(std::move(join));
    *end = plan_.size() - 1;
    return true;
  }

  std::vector<PlannedNode> take() { return std::move(plan_); }

 private:
  static bool is_ready(const Node& node,
                       const std::unordered_map<const Node*, std::size_t>& places) {
    for (const Node* each : node.after) {
      if (!places.contains(each)) return false;
    }
    return true;
  }

  std::vector<PlannedNode> plan_;
};

}  // namespace

Node::Kind node_kind(const Task& task) noexcept {
  switch (task.activity.kind) {
    case Activity::Kind::kKernel:
      return Node::Kind::kKernel;
    case Activity::Kind::kCopy:
      return Node::Kind::kCopy;
    case Activity::Kind::kFill:
      return Node::Kind::kFill;
  }
  return Node::Kind::kEmpty;
}

void UserObject::release(unsigned count) noexcept {
  if (references_.fetch_sub(count) != count) return;
  destroy_(object_);
  delete this;
}

Graph::~Graph() {
  for (UserObject* object : user_objects) object->release(1);
}

std::vector<PlannedNode> plan_of(const Graph& graph) {
  Planner planner;
  std::size_t end = 0;
  if (!planner.add(graph, 0, false, &end)) return {};
  return planner.take();
}

}  // namespace simgpu
