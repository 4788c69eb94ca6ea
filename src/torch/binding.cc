#include <layertrace/binding.h>

#include "capture/recorder.h"
#include "torch/module_registry.h"
#include "torch/reported_regions.h"
#include "torch/scopes.h"
#include "torch/sequence.h"
#include "torch/session_starter.h"

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

void add_parameter(Module module, void* tensor) noexcept {
  try {
    if (const auto registry = ModuleRegistry::active()) registry->add_parameter(module, tensor);
  } catch (...) {  // no memory for it: its gradient will be nobody's
  }
}

detail::Entry enter(std::uint32_t layer, Module module) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr || layer == kNoLayer) return {};
  return entry_at(thread->enter_scope(LayerId{layer}, module, next_sequence()));
}

detail::Entry enter_reported(std::string_view name) noexcept {
  ThreadState* thread = recorder::this_thread();
  return thread != nullptr ? entry_at(enter_reported_region(*thread, name)) : detail::Entry{};
}

void leave(detail::Entry entry, bool thrown) noexcept {
  if (ThreadState* thread = recorder::last_state())
    thread->leave(place_of(entry), next_sequence(), thrown);
}

}  // namespace layertrace::binding
