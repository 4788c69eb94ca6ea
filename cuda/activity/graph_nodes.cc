#include "activity/graph_nodes.h"

#include <utility>

namespace layertrace::cuda {

void GraphNodes::created(std::uint64_t node, std::uint64_t frame) noexcept {
  const std::lock_guard lock(mutex_);
  if (frames_.size() >= kMost) return;
  try {
    frames_[node] = frame;
    fresh_.push_back({node, frame});
  } catch (...) {  // no memory: it counts as captured earlier
  }
}

void GraphNodes::cloned(std::uint64_t node, std::uint64_t original) noexcept {
  std::uint64_t frame = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto known = frames_.find(original);
    if (known == frames_.end()) return;
    frame = known->second;
  }
  created(node, frame);
}

std::vector<DeviceGraphNode> GraphNodes::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fresh_, {});
}

}  // namespace layertrace::cuda
