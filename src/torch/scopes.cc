#include "torch/scopes.h"

#include <torch/nn/module.h>

#include <exception>
#include <utility>

#include "base/vtable.h"
#include "torch/auto_session.h"
#include "torch/call_watch.h"
#include "torch/libtorch_modules.h"
#include "torch/module_identity.h"
#include "torch/module_registry.h"
#include "torch/open_norm.h"
#include "torch/sequence.h"
#include "torch/torch_hooks.h"

namespace layertrace {
namespace {

// The first meeting of this thread and this module from this caller.
LayerId look_up(const ThreadState& thread, const torch::nn::Module& module,
                LayerId caller) noexcept {
  try {
    if (const auto registry = ModuleRegistry::active()) {
      // A session of another language's modules may meet one of LibTorch's all the same.
      if (!registry->is_of_libtorch()) return registry->find_foreign(type_name(module), caller);
      return registry->find(&module, caller, thread.current_module()).layer;
    }
  } catch (...) {  // no memory for the entry
  }
  return kNoLayer;
}

std::uint8_t phase_of_region(std::string_view name) noexcept {
  for (const Phase phase : {Phase::kLoss, Phase::kOptimizer, Phase::kCommunication, Phase::kData}) {
    if (name == phase_name(phase)) return static_cast<std::uint8_t>(phase);
  }
  return kNoPhase;
}

}  // namespace

thread_local OpenNorm open_norm __attribute__((tls_model("initial-exec")));

bool is_on_top(const OpenNorm& norm) noexcept {
  const ThreadState* thread = recorder::last_state();
  const auto [depth, window] = place_of(norm.entry);
  return thread != nullptr && thread->depth() != 0 && thread->depth() == depth &&
         thread->top().window == window && thread->top().module == norm.module;
}

void close_abandoned_norm_slow() noexcept {
  const OpenNorm norm = std::exchange(open_norm, {});
  if (norm.call != nullptr) detail::abandon_call(norm.call);
  if (!is_on_top(norm)) return;
  recorder::last_state()->leave(place_of(norm.entry), next_sequence(),
                                /*thrown=*/true);
}

LayerId layer_of(ThreadState& thread, const torch::nn::Module& module) noexcept {
  const void* vtable = vtable_of(&module);
  const LayerId caller = thread.current_layer();
  ModuleCacheEntry& cached = thread.module_cache(&module, caller);
  if (cached.module != &module || cached.vtable != vtable || cached.parent != caller ||
      !has_owner(module, cached.owner)) [[unlikely]] {
    const LayerId layer = look_up(thread, module, caller);
    if (layer == kNoLayer) return kNoLayer;
    const LayerId root = thread.shared().definitions().try_root(layer);
    cached = {&module, vtable, module.weak_from_this(), caller, layer, root};
  }
  return cached.layer;
}

detail::Entry InterposedScope::enter(const torch::nn::Module* module,
                                     detail::CallValues inputs) noexcept {
  auto_session::on_layer();
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  close_abandoned_norm();
  if (thread->current_module() == module) return {};
  return detail::enter_module(module, inputs);
}

detail::Entry InterposedRegion::enter(NameId name, Phase phase) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  close_abandoned_norm();
  return entry_at(thread->enter_region(name, static_cast<std::uint8_t>(phase), next_sequence()));
}

namespace detail {

Entry enter_module(const torch::nn::Module* module, CallValues inputs) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr || module == nullptr) return {};
  close_abandoned_norm();
  const LayerId layer = layer_of(*thread, *module);
  if (layer == kNoLayer) {
    thread->shared().count_lost(2);
    return {};
  }
  if (TorchHooks::wants_calls.load(std::memory_order_relaxed))
    watch_call(*thread, *module, layer, inputs);
  return entry_at(thread->enter_scope(layer, module, next_sequence()));
}

Entry enter_region(std::string_view name) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  close_abandoned_norm();
  try {
    return entry_at(thread->enter_region(NameTable::instance().intern(name), phase_of_region(name),
                                         next_sequence()));
  } catch (...) {  // no memory for the name
    return {};
  }
}

void leave(Entry entry) noexcept {
  ThreadState* thread = recorder::last_state();
  if (thread == nullptr) return;
  thread->leave(place_of(entry), next_sequence(), std::uncaught_exceptions() > entry.exceptions);
}

}  // namespace detail
}  // namespace layertrace
