#include "torch/memory_reports.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <vector>

#include "base/call_slots.h"
#include "capture/recorder.h"
#include "torch/next_function.h"
#include "torch/torch_hooks.h"

namespace layertrace {
namespace {

using Reporter = c10::ProfiledCPUMemoryReporter;

constexpr const char* kNew = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
constexpr const char* kDelete = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";
constexpr const char* kReport = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

// PyTorch's own. Set before any entry points at ours.
struct Originals {
  void (*take)(Reporter*, void*, std::size_t) = nullptr;
  void (*give_back)(Reporter*, void*) = nullptr;
  void (*report)(void*, std::int64_t, std::size_t, std::size_t, c10::Device) = nullptr;
};
Originals originals;

void tell_block(const void* block, std::uint64_t bytes, std::uint32_t device,
                bool is_freed) noexcept {
  if (!TorchHooks::is_counting.load(std::memory_order_relaxed) || block == nullptr) return;
  if (ThreadState* thread = recorder::this_thread())
    thread->note_memory(reinterpret_cast<std::uintptr_t>(block), bytes, device, is_freed);
}

// A block is told of before it is given back: from then on it may be another's.

void report_new(Reporter* reporter, void* block, std::size_t bytes) {
  if (bytes != 0) tell_block(block, bytes, kHostDevice, /*is_freed=*/false);
  originals.take(reporter, block, bytes);
}

void report_delete(Reporter* reporter, void* block) {
  tell_block(block, 0, kHostDevice, /*is_freed=*/true);
  originals.give_back(reporter, block);
}

// Of the CUDA allocator, which holds its lock meanwhile, and of memory that is shared between
// processes.
void report_usage(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                  c10::Device device) {
  const bool is_freed = bytes < 0;
  const auto size = static_cast<std::uint64_t>(is_freed ? -bytes : bytes);
  if (device.is_cuda()) {
    tell_block(block, size, std::uint32_t{static_cast<unsigned char>(device.index())}, is_freed);
  } else if (device.is_cpu()) {
    tell_block(block, size, kHostDevice, is_freed);
  }
  originals.report(block, bytes, allocated, reserved, device);
}

struct ReportEntry {
  CallSlot slot;
  void* ours;
};

// Looked for once. libc10 reports the CPU's through the first two, and calls the third from within
// them; the others call only that.
const std::vector<ReportEntry>& report_entries() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<ReportEntry>;
    const auto add = [all](const char* library, const char* symbol, void* ours) {
      for (const CallSlot& slot : find_call_slots(library, symbol)) all->push_back({slot, ours});
    };
    add("/libc10.so", kNew, reinterpret_cast<void*>(&report_new));
    add("/libc10.so", kDelete, reinterpret_cast<void*>(&report_delete));
    add("/libc10_cuda.so", kReport, reinterpret_cast<void*>(&report_usage));
    add("/libtorch_cpu.so", kReport, reinterpret_cast<void*>(&report_usage));
    return all;
  }();
  return *kAll;
}

template <typename Function>
bool find_original(Function*& function, const char* symbol) {
  function = reinterpret_cast<Function*>(look_up_next(symbol));
  return function != nullptr;
}

}  // namespace

void find_memory_reports() noexcept {
  try {
    report_entries();
  } catch (...) {  // no memory
  }
}

bool redirect_memory_reports() noexcept {
  try {
    static const bool kAreKnown = find_original(originals.take, kNew) &&
                                  find_original(originals.give_back, kDelete) &&
                                  find_original(originals.report, kReport);
    if (!kAreKnown) return false;
    for (const ReportEntry& entry : report_entries()) {
      if (set_call_slot(entry.slot, entry.ours)) continue;
      restore_memory_reports();
      return false;
    }
    return !report_entries().empty();
  } catch (...) {  // no memory
    return false;
  }
}

void restore_memory_reports() noexcept {
  for (const ReportEntry& entry : report_entries()) set_call_slot(entry.slot, entry.slot.original);
}

}  // namespace layertrace
