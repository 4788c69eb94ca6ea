// In which scope was a node of a CUDA graph captured?
//
// A kernel that a graph runs was asked for when the graph was captured, perhaps long ago; the
// launch of the graph tells nothing of it. CUPTI calls back when a node is made, on the thread that
// captures it, and when it is copied into a graph that can be run, where it gets another id.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "record/device_record.h"

namespace layertrace::cuda {

class GraphNodes {
 public:
  // Both on any thread. What a node is a copy of says more than where the copy was made.
  void created(std::uint64_t node, std::uint64_t frame) noexcept;
  void cloned(std::uint64_t node, std::uint64_t original) noexcept;

  // Those that came since the last call.
  std::vector<DeviceGraphNode> take_new();

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  std::mutex mutex_;  // capturing is rare
  std::unordered_map<std::uint64_t, std::uint64_t> frames_;
  std::vector<DeviceGraphNode> fresh_;
};

}  // namespace layertrace::cuda
