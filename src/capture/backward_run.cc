#include "capture/backward_run.h"

#include <algorithm>

namespace layertrace {

void BackwardRun::begin(LayerCall call) noexcept {
  if (depth_ == calls_.size()) return;  // nested beyond any model
  calls_[depth_++] = call;
  marks_->begin_layer(call.layer, Phase::kBackward, 0);
}

void BackwardRun::end() noexcept {
  --depth_;
  marks_->end();
}

void BackwardRun::go_on(const LayerChain& chain, std::uint32_t base) noexcept {
  std::uint32_t shared = 0;
  for (; shared < chain.count && base + shared < depth_; ++shared) {
    LayerCall& open = calls_[base + shared];
    const LayerCall& call = chain.calls[shared];
    if (open.layer != call.layer) break;
    if (open.number == 0) open.number = call.number;
    if (open.number != call.number && call.number != 0) break;
  }
  close(base + shared);
  for (; shared < chain.count; ++shared) begin(chain.calls[shared]);
}

void BackwardRun::go_on_in_layer(std::span<const LayerId> ancestors, std::uint32_t base) noexcept {
  std::uint32_t keep = base;
  while (keep < depth_ && std::ranges::find(ancestors, calls_[keep].layer) != ancestors.end())
    ++keep;
  close(keep);
  if (depth_ == base || top() != ancestors.back()) begin({ancestors.back(), 0});
}

}  // namespace layertrace
