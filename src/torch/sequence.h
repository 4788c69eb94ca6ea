// Autograd's counters, by the names that the rest of layertrace uses.
#pragma once

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <cstdint>

namespace layertrace {

// The number that autograd's next node on this thread will get.
inline std::uint64_t next_sequence() { return at::sequence_number::peek(); }
// What autograd calls this thread.
inline std::uint64_t autograd_thread() { return at::RecordFunction::currentThreadId(); }

}  // namespace layertrace
