// What costs aux_flops alone: elementwise operators, reductions, softmax, losses. One for each
// addition, multiplication, division, comparison, and function (exp, log, sqrt, tanh, erf, sin,
// pow, …) that the operator's definition applies to an element, of whatever dtype. Not counted:
// choosing (where, masked_fill), logic and bits, and what is done once per row or per call.
//
// An in-place form, an out= form and a _foreach_ form count as the operator does.
#include <algorithm>

#include "flops/families.h"

namespace layertrace {

std::optional<OpCost> elementwise_cost(const Arguments& arguments) {
  // The broadcast's sizes, from the last dimension; all of one shape is the common case.
  std::array<std::int64_t, 16> sizes;
  std::size_t rank = 0;
  for (const OpArgument& argument : arguments.inputs()) {
    const auto* tensor = std::get_if<TensorShape>(&argument);
    if (tensor == nullptr) continue;
    const std::size_t own_rank = tensor->sizes.size();
    if (!tensor->is_plain || own_rank > sizes.size()) return {};
    for (; rank < own_rank; ++rank) sizes[rank] = 1;
    for (std::size_t from_end = 0; from_end < own_rank; ++from_end) {
      const std::int64_t size = tensor->sizes[own_rank - 1 - from_end];
      if (size != 1) sizes[from_end] = size;
    }
  }
  return aux_cost(elements(std::span(sizes).first(rank)) * arguments.per_element());
}

std::optional<OpCost> first_tensor_cost(const Arguments& arguments) {
  if (const TensorShape* tensor = arguments.tensor(0)) {
    return aux_cost(elements(*tensor) * arguments.per_element());
  }
  if (arguments.tensors(0).empty()) return {};
  Count sum;
  for (const TensorShape& tensor : arguments.tensors(0)) sum += elements(tensor);
  return aux_cost(sum * arguments.per_element());
}

namespace {

// self + alpha·other: a multiplication more, unless alpha is 1. Slots: alpha.
std::optional<OpCost> scaled_add_cost(const Arguments& arguments) {
  auto cost = elementwise_cost(arguments);
  if (cost && arguments.number(0, 1) != 1) cost = aux_cost(Count(cost->aux_flops) * 2);
  return cost;
}

// One comparison for each bound. Slots: min, max.
std::optional<OpCost> clamp_cost(const Arguments& arguments) {
  auto cost = elementwise_cost(arguments);
  const int bounds = (arguments.has(0) ? 1 : 0) + (arguments.has(1) ? 1 : 0);
  if (cost) cost = aux_cost(Count(cost->aux_flops) * bounds);
  return cost;
}

// With erf: x·(1 + erf(x/√2))/2. With tanh: x·(1 + tanh(c·(x + d·x³)))/2. Slots: self, approximate.
std::optional<OpCost> gelu_cost(const Arguments& arguments) {
  const TensorShape* self = arguments.tensor(0);
  if (self == nullptr) return {};
  return aux_cost(elements(*self) * (arguments.text(1) == "tanh" ? 9 : 5));
}
// With erf: g·(Φ(x) + x·φ(x)), 4 each for Φ and φ. With tanh: the forward's inner 6, and 14 for the
// two derivatives and their sum.
std::optional<OpCost> gelu_backward_cost(const Arguments& arguments) {
  const TensorShape* self = arguments.tensor(0);
  if (self == nullptr) return {};
  return aux_cost(elements(*self) * (arguments.text(1) == "tanh" ? 20 : 11));
}

// per_element, and one more to sum up unless the reduction is 0 (none). Slots: self, reduction.
std::optional<OpCost> loss_cost(const Arguments& arguments) {
  const TensorShape* self = arguments.tensor(0);
  if (self == nullptr) return {};
  const int sum = arguments.integer(1).value_or(1) != 0 ? 1 : 0;
  return aux_cost(elements(*self) * (Count(arguments.per_element()) + sum));
}

// Each element of one vector with each of the other: per_element each. Slots: the vectors.
std::optional<OpCost> outer_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  if (a == nullptr || b == nullptr) return {};
  return aux_cost(elements(*a) * elements(*b) * arguments.per_element());
}

// (…, P, M) and (…, R, M): per_element for each of the P·R·M. Slots: both.
std::optional<OpCost> distance_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  if (a == nullptr || b == nullptr || a->sizes.size() < 2 || b->sizes.size() < 2) return {};
  return aux_cost(elements(*a) * b->sizes[b->sizes.size() - 2] * arguments.per_element());
}

