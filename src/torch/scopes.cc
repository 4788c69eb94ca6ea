#include "torch/scopes.h"

#include <torch/nn/module.h>

#include <cstring>
#include <exception>

#include "torch/module_registry.h"
#include "torch/sequence.h"

namespace layertrace {
namespace {

const torch::nn::Module* current_module(const ThreadState& thread) noexcept {
  return static_cast<const torch::nn::Module*>(thread.current_module());
}

// The first meeting of this thread and this module from this caller.
LayerId look_up(const ThreadState& thread, const torch::nn::Module& module, LayerId caller) noexcept {
  try {
    if (const auto registry = ModuleRegistry::active()) {
      return registry->find(module, caller, current_module(thread));
    }
  } catch (...) {  // no memory for the entry
  }
  return kNoLayer;
}

detail::Entry entry(ThreadState::Place place) noexcept {
  return {place.depth, place.window, std::uncaught_exceptions()};
}

std::uint8_t phase_of_region(std::string_view name) noexcept {
  for (const Phase phase : {Phase::kLoss, Phase::kOptimizer, Phase::kCommunication, Phase::kData}) {
    if (name == phase_name(phase)) return static_cast<std::uint8_t>(phase);
  }
  return kNoPhase;
}

}  // namespace

LayerId layer_of(ThreadState& thread, const torch::nn::Module& module) noexcept {
  const void* vtable = nullptr;
  std::memcpy(&vtable, static_cast<const void*>(&module), sizeof(vtable));
  const LayerId caller = thread.current_layer();
  ModuleCacheEntry& cached = thread.module_cache(&module);
  if (cached.module != &module || cached.vtable != vtable || cached.parent != caller) [[unlikely]] {
    const LayerId layer = look_up(thread, module, caller);
    if (layer == kNoLayer) return kNoLayer;
    cached = {&module, vtable, caller, layer};
  }
  return cached.layer;
}

detail::Entry InterposedScope::enter(const torch::nn::Module* module) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr || (thread->depth() != 0 && thread->top().module == module)) return {};
  return detail::enter_module(module);
}

detail::Entry InterposedRegion::enter(NameId name, Phase phase) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  return entry(thread->enter_region(name, static_cast<std::uint8_t>(phase), next_sequence()));
}

namespace detail {

Entry enter_module(const torch::nn::Module* module) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr || module == nullptr) return {};
  const LayerId layer = layer_of(*thread, *module);
  if (layer == kNoLayer) {
    thread->shared().count_lost(2);
    return {};
  }
  return entry(thread->enter_scope(layer, module, next_sequence()));
}

Entry enter_region(std::string_view name) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  try {
    return entry(thread->enter_region(NameTable::instance().intern(name), phase_of_region(name), next_sequence()));
  } catch (...) {  // no memory for the name
    return {};
  }
}

void leave(Entry entry) noexcept {
  ThreadState* thread = recorder::last_state();
  if (thread == nullptr) return;
  thread->leave({entry.depth, entry.window}, next_sequence(), std::uncaught_exceptions() > entry.exceptions);
}

}  // namespace detail
}  // namespace layertrace
