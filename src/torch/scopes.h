// Entering and leaving scopes from hooks that know Torch's types.
#pragma once

#include <cstdint>
#include <exception>
#include <tuple>
#include <utility>

#include <layertrace/layertrace.h>

#include "capture/recorder.h"

namespace torch::nn {
class Module;
}

namespace layertrace {

// The module's layer as seen from what the thread has open.
LayerId layer_of(ThreadState& thread, const torch::nn::Module& module) noexcept;

// Two whole words: halves that are stored apart and loaded as one make the processor wait. Here of
// a scope that is told how it was left.
inline detail::Entry told_entry_at(ThreadState::Place place) noexcept {
  return {place.depth | std::uint64_t{place.window} << 32, 0};
}
inline detail::Entry entry_at(ThreadState::Place place) noexcept {
  return {told_entry_at(place).place, std::uncaught_exceptions()};
}
inline ThreadState::Place place_of(detail::Entry entry) noexcept {
  return {static_cast<std::uint32_t>(entry.place), static_cast<std::uint32_t>(entry.place >> 32)};
}

// Marks a call that was caught from outside. A module that already marks itself (a ModuleScope in a
// class derived from LibTorch's) is not marked twice.
class InterposedScope {
 public:
  template <typename... Inputs>
  explicit InterposedScope(const torch::nn::Module* module, const Inputs&... inputs) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      open(module, detail::CallValues::of(std::tie(inputs...)));
  }
  ~InterposedScope() {
    if (call_ != nullptr) [[unlikely]]
      detail::end_call(call_, entry_);
    if (entry_.place != 0) [[unlikely]]
      detail::leave(entry_);
  }
  InterposedScope(const InterposedScope&) =
      delete;  // it stands for a stretch of one thread's stack
  InterposedScope& operator=(const InterposedScope&) = delete;

  // Gives what it is given: what comes out of the call.
  template <typename Output>
  Output output(Output value) noexcept {
    if (call_ != nullptr) [[unlikely]]
      detail::note_output(*call_, detail::CallValues::of(std::tie(std::as_const(value))));
    return value;
  }

  static detail::Entry enter(const torch::nn::Module* module, detail::CallValues inputs) noexcept;

 private:
  void open(const torch::nn::Module* module, detail::CallValues inputs) noexcept {
    entry_ = enter(module, inputs);
    if (entry_.place != 0 && detail::follows_calls.load(std::memory_order_relaxed) != 0)
      call_ = detail::begin_call(module, inputs);
  }

  detail::Entry entry_;
  detail::CountedCall* call_ = nullptr;
};

// Likewise for a stretch that belongs to a phase.
class InterposedRegion {
 public:
  InterposedRegion(NameId name, Phase phase) noexcept {
    if (detail::recording.load(std::memory_order_relaxed) != 0) [[unlikely]]
      entry_ = enter(name, phase);
  }
  ~InterposedRegion() {
    if (entry_.place != 0) [[unlikely]]
      detail::leave(entry_);
  }
  InterposedRegion(const InterposedRegion&) = delete;
  InterposedRegion& operator=(const InterposedRegion&) = delete;

 private:
  static detail::Entry enter(NameId name, Phase phase) noexcept;
  detail::Entry entry_;
};

}  // namespace layertrace