struct Group {
  unsigned per_element;
  std::string_view names;
};

constexpr Group kElementwise[] = {
    // One function.
    {1,
     "abs neg reciprocal sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh "
     "cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma polygamma mvlgamma i0 igamma "
     "igammac ceil floor round trunc frac sign sgn signbit angle deg2rad rad2deg nan_to_num "
     "conj_physical _conj_physical special_i0e special_i1 special_i1e special_erfcx special_ndtri "
     "special_log_ndtr special_zeta special_entr special_airy_ai special_bessel_j0 "
     "special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 "
     "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 "
     "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 "
     "special_spherical_bessel_j0"},
    // One operation with another tensor or a number.
    {1,
     "mul div floor_divide fmod remainder pow maximum minimum fmax fmin max.other min.other atan2 "
     "hypot copysign nextafter ldexp heaviside gcd lcm complex polar eq ne lt le gt ge isnan isinf "
     "isneginf isposinf clamp_min clamp_max linspace logspace"},
    // A comparison, by which the element or its gradient is kept.
    {1,
     "relu threshold threshold_backward hardtanh_backward hardshrink hardshrink_backward "
     "softshrink_backward"},
    // sqrt and a division; two comparisons; a comparison and a multiplication; an addition and a
    // comparison.
    {2,
     "rsqrt hardtanh leaky_relu leaky_relu_backward _prelu_kernel hardsigmoid_backward _add_relu"},
    // softshrink: a comparison and a subtraction; a logarithm and a multiplication or a division.
    {2, "softshrink xlogy special_xlog1py logit sinc"},
    // By the mask and by the scale.
    {2, "native_dropout native_dropout_backward _fused_dropout _masked_scale"},
    // exp, an addition, a division; a + w·(b − a); a + v·b·c.
    {3, "sigmoid lerp addcmul addcdiv logaddexp logaddexp2"},
    // g·(1 − y)·y; g·(1 − y·y); a comparison and two multiplications.
    {3,
     "sigmoid_backward tanh_backward logit_backward _prelu_kernel_backward rrelu_with_noise "
     "rrelu_with_noise_functional rrelu_with_noise_backward"},
    // A sigmoid and a multiplication; an addition, two comparisons and a division; exp, log1p, tanh
    // and a multiplication; a comparison, expm1 and two factors.
    {4, "silu hardsigmoid mish elu elu_backward celu"},
    // hardsigmoid and a multiplication; two factors, exp, log1p and a comparison.
    {5,
     "hardswish hardswish_backward softplus softplus_backward log_sigmoid_forward "
     "log_sigmoid_backward"},
    // A division, an addition, round, two comparisons, a subtraction, a multiplication.
    {7,
     "fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask "
     "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
     "_fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine"},
    // g·s·(1 + x·(1 − s)) with the sigmoid s.
    {8, "silu_backward"},
    // The forward's three functions, the sigmoid, and four to put them together.
    {10, "mish_backward"},
    // Losses: the difference and its factor; a comparison more; two differences, a product and a
    // division.
    {2, "mse_loss_backward"},
    {3, "smooth_l1_loss_backward huber_loss_backward"},
    {4, "binary_cross_entropy_backward soft_margin_loss_backward"},
    // The bias, and the scale of the query.
    {2, "_transform_bias_rescale_qkv"},
};

