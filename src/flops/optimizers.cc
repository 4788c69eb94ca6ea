// Fused optimizers: aux_flops only, per element of the parameters.
//
//   - Adam, AdamW: first moment 3, second 4, denominator 3, update 3; weight decay 2, amsgrad 1.
//   - SGD: update 2; momentum 3, with Nesterov 2 more; weight decay 2.
//   - Adagrad: sum of squares 2, denominator 2, update 3; weight decay 2.
#include "flops/families.h"

namespace layertrace {
namespace {

std::optional<OpCost> per_parameter(const Arguments& arguments, int each) {
  if (arguments.tensors(0).empty()) return {};
  Count sum;
  for (const TensorShape& tensor : arguments.tensors(0)) sum += elements(tensor);
  return aux_cost(sum * each);
}

// Slots: self, weight_decay, amsgrad.
std::optional<OpCost> adam_cost(const Arguments& arguments) {
  return per_parameter(arguments,
                       13 + (arguments.number(1, 0) != 0 ? 2 : 0) + (arguments.flag(2) ? 1 : 0));
}

// Slots: self, weight_decay, momentum, nesterov.
std::optional<OpCost> sgd_cost(const Arguments& arguments) {
  int each = 2 + (arguments.number(1, 0) != 0 ? 2 : 0);
  if (arguments.number(2, 0) != 0) each += arguments.flag(3) ? 5 : 3;
  return per_parameter(arguments, each);
}

// Slots: self, weight_decay.
std::optional<OpCost> adagrad_cost(const Arguments& arguments) {
  return per_parameter(arguments, 7 + (arguments.number(1, 0) != 0 ? 2 : 0));
}

}  // namespace

void add_optimizer_formulas(FormulaIndex& index) {
  constexpr auto kFree = OpKind::kFree;
  constexpr FormulaRow kRows[] = {
      {"aten::_fused_adam", kFree, adam_cost, {"self", "weight_decay", "amsgrad"}},
      {"aten::_fused_adamw", kFree, adam_cost, {"self", "weight_decay", "amsgrad"}},
      {"aten::_fused_sgd", kFree, sgd_cost, {"self", "weight_decay", "momentum", "nesterov"}},
      {"aten::_fused_adagrad", kFree, adagrad_cost, {"self", "weight_decay"}},
      // A multiplication and a check per element of the gradients.
      {"aten::_amp_foreach_non_finite_check_and_unscale", kFree, first_tensor_cost, {"self"}, 2},
      {"aten::_amp_update_scale"},
  };
  index.add(kRows);
}

}  // namespace layertrace
