// Which call of a layer made autograd node number n? Attribution finds out afterwards from records
// (attribute/intervals.h). But ranges for other tools and events on a device's streams must know it
// while the node runs, on whichever thread.
//
// One thread's calls, as it makes them. The thread writes without a lock; any other may ask. Only
// the last so many are known: a node of an older call has no answer, and of the calls around a
// node those that are older are left out. What a reader sees of a call
// that is overwritten meanwhile is thrown away.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "record/ids.h"

namespace layertrace {

// A call of a layer; number 0 where it is not known which.
struct LayerCall {
  LayerId layer = kNoLayer;
  std::uint64_t number = 0;
};

// Nested calls, the outermost first; as many as fit.
struct LayerChain {
  static constexpr std::size_t kMost = 64;
  std::array<LayerCall, kMost> calls;
  std::size_t count = 0;

  void add(LayerCall call) noexcept {
    if (count < kMost) calls[count++] = call;
  }
};

class LiveCalls {
 public:
  static constexpr std::size_t kCalls = std::size_t{1} << 14;
  static constexpr std::size_t kNodes = 256;

  // ---- The thread itself ----

  // A call begins; the next node made has this number. `parent` is what open() gave for the call
  // around it, 0 for none. `in_node`: a node runs between the two, so that only their order is
  // known.
  std::uint64_t open(std::uint64_t sequence, LayerId layer, std::uint64_t parent,
                     bool in_node = false) noexcept;
  void close(std::uint64_t call, std::uint64_t sequence) noexcept;
  // A node that has made nodes itself, outside any call inside it (double backward): they are its
  // owner's, kNoLayer where it has none.
  void add_node(std::uint64_t begin, std::uint64_t end, LayerId owner) noexcept;

  // ---- Any thread ----

  // Fills in the calls around the node; false where none is known.
  bool find(std::uint64_t sequence, LayerChain& chain) const noexcept;

 private:
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};
  struct Call {
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> end{kOpen};
    std::atomic<std::uint64_t> parent{0};
    std::atomic<LayerId> layer{kNoLayer};
    std::atomic<bool> in_node{false};
  };
  // Of a node, as a reader found it.
  struct Made {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    LayerId owner = kNoLayer;
  };
  struct NodeInterval {
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> end{0};
    std::atomic<LayerId> owner{kNoLayer};
  };

  // Calls are numbered from 1.
  Call& at(std::uint64_t call) noexcept { return calls_[call % kCalls]; }
  const Call& at(std::uint64_t call) const noexcept { return calls_[call % kCalls]; }
  std::uint64_t innermost(std::uint64_t sequence, std::uint64_t oldest,
                          std::uint64_t newest) const noexcept;
  bool find_among_nodes(std::uint64_t sequence, Made& made) const noexcept;

  std::unique_ptr<Call[]> calls_ = std::make_unique<Call[]>(kCalls);
  std::atomic<std::uint64_t> newest_{0};  // begun to be written
  std::atomic<std::uint64_t> ready_{0};   // written: what a reader may look at
  std::array<NodeInterval, kNodes> nodes_;
  std::atomic<std::uint64_t> node_count_{0};
};

}  // namespace layertrace
