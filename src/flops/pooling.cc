// Pooling: aux_flops only. An average or maximum over a window of k elements counts k per element
// of the output (k − 1 additions and a division, or k comparisons, what is padding too). Adaptive
// pooling reads each element of the input once: numel(input). Backward: an average gives each
// output's gradient to k elements; a maximum gives it to one.
#include "flops/families.h"

namespace layertrace {
namespace {

constexpr SlotNames kPool = {"self",     "kernel_size", "stride",     "padding",
                             "dilation", "ceil_mode",   "grad_output"};

// A list of one counts for all dimensions; an empty stride is the kernel's size.
std::int64_t of_dim(std::span<const std::int64_t> values, std::size_t dim, std::int64_t otherwise) {
  if (values.empty()) return otherwise;
  return values[dim < values.size() ? dim : values.size() - 1];
}

Count window_elements(const Arguments& arguments, std::size_t dims) {
  Count window = 1;
  for (std::size_t dim = 0; dim < dims; ++dim) window *= of_dim(arguments.ints(1), dim, 1);
  return window;
}

// per_element: the number of spatial dimensions.
std::optional<OpCost> pool_cost(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(0);
  const std::size_t dims = arguments.per_element();
  if (input == nullptr || input->sizes.size() < dims || arguments.ints(1).empty()) return {};
  Count results = elements(input->sizes.first(input->sizes.size() - dims));
  const auto spatial = input->sizes.last(dims);
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const std::int64_t kernel = of_dim(arguments.ints(1), dim, 1);
    const std::int64_t stride = of_dim(arguments.ints(2), dim, kernel);
    const std::int64_t padding = of_dim(arguments.ints(3), dim, 0);
    const std::int64_t reach = of_dim(arguments.ints(4), dim, 1) * (kernel - 1) + 1;
    const std::int64_t room = spatial[dim] + 2 * padding - reach;
    if (stride < 1 || room < 0) return {};
    std::int64_t places = room / stride + 1;
    // A last window that does not fit, if it begins inside the input or the padding before it.
    const bool has_rest = arguments.flag(5) && room % stride != 0;
    if (has_rest && places * stride < spatial[dim] + padding) ++places;
    results *= places;
  }
  return aux_cost(results * window_elements(arguments, dims));
}

std::optional<OpCost> average_pool_backward_cost(const Arguments& arguments) {
  const TensorShape* gradient = arguments.tensor(6);
  if (gradient == nullptr) return {};
  return aux_cost(elements(*gradient) * window_elements(arguments, arguments.per_element()));
}

// Slots: self.
std::optional<std::uint64_t> fvcore_input(const Arguments& arguments,
                                          const std::optional<OpCost>& /*cost*/) {
  const TensorShape* input = arguments.tensor(0);
  if (input == nullptr) return {};
  return elements(*input).value();
}

}  // namespace

void add_pooling_formulas(FormulaIndex& index) {
  struct Pools {
    unsigned dims;
    std::string_view forward;
    std::string_view average_backward;
  };
  constexpr Pools kPools[] = {
      {1, "quantized_max_pool1d", ""},
      {2, "avg_pool2d max_pool2d_with_indices mkldnn_max_pool2d quantized_max_pool2d",
       "avg_pool2d_backward"},
      {3, "avg_pool3d max_pool3d_with_indices mkldnn_max_pool3d quantized_max_pool3d",
       "avg_pool3d_backward"},
  };
  for (const Pools& pools : kPools) {
    index.add_names(pools.forward,
                    {.cost = pool_cost, .arguments = kPool, .per_element = pools.dims});
    index.add_names(
        pools.average_backward,
        {.cost = average_pool_backward_cost, .arguments = kPool, .per_element = pools.dims});
  }
  index.add_names(
      "max_pool2d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
      "mkldnn_max_pool2d_backward mkldnn_max_pool3d_backward adaptive_max_pool2d_backward "
      "adaptive_max_pool3d_backward fractional_max_pool2d_backward fractional_max_pool3d_backward",
      {.cost = first_tensor_cost, .arguments = {"grad_output"}, .per_element = 1});
  index.add_names(
      "_adaptive_avg_pool2d _adaptive_avg_pool3d mkldnn_adaptive_avg_pool2d adaptive_max_pool2d "
      "adaptive_max_pool3d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward "
      "adaptive_avg_pool3d_backward mkldnn_adaptive_avg_pool2d_backward",
      {.cost = first_tensor_cost, .arguments = {"self"}, .per_element = 1});
  // Composite: calls the one above, or mean where the output is of one element.
  index.add_names("adaptive_avg_pool2d", {.arguments = {"self"}, .fvcore = fvcore_input});
}

}  // namespace layertrace
