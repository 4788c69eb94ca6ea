// Convolutions: each weight meets each place of the output once, 2·N·∏(output spatial)·numel(W),
// any groups, stride and dilation; what meets padding counts, too. Transposed, each weight meets
// each place of the input. A backward is the same number once for each gradient that it makes.
//
// aux_flops: the bias, one addition per element of the output (in a backward, per element of its
// gradient's sum), the activation (ReLU 1) and what is added before it (1).
#include "flops/families.h"

namespace layertrace {
namespace {

// What a convolution's formulas ask for, whatever the operator calls it.
constexpr SlotNames kConvolution = {"input|self|X|qx", "weight|W", "bias|B",     "stride",
                                    "padding",         "dilation", "transposed", "output_padding",
                                    "groups",          "z|other"};
enum ConvolutionSlot : std::uint8_t {
  kInput,
  kWeight,
  kBias,
  kStride,
  kPadding,
  kDilation,
  kTransposed,
  kOutputPadding,
  kGroups,
  kAdded,
};

struct Convolution {
  std::span<const std::int64_t> spatial = {};  // of the input
  std::span<const std::int64_t> kernel = {};
  Count batch = 1;
  const TensorShape* weight = nullptr;
};

std::optional<Convolution> convolution_of(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(kInput);
  const TensorShape* weight = arguments.tensor(kWeight);
  if (input == nullptr || weight == nullptr || weight->sizes.size() < 3) return {};
  const std::size_t dims = weight->sizes.size() - 2;
  Convolution convolution{.kernel = weight->sizes.last(dims), .weight = weight};
  if (input->sizes.size() == dims + 2) {
    convolution.batch = input->sizes[0];
  } else if (input->sizes.size() != dims + 1) {  // without a batch
    return {};
  }
  convolution.spatial = input->sizes.last(dims);
  return convolution;
}

// One per dimension, or one for all.
std::int64_t per_dim(const Arguments& arguments, std::size_t slot, std::size_t dim,
                     std::int64_t otherwise) {
  const auto values = arguments.ints(slot);
  if (values.empty()) return arguments.integer(slot).value_or(otherwise);
  return values.size() == 1 ? values[0] : dim < values.size() ? values[dim] : otherwise;
}

std::optional<Count> output_places(const Arguments& arguments, const Convolution& convolution) {
  Count places = 1;
  const bool keeps_size = arguments.text(kPadding) == "same";
  for (std::size_t dim = 0; dim < convolution.spatial.size(); ++dim) {
    const std::int64_t size = convolution.spatial[dim];
    const std::int64_t stride = per_dim(arguments, kStride, dim, 1);
    const std::int64_t reach =
        per_dim(arguments, kDilation, dim, 1) * (convolution.kernel[dim] - 1) + 1;
    const std::int64_t padded = size + 2 * per_dim(arguments, kPadding, dim, 0);
    if (stride < 1 || (!keeps_size && padded < reach)) return {};
    places *= keeps_size ? size : (padded - reach) / stride + 1;
  }
  return places;
}

Count transposed_output_places(const Arguments& arguments, const Convolution& convolution) {
  Count places = 1;
  for (std::size_t dim = 0; dim < convolution.spatial.size(); ++dim) {
    places *= (convolution.spatial[dim] - 1) * per_dim(arguments, kStride, dim, 1) -
              2 * per_dim(arguments, kPadding, dim, 0) +
              per_dim(arguments, kDilation, dim, 1) * (convolution.kernel[dim] - 1) +
              per_dim(arguments, kOutputPadding, dim, 0) + 1;
  }
  return places;
}

// per_element: what is done to each result besides the bias.
Count aux_per_result(const Arguments& arguments) {
  return Count(arguments.per_element()) + (arguments.has(kBias) ? 1 : 0) +
         (arguments.has(kAdded) ? 1 : 0);
}

std::optional<OpCost> forward_cost(const Arguments& arguments) {
  const auto convolution = convolution_of(arguments);
  if (!convolution) return {};
  const auto places = output_places(arguments, *convolution);
  if (!places) return {};
  const Count results = convolution->batch * *places * convolution->weight->sizes[0];
  return contraction_cost(convolution->batch * *places * elements(*convolution->weight),
                          results * aux_per_result(arguments));
}

std::optional<OpCost> transposed_cost(const Arguments& arguments) {
  const auto convolution = convolution_of(arguments);
  if (!convolution) return {};
  const Count channels =
      Count(convolution->weight->sizes[1]) * arguments.integer(kGroups).value_or(1);
  const Count results =
      convolution->batch * transposed_output_places(arguments, *convolution) * channels;
  return contraction_cost(
      convolution->batch * elements(convolution->spatial) * elements(*convolution->weight),
      results * aux_per_result(arguments));
}

std::optional<OpCost> convolution_cost(const Arguments& arguments) {
  return arguments.flag(kTransposed) ? transposed_cost(arguments) : forward_cost(arguments);
}

// ---- Backward ----

constexpr SlotNames kConvolutionBackward = {"grad_output", "input|self",  "weight",
                                            "transposed",  "output_mask", "grad_input",
                                            "grad_weight", "grad_bias"};
enum ConvolutionBackwardSlot : std::uint8_t {
  kGradOutput,
  kForwardInput,
  kForwardWeight,
  kWasTransposed,
  kMask,
  kGradInput,
  kGradWeight,
  kGradBias,
};

std::optional<OpCost> backward_cost(const Arguments& arguments, bool transposed) {
  const TensorShape* gradient = arguments.tensor(kGradOutput);
  const TensorShape* input = arguments.tensor(kForwardInput);
  const TensorShape* weight = arguments.tensor(kForwardWeight);
  if (gradient == nullptr || input == nullptr || weight == nullptr) return {};
  if (weight->sizes.size() < 3 || gradient->sizes.size() != input->sizes.size()) return {};
  const std::size_t dims = weight->sizes.size() - 2;
  if (input->sizes.size() < dims + 1 || input->sizes.size() > dims + 2) return {};

  // An out= form has no mask, but the gradients that are asked for.
  const auto mask = arguments.ints(kMask);
  const auto makes = [&](std::size_t which) {
    return mask.empty() ? arguments.has(kGradInput + which)
                        : which < mask.size() && mask[which] != 0;
  };
  const Count batch = input->sizes.size() == dims + 2 ? input->sizes[0] : 1;
  const Count places = elements((transposed ? input : gradient)->sizes.last(dims));
  const int products = (makes(0) ? 1 : 0) + (makes(1) ? 1 : 0);
  return contraction_cost(batch * places * elements(*weight) * products,
                          makes(2) ? elements(*gradient) : 0);
}

std::optional<OpCost> convolution_backward_cost(const Arguments& arguments) {
  return backward_cost(arguments, arguments.flag(kWasTransposed));
}
std::optional<OpCost> transposed_backward_cost(const Arguments& arguments) {
  return backward_cost(arguments, true);
}

// ---- (time, batch, channels), with a weight of (kernel, in, out) ----

// Slots: input, weight, pad.
std::optional<OpCost> conv_tbc_cost(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(0);
  const TensorShape* weight = arguments.tensor(1);
  if (input == nullptr || weight == nullptr) return {};
  if (input->sizes.size() != 3 || weight->sizes.size() != 3) return {};
  const Count places =
      input->sizes[0] + 2 * arguments.integer(2).value_or(0) - weight->sizes[0] + 1;
  const Count rows = places * input->sizes[1];
  return contraction_cost(rows * elements(*weight), rows * weight->sizes[2]);
}

// Makes all gradients. Slots: gradient of the output, weight.
std::optional<OpCost> conv_tbc_backward_cost(const Arguments& arguments) {
  const TensorShape* gradient = arguments.tensor(0);
  const TensorShape* weight = arguments.tensor(1);
  if (gradient == nullptr || weight == nullptr) return {};
  if (gradient->sizes.size() != 3 || weight->sizes.size() != 3) return {};
  const Count rows = Count(gradient->sizes[0]) * gradient->sizes[1];
  return contraction_cost(rows * elements(*weight) * 2, elements(*gradient));
}

// ---- The table ----

void add_all(FormulaIndex& index, std::string_view names, OpKind kind, CostFunction cost,
             unsigned per_element = 0) {
  index.add_names(names, {.kind = kind,
                          .cost = cost,
                          .arguments = kConvolution,
                          .per_element = per_element,
                          .fvcore = fvcore_macs});
}

}  // namespace

void add_convolution_formulas(FormulaIndex& index) {
  constexpr auto kPrimitive = OpKind::kPrimitive;
  constexpr auto kWrapper = OpKind::kWrapper;

  add_all(index, "conv1d conv2d conv3d _convolution_mode", kWrapper, forward_cost);
  add_all(index, "conv_transpose1d conv_transpose2d conv_transpose3d", kWrapper, transposed_cost);
  add_all(index, "convolution _convolution convolution_overrideable", kPrimitive, convolution_cost);
  add_all(index,
          "cudnn_convolution miopen_convolution miopen_depthwise_convolution mkldnn_convolution "
          "_mps_convolution _nnpack_spatial_convolution thnn_conv2d _slow_conv2d_forward "
          "slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d "
          "_conv_depthwise2d conv_depthwise3d",
          kPrimitive, forward_cost);
  add_all(index,
          "cudnn_convolution_transpose miopen_convolution_transpose _mps_convolution_transpose "
          "slow_conv_transpose2d slow_conv_transpose3d",
          kPrimitive, transposed_cost);
  add_all(index,
          "cudnn_convolution_relu cudnn_convolution_add_relu miopen_convolution_relu "
          "miopen_convolution_add_relu",
          kPrimitive, forward_cost, 1);

  const FormulaRow rows[] = {
      {"mkldnn::_convolution_pointwise", kPrimitive, forward_cost, kConvolution},
      {"mkldnn::_convolution_transpose_pointwise", kPrimitive, transposed_cost, kConvolution},
      {"aten::conv_tbc", kPrimitive, conv_tbc_cost, {"self", "weight", "pad"}},
      {"aten::conv_tbc_backward", kPrimitive, conv_tbc_backward_cost, {"self", "weight"}},
      {"aten::_convolution_double_backward"},  // calls convolutions
  };
  index.add(rows);
  index.add_names(
      "convolution_backward convolution_backward_overrideable _slow_conv2d_backward "
      "mps_convolution_backward",
      {.kind = kPrimitive, .cost = convolution_backward_cost, .arguments = kConvolutionBackward});
  index.add_names(
      "mps_convolution_transpose_backward",
      {.kind = kPrimitive, .cost = transposed_backward_cost, .arguments = kConvolutionBackward});
}

}  // namespace layertrace
