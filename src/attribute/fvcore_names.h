// Operators as fvcore names them, and whose outputs it counts as activations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace layertrace {

// "conv", "linear", as in fvcore's tables.
constexpr std::string_view fvcore_name(std::string_view op) {
  if (op.find("conv") != std::string_view::npos) return "conv";
  const std::size_t colons = op.rfind("::");
  return colons == std::string_view::npos ? op : op.substr(colons + 2);
}

// Not mm's, though it counts its FLOPs.
constexpr bool fvcore_counts_output(std::string_view op) {
  constexpr std::string_view kCounted[] = {"conv", "addmm", "bmm", "einsum", "matmul", "linear"};
  return std::ranges::find(kCounted, fvcore_name(op)) != std::end(kCounted);
}

}  // namespace layertrace
