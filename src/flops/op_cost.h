// What one operator call costs, by the convention of docs/flops.md.
#pragma once

#include <cstdint>

#include "flops/count.h"

namespace layertrace {

struct OpCost {
  // The headline: two for each multiply-add of a contraction (a matrix product, a convolution,
  // attention, a recurrent layer). Elements may be of any dtype; a complex one counts as one.
  std::uint64_t flops = 0;
  // Beside it, never in it: additions, multiplications, divisions, comparisons, and functions such
  // as exp and sqrt, of all other arithmetic.
  std::uint64_t aux_flops = 0;
  // The headline with only those products that a causal mask or a window leaves; else the same.
  std::uint64_t flops_causal = 0;

  constexpr std::uint64_t macs() const noexcept { return flops / 2; }
  friend constexpr bool operator==(const OpCost&, const OpCost&) noexcept = default;
};

constexpr OpCost contraction_cost(Count macs, Count aux = {}) noexcept {
  const std::uint64_t flops = (Count(2) * macs).value();
  return {.flops = flops, .aux_flops = aux.value(), .flops_causal = flops};
}

constexpr OpCost aux_cost(Count aux) noexcept { return {.aux_flops = aux.value()}; }

}  // namespace layertrace
