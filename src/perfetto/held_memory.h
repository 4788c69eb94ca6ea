// How much memory is held by blocks that were taken since counting began.
//
// Not every block is seen twice: one that was there before is only given back, one that is given
// back while nothing is counted is only taken. So the sum is over the blocks that are known: the
// former are not in it, and the latter are out of it when their place is taken again.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "attribute/span.h"

namespace layertrace {

class HeldMemory {
 public:
  // The sum from there on, in bytes.
  std::uint64_t add(const MemorySpan& span) {
    std::uint64_t& block = blocks_[span.address];
    held_bytes_ -= block;
    if (span.is_freed) {
      blocks_.erase(span.address);
    } else {
      block = span.bytes;
      held_bytes_ += block;
    }
    return held_bytes_;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> blocks_;  // bytes by address
  std::uint64_t held_bytes_ = 0;
};

}  // namespace layertrace
