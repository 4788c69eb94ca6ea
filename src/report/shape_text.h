// Shapes are kept as the text that people read, "float32[2, 64, 512]". Formulas that need numbers
// get them here. The text comes from users' programs and from files, and may hold anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::report {

struct TensorText {
  std::string dtype;
  std::vector<std::int64_t> sizes;

  friend bool operator==(const TensorText&, const TensorText&) = default;
};

// All tensors of a call in their order; what stands between them (commas, parentheses, names,
// values that are no tensors) is passed over. Nothing at all where a tensor's sizes are no sizes.
std::vector<TensorText> parse_shapes(std::string_view text);

// "3 × 3" or "2": the window of a convolution or pooling. Nothing where it is anything else.
std::vector<std::int64_t> parse_kernel_size(std::string_view text);

// A double, since no product of sizes is too large for it. 1 for no sizes.
double product(const std::vector<std::int64_t>& sizes, std::size_t from = 0,
               std::size_t to = static_cast<std::size_t>(-1));

}  // namespace layertrace::report
