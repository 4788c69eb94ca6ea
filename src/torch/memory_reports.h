// Blocks of memory, as PyTorch's allocators tell of them.
//
// The allocators of the CPU and of CUDA report each block that they hand out and take back to
// PyTorch's profiler, whether it listens or not. The entries by which they call those reports are
// pointed at ours, which pass each report on: so nothing is registered with PyTorch, and a profiler
// of the user's hears what it always does.
#pragma once

namespace layertrace {

// Looks for the allocators' entries. The first time it walks over all that LibTorch calls: not
// while a step is timed.
void find_memory_reports() noexcept;

// Points the allocators' entries at our functions, and back at PyTorch's own. While they point at
// ours, blocks are records whenever operators are counted. False where none can be found or
// written; then nothing has changed.
bool redirect_memory_reports() noexcept;
void restore_memory_reports() noexcept;

}  // namespace layertrace
