// A layer's backward is a run of consecutive autograd nodes that its forward call made, nested as
// the calls were. Marks of such a run are opened and closed here, as the nodes come.
//
// A node may run nodes itself (a reentrant backward): theirs are runs of their own, inside it. So
// the runs of a thread are a stack, too; `base` is where the innermost begins.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "capture/layer_marks.h"
#include "capture/live_calls.h"
#include "record/ids.h"

namespace layertrace {

class BackwardRun {
 public:
  explicit BackwardRun(LayerMarks* marks) noexcept : marks_(marks) {}

  std::uint32_t depth() const noexcept { return depth_; }
  LayerId top() const noexcept { return depth_ != 0 ? calls_[depth_ - 1].layer : kNoLayer; }

  // A node inside these calls begins: what it shares with the run so far stays open.
  void go_on(const LayerChain& chain, std::uint32_t base) noexcept;
  // A node that adds to a parameter of the last of these layers, in which it lies. No call is
  // known: it stays in the open run of its layer, or goes beside what surrounds it.
  void go_on_in_layer(std::span<const LayerId> ancestors, std::uint32_t base) noexcept;
  // Closes all above that depth.
  void close(std::uint32_t depth) noexcept {
    while (depth_ > depth) end();
  }

 private:
  void begin(LayerCall call) noexcept;
  void end() noexcept;

  LayerMarks* const marks_;
  std::uint32_t depth_ = 0;
  std::array<LayerCall, 2 * LayerChain::kMost> calls_;
};

}  // namespace layertrace
