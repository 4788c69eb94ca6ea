// Graphs of work: recorded once, launched many times.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/observer.h"
#include "core/timeline.h"

namespace simgpu {

struct Event;

// What a kernel, a copy or a fill is before it has its place in time.
struct Task {
  Activity activity;
  std::uint64_t duration_ns = 0;
  Engine engine = Engine::kCompute;
};

struct Node {
  enum class Kind : std::uint8_t {
    kKernel,
    kCopy,
    kFill,
    kHost,
    kChild,
    kEmpty,
    kWaitEvent,
    kRecordEvent,
    kConditional,
  };
  static constexpr int kAll = -1;
  Kind kind = Kind::kEmpty;
  std::uint64_t id = 0;
  Task task;                     // of a kernel, a copy or a fill
  std::function<void()> effect;  // what it does to memory, or the host's function
  Event* event = nullptr;
  std::vector<Node*> after;                    // what it waits for
  std::vector<std::unique_ptr<Graph>> bodies;  // of a child, and of a conditional node
  int chosen = kAll;                           // which of them runs
};

Node::Kind node_kind(const Task& task) noexcept;

// Something of the program that a graph keeps alive.
class UserObject {
 public:
  UserObject(void* object, void (*destroy)(void*), unsigned references)
      : object_(object), destroy_(destroy), references_(references) {}
  void retain(unsigned count) noexcept { references_.fetch_add(count); }
  // The last one destroys what it stands for, and itself.
  void release(unsigned count) noexcept;

 private:
  void* object_;
  void (*destroy_)(void*);
  std::atomic<unsigned> references_;
};

struct Graph {
  std::uint32_t id = 0;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<UserObject*> user_objects;

  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;  // nodes refer to each other
  Graph& operator=(const Graph&) = delete;
};

// A node in the order of its launch, its children's nodes in its place.
struct PlannedNode {
  Node* node = nullptr;            // nullptr: joins what a child graph consists of
  std::vector<std::size_t> after;  // by place in the plan
};

struct GraphExec {
  std::uint32_t id = 0;
  std::unique_ptr<Graph> graph;  // a copy of the one it was made from
  std::vector<PlannedNode> plan;
  std::atomic<std::uint64_t> busy_until_ns{0};
};

// In an order in which each follows what it waits for. Empty if there is none, for a graph that is
// not.
std::vector<PlannedNode> plan_of(const Graph& graph);

}  // namespace simgpu
