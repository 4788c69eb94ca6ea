// Normalisations: aux_flops only, per element of the input; what is done once per row or channel
// (eps, the square root, running averages) is not counted.
//
//   - Layer, group, instance and batch norm with statistics of the batch: the mean's sum 1, the
//     variance's subtraction, multiplication and sum 3, subtract and multiply 2, weight 1, bias 1.
//   - Batch norm with kept statistics: 2, weight 1, bias 1.
//   - RMS norm: square 1, sum 1, multiply 1, weight 1.
//   - Backward, for what the mask asks: the input 9 (the normalised input 2, two sums 3, the
//     result 4) and 1 for the weight; the weight 2, the bias 1. With kept statistics: the input 1,
//     the weight 4, the bias 1. RMS norm: the input 5 and 1 for the weight; the weight 3.
#include "flops/families.h"

namespace layertrace {
namespace {

// Slots: input, weight, bias, training. per_element: what is done in all cases.
std::optional<OpCost> affine_cost(const Arguments& arguments, unsigned per_element) {
  const TensorShape* input = arguments.tensor(0);
  if (input == nullptr) return {};
  const int affine = (arguments.has(1) ? 1 : 0) + (arguments.has(2) ? 1 : 0);
  return aux_cost(elements(*input) * (Count(per_element) + affine));
}
std::optional<OpCost> norm_cost(const Arguments& arguments) {
  return affine_cost(arguments, arguments.per_element());
}
std::optional<OpCost> batch_norm_cost(const Arguments& arguments) {
  return affine_cost(arguments, arguments.flag(3) ? 6 : 2);
}

struct NormBackward {
  int input;
  int input_weight;
  int weight;
  int bias;
};

// Slots: input, weight, mask, training. Without a mask all gradients are made.
std::optional<OpCost> norm_backward(const Arguments& arguments, const NormBackward& each) {
  const TensorShape* input = arguments.tensor(0);
  if (input == nullptr) return {};
  const auto mask = arguments.ints(2);
  const auto makes = [&](std::size_t which) {
    return mask.empty() || (which < mask.size() && mask[which] != 0);
  };
  int sum = 0;
  if (makes(0)) sum += each.input + (arguments.has(1) ? each.input_weight : 0);
  if (makes(1)) sum += each.weight;
  if (makes(2)) sum += each.bias;
  return aux_cost(elements(*input) * sum);
}
constexpr NormBackward kOfBatch = {9, 1, 2, 1};
constexpr NormBackward kOfKept = {1, 0, 4, 1};
constexpr NormBackward kOfRms = {5, 1, 3, 0};

std::optional<OpCost> norm_backward_cost(const Arguments& arguments) {
  return norm_backward(arguments, arguments.flag(3, true) ? kOfBatch : kOfKept);
}
std::optional<OpCost> rms_norm_backward_cost(const Arguments& arguments) {
  return norm_backward(arguments, kOfRms);
}

// ---- fvcore's ----

// Slots: input, weight.
std::optional<std::uint64_t> fvcore_norm(const Arguments& arguments,
                                         const std::optional<OpCost>& /*cost*/) {
  const TensorShape* input = arguments.tensor(0);
  if (input == nullptr) return {};
  return (elements(*input) * (arguments.has(1) ? 5 : 4)).value();
}
std::optional<std::uint64_t> fvcore_batch_norm(const Arguments& arguments,
                                               const std::optional<OpCost>& cost) {
  const TensorShape* input = arguments.tensor(0);
  if (input == nullptr) return {};
  if (arguments.flag(3)) return fvcore_norm(arguments, cost);
  return (elements(*input) * (arguments.has(1) ? 2 : 1)).value();
}

constexpr SlotNames kNorm = {"input", "weight", "bias", "training"};
constexpr SlotNames kNormBackward = {"input", "weight", "output_mask", "train|update"};

}  // namespace

void add_norm_formulas(FormulaIndex& index) {
  index.add_names(
      "native_layer_norm native_group_norm _batch_norm_with_update "
      "_batch_norm_with_update_functional",
      {.cost = norm_cost, .arguments = kNorm, .per_element = 6});
  index.add_names(
      "_batch_norm_no_update _native_batch_norm_legit_no_training batch_norm_elemt "
      "quantized_batch_norm",
      {.cost = norm_cost, .arguments = kNorm, .per_element = 2});
  index.add_names(
      "native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit "
      "_native_batch_norm_legit_functional",
      {.cost = batch_norm_cost, .arguments = kNorm});
  index.add_names(
      "native_layer_norm_backward native_group_norm_backward native_batch_norm_backward "
      "cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_backward",
      {.cost = norm_backward_cost, .arguments = kNormBackward});

  constexpr auto kFree = OpKind::kFree;
  constexpr FormulaRow kRows[] = {
      {"aten::_fused_rms_norm", kFree, norm_cost, {"input", "weight"}, 3},
      {"aten::_fused_rms_norm_backward",
       kFree,
       rms_norm_backward_cost,
       {"input", "weight", "output_mask"}},
      // A batch norm in parts, for statistics over several devices.
      {"aten::batch_norm_stats", kFree, norm_cost, {"input"}, 4},
      {"aten::batch_norm_update_stats", kFree, norm_cost, {"input"}, 4},
      {"aten::batch_norm_backward_reduce", kFree, norm_cost, {"input"}, 5},
      {"aten::batch_norm_backward_elemt", kFree, norm_cost, {"input", "weight"}, 6},
      // A vector's norm (2), its scale (1); backward the norm's part and its own.
      {"aten::_weight_norm_interface", kFree, first_tensor_cost, {"v"}, 3},
      {"aten::_weight_norm_interface_backward", kFree, first_tensor_cost, {"saved_v"}, 6},
      // Composite: these call the ones above. fvcore counts here.
      {"aten::layer_norm", kFree, nullptr, kNorm, 0, fvcore_norm},
      {"aten::group_norm", kFree, nullptr, kNorm, 0, fvcore_norm},
      {"aten::instance_norm", kFree, nullptr, kNorm, 0, fvcore_norm},
      {"aten::batch_norm", kFree, nullptr, kNorm, 0, fvcore_batch_norm},
  };
  index.add(kRows);
}

}  // namespace layertrace
