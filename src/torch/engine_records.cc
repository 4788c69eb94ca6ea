#include "torch/engine_records.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>

#include <array>
#include <atomic>

#include "torch/torch_hooks.h"

namespace layertrace {
namespace {

using torch::autograd::GraphTask;

// Passes whose records are spared. There are as many at once as threads that run a backward, each
// with those that are nested in it; beyond that, none is spared.
std::array<std::atomic<const GraphTask*>, 16> quiet_tasks;
std::atomic<int> quiet_count{0};
thread_local Pass* innermost = nullptr;

bool is_quiet(const GraphTask& task) noexcept {
  if (quiet_count.load(std::memory_order_relaxed) == 0) return false;
  for (const auto& slot : quiet_tasks) {
    if (slot.load(std::memory_order_relaxed) == &task) return true;
  }
  return false;
}

std::atomic<const GraphTask*>* claim_slot(const GraphTask& task) noexcept {
  for (auto& slot : quiet_tasks) {
    const GraphTask* none = nullptr;
    if (slot.compare_exchange_strong(none, &task)) {
      quiet_count.fetch_add(1);
      return &slot;
    }
  }
  return nullptr;
}

}  // namespace

Pass::Pass() noexcept : outer_(innermost) { innermost = this; }

Pass::~Pass() {
  innermost = outer_;
  if (slot_ == nullptr) return;
  slot_->store(nullptr);
  quiet_count.fetch_sub(1);
}

void Pass::begin(GraphTask& task) noexcept {
  if (innermost == nullptr || innermost->slot_ != nullptr || !only_we_listen()) return;
  try {
    innermost->slot_ = claim_slot(task);
    if (innermost->slot_ == nullptr) return;
    // What the threads of this pass run under: the same as before, but for this one thing.
    const at::ThreadLocalStateGuard as_task(task.thread_locals_);
    const at::RecordFunctionGuard off(/*is_enabled=*/false);
    task.thread_locals_ = at::ThreadLocalState();
  } catch (...) {  // no memory: the engine's records are made
  }
}

void resume_records(const GraphTask& task) noexcept {
  if (is_quiet(task)) at::enableRecordFunction(true);
}

}  // namespace layertrace
