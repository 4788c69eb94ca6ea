#include "capture/live_calls.h"

#include <algorithm>

namespace layertrace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

// Fields are released and acquired one by one: who reads a new one also sees that the old call or
// node is gone. (Fences would do as well, but ThreadSanitizer does not know them.)

std::uint64_t LiveCalls::open(std::uint64_t sequence, LayerId layer, std::uint64_t parent,
                              bool in_node) noexcept {
  const std::uint64_t number = newest_.load(memory_order_relaxed) + 1;
  // Before its fields, so that they are not taken for the old one's.
  newest_.store(number, memory_order_relaxed);
  Call& call = at(number);
  call.begin.store(sequence, memory_order_release);
  call.end.store(kOpen, memory_order_release);
  call.parent.store(parent, memory_order_release);
  call.layer.store(layer, memory_order_release);
  call.in_node.store(in_node, memory_order_release);
  ready_.store(number, memory_order_release);
  return number;
}

void LiveCalls::close(std::uint64_t call, std::uint64_t sequence) noexcept {
  // After too many others its place is one of theirs.
  if (newest_.load(memory_order_relaxed) - call < kCalls)
    at(call).end.store(sequence, memory_order_release);
}

void LiveCalls::add_node(std::uint64_t begin, std::uint64_t end, LayerId owner) noexcept {
  const std::uint64_t number = node_count_.load(memory_order_relaxed);
  NodeInterval& node = nodes_[number % kNodes];
  node.end.store(0, memory_order_relaxed);  // holds nothing while it changes
  node.begin.store(begin, memory_order_release);
  node.owner.store(owner, memory_order_release);
  node.end.store(end, memory_order_release);
  node_count_.store(number + 1, memory_order_release);
}

bool LiveCalls::find(std::uint64_t sequence, LayerChain& chain) const noexcept {
  chain.count = 0;
  const std::uint64_t newest = ready_.load(memory_order_acquire);
  const std::uint64_t oldest = newest > kCalls ? newest - kCalls + 1 : 1;
  std::uint64_t call = innermost(sequence, oldest, newest);
  const std::uint64_t begin = at(call).begin.load(memory_order_acquire);
  const std::uint64_t end = at(call).end.load(memory_order_acquire);
  while (call != 0 && call >= oldest) {
    const Call& around = at(call);
    chain.add({around.layer.load(memory_order_acquire), call});
    if (around.in_node.load(memory_order_acquire)) break;
    call = around.parent.load(memory_order_acquire);
  }
  const bool overwritten = newest_.load(memory_order_relaxed) >= oldest + kCalls;
  if (overwritten) chain.count = 0;
  Made made;
  if (find_among_nodes(sequence, made)) {
    // It ran inside the call, or the call inside it; where both made the same, as checkpoints do.
    const bool is_inner =
        made.begin >= begin && made.end <= end && (made.begin != begin || made.end != end);
    if (chain.count == 0 || is_inner) {
      chain.calls[0] = {made.owner, 0};
      chain.count = 1;
      return made.owner != kNoLayer;
    }
  }
  std::reverse(chain.calls.begin(), chain.calls.begin() + static_cast<std::ptrdiff_t>(chain.count));
  return chain.count != 0;
}

// Calls come in order of their begin, so this is a binary search and a walk to the parents.
std::uint64_t LiveCalls::innermost(std::uint64_t sequence, std::uint64_t oldest,
                                   std::uint64_t newest) const noexcept {
  std::uint64_t low = oldest;
  std::uint64_t high = newest + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle).begin.load(memory_order_acquire) <= sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::uint64_t call = low - 1;
  while (call >= oldest && call != 0 && at(call).end.load(memory_order_acquire) <= sequence)
    call = at(call).parent.load(memory_order_acquire);
  return call >= oldest ? call : 0;
}

bool LiveCalls::find_among_nodes(std::uint64_t sequence, Made& made) const noexcept {
  const std::uint64_t count = node_count_.load(memory_order_acquire);
  // The oldest first: a node inside another ends, and comes here, before it.
  for (std::uint64_t i = count > kNodes ? count - kNodes : 0; i != count; ++i) {
    const NodeInterval& node = nodes_[i % kNodes];
    const std::uint64_t end = node.end.load(memory_order_acquire);
    const std::uint64_t begin = node.begin.load(memory_order_acquire);
    if (end <= sequence || begin > sequence) continue;
    const LayerId owner = node.owner.load(memory_order_acquire);
    if (node.end.load(memory_order_relaxed) != end) continue;  // overwritten meanwhile
    made = {begin, end, owner};
    return true;
  }
  return false;
}

}  // namespace layertrace
