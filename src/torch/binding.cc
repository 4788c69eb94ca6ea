#include <layertrace/binding.h>

#include "capture/recorder.h"
#include "torch/module_registry.h"
#include "torch/reported_regions.h"
#include "torch/scopes.h"
#include "torch/sequence.h"
#include "torch/session_starter.h"
#include "torch/tensor_facts.h"
#include "torch/torch_hooks.h"

namespace layertrace::binding {

ModuleSource::~ModuleSource() = default;

Result<Session> start(std::shared_ptr<ModuleSource> source, const Models& models, Options options) {
  return SessionStarter::start(std::move(source), models, std::move(options));
}

std::uint32_t current_layer() noexcept {
  const ThreadState* thread = recorder::this_thread();
  return thread != nullptr ? index(thread->current_layer()) : kNoLayer;
}

Found find(Module module) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return {};
  try {
    if (const auto registry = ModuleRegistry::active()) {
      const auto found = registry->find(module, thread->current_layer(), thread->current_module());
      return {index(found.layer), found.folded, found.for_now};
    }
  } catch (...) {  // what the source could not tell, or no memory for the entry
  }
  thread->shared().count_lost(2);
  return {};
}

void add_parameter(Module module, const ModuleSource::OwnTensor& tensor) noexcept {
  try {
    if (const auto registry = ModuleRegistry::active()) registry->add_parameter(module, tensor);
  } catch (...) {  // no memory for it: its gradient will be nobody's
  }
}

std::uint64_t begin_key(std::uint32_t layer, bool is_training) noexcept {
  return key_of_layer(layer, is_training);
}

std::uint64_t mix_shape(std::uint64_t key, const void* tensor) noexcept {
  return layertrace::mix_shape(key, *static_cast<const c10::TensorImpl*>(tensor));
}

void append_shape(std::string& text, const void* tensor) {
  layertrace::append_shape(text, *static_cast<const c10::TensorImpl*>(tensor));
}

bool counting() noexcept { return TorchHooks::is_counting.load(std::memory_order_relaxed); }

bool wants_calls() noexcept { return TorchHooks::wants_calls.load(std::memory_order_relaxed); }

void meet_call(std::uint64_t key) noexcept {
  if (const auto registry = ModuleRegistry::active()) registry->meet_call(key);
}

void note_shapes(std::string_view shapes, bool is_output) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return;
  try {
    // Operators and regions need names, too, of which there is a bounded number.
    const bool is_room = NameTable::instance().size() < NameTable::kMaxNames / 2;
    thread->note_shapes(NameTable::instance().intern(is_room ? shapes : "…"), is_output);
  } catch (...) {  // no memory for the name
  }
}

void tell_optimizer(const void* optimizer, std::uint64_t state_bytes) noexcept {
  if (ThreadState* thread = recorder::this_thread())
    thread->shared().tell_optimizer(optimizer, state_bytes);
}

detail::Entry enter(std::uint32_t layer, Module module) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr || layer == kNoLayer) return {};
  return told_entry_at(thread->enter_scope(LayerId{layer}, module, next_sequence()));
}

detail::Entry enter_reported(std::string_view name) noexcept {
  ThreadState* thread = recorder::this_thread();
  return thread != nullptr ? told_entry_at(enter_reported_region(*thread, name)) : detail::Entry{};
}

void leave(detail::Entry entry, bool thrown) noexcept {
  if (ThreadState* thread = recorder::last_state())
    thread->leave(place_of(entry), next_sequence(), thrown);
}

}  // namespace layertrace::binding
