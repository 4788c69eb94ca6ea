// With which shapes is a model called? Where operators are counted once for calls that are alike
// (see counting_plan.h), somebody has to tell the calls of a model apart.
//
// It is the outermost call of a module that tells. A module of one's own may not say what goes in:
// then the first call inside that does stands for it. One may not be seen at all (it has no scope):
// then its layers are the outermost, and of those of one model the first in a step stands for all;
// when that is called again, so is the model.
#pragma once

#include <layertrace/layertrace.h>

#include "capture/recorder.h"

namespace torch::nn {
class Module;
}

namespace layertrace {

struct CallWatch {
  bool awaits = false;  // the outermost call has said nothing of its inputs, nor has one inside
  std::uint32_t step = 0;
  LayerId root = kNoLayer;  // the model, and the layer that stands for it
  LayerId layer = kNoLayer;
};
extern thread_local CallWatch call_watch __attribute__((tls_model("initial-exec")));

void watch_outermost(ThreadState& thread, const torch::nn::Module& module, LayerId layer,
                     detail::CallValues inputs) noexcept;
void tell_call(const torch::nn::Module& module, LayerId layer, detail::CallValues inputs) noexcept;

// The module is about to be entered.
inline void watch_call(ThreadState& thread, const torch::nn::Module& module, LayerId layer,
                       detail::CallValues inputs) noexcept {
  if (thread.current_layer() == kNoLayer) {
    watch_outermost(thread, module, layer, inputs);
  } else if (call_watch.awaits && inputs.find != nullptr) [[unlikely]] {
    tell_call(module, layer, inputs);
  }
}

}  // namespace layertrace
