#include "torch/call_watch.h"

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "torch/module_registry.h"
#include "torch/tensor_facts.h"
#include "torch/torch_hooks.h"

namespace layertrace {

thread_local CallWatch call_watch __attribute__((tls_model("initial-exec")));

void tell_call(const torch::nn::Module& module, LayerId layer, detail::CallValues inputs) noexcept {
  call_watch.awaits = false;
  try {
    detail::Tensors tensors;
    inputs.find(inputs.values, tensors);
    std::uint64_t key = key_of_layer(index(layer), module.is_training());
    for (const at::Tensor* tensor : tensors) {
      if (tensor->defined()) key = mix_shape(key, *tensor->unsafeGetTensorImpl());
    }
    if (const auto registry = ModuleRegistry::active()) registry->meet_call(key);
  } catch (...) {  // no memory to list them
  }
}

void watch_outermost(ThreadState& thread, const torch::nn::Module& module, LayerId layer,
                     detail::CallValues inputs) noexcept {
  CallWatch& watch = call_watch;
  watch.awaits = inputs.find == nullptr;
  if (watch.awaits) return;
  const ModuleCacheEntry& cached = thread.module_cache(&module, kNoLayer);
  const LayerId root = cached.layer == layer ? cached.root : layer;
  const std::uint32_t step = TorchHooks::steps.load(std::memory_order_relaxed);
  const bool is_part = step == watch.step && root == watch.root && layer != watch.layer;
  if (is_part && layer != root) return;
  watch = {false, step, root, layer};
  tell_call(module, layer, inputs);
}

}  // namespace layertrace
