#include "torch/replaced_counts.h"

#include <layertrace/binding.h>

#include "capture/recorder.h"
#include "record/definitions.h"
#include "torch/op_counter.h"
#include "torch/torch_hooks.h"

namespace layertrace {

void tell_replaced(std::string_view type, std::optional<std::uint64_t> flops) noexcept {
  ThreadState* thread = recorder::this_thread();
  if (thread == nullptr) return;
  try {
    thread->count({.op = NameTable::instance().intern(type),
                   .flops = flops.value_or(0),
                   .flops_causal = flops.value_or(0),
                   .format = replaced_format(),
                   .is_uncounted = !flops});
  } catch (...) {  // no memory for the name
  }
}

namespace binding {

bool begin_replacing() noexcept {
  return TorchHooks::is_counting.load(std::memory_order_relaxed) &&
         layertrace::begin_replacing() != 0;
}

// Of one inside another the outer one speaks.
void end_replacing(std::string_view type, std::optional<std::uint64_t> flops) noexcept {
  if (layertrace::end_replacing() == 0) tell_replaced(type, flops);
}

void end_replacing() noexcept { layertrace::end_replacing(); }

}  // namespace binding
}  // namespace layertrace
