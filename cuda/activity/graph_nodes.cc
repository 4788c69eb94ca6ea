#include "activity/graph_nodes.h"

#include <utility>

namespace layertrace::cuda {

void GraphNodes::created(std::uint64_t node, std::uint64_t frame) noexcept {
  const std::lock_guard lock(mutex_);
  if (frames_.size() >= kMost) return;
  try {
    if (frames_.try_emplace(node, frame).second) fresh_.push_back({node, frame});
  } catch (...) {  // no memory: it counts as captured earlier
  }
}

void GraphNodes::cloned(std::uint64_t node, std::uint64_t original) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = frames_.find(original);
  if (known == frames_.end() || frames_.size() >= kMost) return;
  try {
    const std::uint64_t frame = known->second;
    frames_[node] = frame;
    fresh_.push_back({node, frame});
  } catch (...) {
  }
}

std::vector<DeviceGraphNode> GraphNodes::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fresh_, {});
}

}  // namespace layertrace::cuda
