// What does the operator that runs compute, and move? PyTorch shows its inputs when it begins and
// its outputs when it ends; the formulas (src/flops) make amounts of them. One counter per thread.
#pragma once

#include <cstddef>

#include "record/amounts.h"
#include "torch/op_facts.h"

namespace at {
class RecordFunction;
}

namespace layertrace {

// Of the operator that begins on this thread: what its record says, or nullptr where that was not
// looked up. What goes wrong inside leaves it uncounted. Good until the next call.
const OpFacts* begin_counting(const at::RecordFunction& fn, const char* name) noexcept;

// Of the one that ends: what is to be told of it, nullptr for nothing. Good until the next call.
const OpAmounts* end_counting(const at::RecordFunction& fn) noexcept;

// Between these two, operators of this thread compute nothing: the user tells what a module's call
// does. Both give how many such calls are open then.
std::size_t begin_replacing() noexcept;
std::size_t end_replacing() noexcept;
// Of the last contraction that counted for nothing; float32 before there was any.
std::uint8_t replaced_format() noexcept;

}  // namespace layertrace
