// One call of a dispatcher operator as the formulas see it: plain shapes and numbers, no Torch.
//
// Formulas read inputs only. PyTorch boxes an operator's arguments for an observer and destroys
// them before the operator runs (Dispatcher.h, 2.15), so all that needs them is done on entry; what
// comes out is known later, and is of use for the bytes that were written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flops/count.h"

namespace layertrace {

struct TensorShape {
  std::span<const std::int64_t> sizes;
  std::uint8_t element_bytes = 0;
  // More than one where a dtype packs several along the last dimension: 2 for float4_e2m1fn_x2.
  std::uint8_t values_per_element = 1;
  // Dense and strided. Nested and sparse tensors are not: their sizes do not tell what is computed.
  bool is_plain = true;
  // Autograd wants its gradient: what a backward without a mask need not make for others.
  bool needs_gradient = true;
};

// A list of bools comes as a list of ints. What no formula reads (dtypes, devices, generators,
// lists of doubles, packed weights) comes as what an absent optional comes as. An undefined tensor
// of a list has no bytes per element.
using OpArgument =
    std::variant<std::monostate, TensorShape, std::span<const TensorShape>,
                 std::span<const std::int64_t>, std::int64_t, double, bool, std::string_view>;
using OpArguments = std::span<const OpArgument>;

// Which operator it is: read from its schema once, not at each call.
struct OpSignature {
  std::string name;                    // "aten::addmm"
  std::string overload;                // "out", or "" for the default one
  std::vector<std::string> arguments;  // their names, in the schema's order
  bool is_composite = false;           // has no kernel of its own, only calls other operators
};

// Of one tensor: what is stored, without regard to values_per_element.
constexpr Count elements(std::span<const std::int64_t> sizes) noexcept {
  Count count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}
constexpr Count elements(const TensorShape& tensor) noexcept { return elements(tensor.sizes); }

// Of all tensors among a call's inputs (what it reads) or its outputs (what it writes), those in
// lists too. Sizes of nested and sparse tensors are taken as they are.
Count sum_elements(OpArguments arguments) noexcept;
Count sum_bytes(OpArguments arguments) noexcept;

}  // namespace layertrace