// Over the elements that are reduced or scanned.
constexpr Group kReductions[] = {
    // An addition, multiplication or comparison.
    {1,
     "sum nansum mean prod max min amax amin argmax argmin any all cumsum cumprod cummax cummin "
     "_cummax_helper _cummin_helper count_nonzero trace"},
    // A power and an addition; two comparisons; a norm's, and the scale.
    {2, "norm linalg_vector_norm linalg__powsum _foreach_powsum native_norm aminmax _aminmax"},
    {3, "renorm dist logcumsumexp _logcumsumexp"},
    // A comparison, subtraction, exp and addition; the mean's addition, and the squares' three.
    {4, "logsumexp var std var_mean std_mean"},
    // Softmax: a comparison, subtraction, exp, addition, division. Its logarithm: the last is a
    // subtraction.
    {5, "_softmax _log_softmax softmax log_softmax _safe_softmax _masked_softmax"},
    // y·(g − Σ g·y); g − exp(y)·Σ g.
    {4, "_softmax_backward_data _log_softmax_backward_data _masked_softmax_backward"},
};

}  // namespace

void add_elementwise_formulas(FormulaIndex& index) {
  for (const Group& group : kElementwise) {
    index.add_names(group.names, {.cost = elementwise_cost, .per_element = group.per_element});
  }
  for (const Group& group : kReductions) {
    index.add_names(group.names, {.cost = first_tensor_cost,
                                  .arguments = {"self|grad_output"},
                                  .per_element = group.per_element});
  }
  constexpr auto kFree = OpKind::kFree;
  constexpr FormulaRow kRows[] = {
      {"aten::add", kFree, scaled_add_cost, {"alpha"}, 1},
      {"aten::sub", kFree, scaled_add_cost, {"alpha"}, 1},
      {"aten::rsub", kFree, scaled_add_cost, {"alpha"}, 1},
      {"aten::clamp", kFree, clamp_cost, {"min", "max"}, 1},
      {"aten::gelu", kFree, gelu_cost, {"self", "approximate"}},
      {"aten::gelu_backward", kFree, gelu_backward_cost, {"self", "approximate"}},
      // Halves: a sigmoid and a multiplication per element of the result; backward 8.
      {"aten::glu", kFree, first_tensor_cost, {"self"}, 2},
      {"aten::glu_backward", kFree, first_tensor_cost, {"grad_output"}, 8},
      // A difference and its square; abs, a comparison and two factors more; two logarithms, each
      // compared and multiplied, and two additions; a product, exp, log1p. One more for their sum.
      {"aten::mse_loss", kFree, loss_cost, {"self", "reduction"}, 2},
      {"aten::smooth_l1_loss", kFree, loss_cost, {"self", "reduction"}, 5},
      {"aten::huber_loss", kFree, loss_cost, {"self", "reduction"}, 5},
      {"aten::binary_cross_entropy", kFree, loss_cost, {"self", "reduction"}, 8},
      {"aten::binary_cross_entropy_with_logits", kFree, loss_cost, {"self", "reduction"}, 8},
      {"aten::soft_margin_loss", kFree, loss_cost, {"self", "reduction"}, 3},
      {"aten::ger", kFree, outer_cost, {"self", "vec2"}, 1},
      {"aten::addr", kFree, outer_cost, {"vec1", "vec2"}, 2},
      // A subtraction, a multiplication and an addition; for many points it makes a matrix product
      // of them instead, which is then charged.
      {"aten::_cdist_forward", OpKind::kWrapper, distance_cost, {"x1", "x2"}, 3},
      {"aten::_cdist_backward", kFree, distance_cost, {"x1", "x2"}, 5},
      // One addition for each element that is added somewhere.
      {"aten::index_add", kFree, first_tensor_cost, {"source"}, 1},
      {"aten::scatter_add", kFree, first_tensor_cost, {"src"}, 1},
      {"aten::scatter_reduce", kFree, first_tensor_cost, {"src"}, 1},
      {"aten::index_reduce", kFree, first_tensor_cost, {"source"}, 1},
      {"aten::embedding_dense_backward", kFree, first_tensor_cost, {"grad_output"}, 1},
  };
  index.add(kRows);
}

}  // namespace layertrace
