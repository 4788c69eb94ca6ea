// Operators that end in matrix products: linear, matmul, einsum and the like. Their backends mostly
// call mm, addmm or bmm, which is then charged; these formulas are for those that do not.
//
// aux_flops: one addition per element of the result for the bias, and in a backward one per element
// of its gradient's sum.
#include <algorithm>
#include <array>

#include "flops/families.h"

namespace layertrace {
namespace {

struct LinearShape {
  Count rows;
  Count inputs;
  Count outputs;
  Count macs() const { return rows * inputs * outputs; }
  Count results() const { return rows * outputs; }
};

// Rows of `inputs` each, times a weight of (outputs, inputs), or (inputs) for one output.
std::optional<LinearShape> linear_shape(const TensorShape* input, const TensorShape* weight) {
  if (input == nullptr || weight == nullptr || input->sizes.empty()) return {};
  const std::size_t rank = weight->sizes.size();
  if (rank < 1 || rank > 2 || input->sizes.back() != weight->sizes.back()) return {};
  return LinearShape{.rows = elements(input->sizes.first(input->sizes.size() - 1)),
                     .inputs = input->sizes.back(),
                     .outputs = rank == 2 ? weight->sizes[0] : 1};
}

// Slots: input, weight, bias.
std::optional<OpCost> linear_cost(const Arguments& arguments) {
  const auto shape = linear_shape(arguments.tensor(0), arguments.tensor(1));
  if (!shape) return {};
  return contraction_cost(shape->macs(), arguments.has(2) ? shape->results() : 0);
}

// One product for each gradient that the mask asks for. Slots: input, weight, mask.
std::optional<OpCost> linear_backward_cost(const Arguments& arguments) {
  const auto shape = linear_shape(arguments.tensor(0), arguments.tensor(1));
  const auto mask = arguments.ints(2);
  if (!shape || mask.size() != 3) return {};
  const int products = (mask[0] != 0 ? 1 : 0) + (mask[1] != 0 ? 1 : 0);
  return contraction_cost(shape->macs() * products, mask[2] != 0 ? shape->results() : 0);
}

// Of the input alone, from the gradient of the output. Slots: grad_output, weight.
std::optional<OpCost> linear_backward_input_cost(const Arguments& arguments) {
  const TensorShape* gradient = arguments.tensor(0);
  const TensorShape* weight = arguments.tensor(1);
  if (gradient == nullptr || weight == nullptr || gradient->sizes.empty()) return {};
  if (weight->sizes.size() != 2 || gradient->sizes.back() != weight->sizes[0]) return {};
  return contraction_cost(elements(*gradient) * weight->sizes[1]);
}

// Of weight and bias. Slots: input, weight, bias_defined.
std::optional<OpCost> linear_backward_weights_cost(const Arguments& arguments) {
  const auto shape = linear_shape(arguments.tensor(0), arguments.tensor(1));
  if (!shape) return {};
  return contraction_cost(shape->macs(), arguments.flag(2) ? shape->results() : 0);
}

// (…, m, k) times (…, k, n), the leading dimensions broadcast; a vector is a row or a column.
std::optional<Count> matmul_macs(const TensorShape* a, const TensorShape* b) {
  if (a == nullptr || b == nullptr || a->sizes.empty() || b->sizes.empty()) return {};
  const std::size_t a_rank = a->sizes.size();
  const std::size_t b_rank = b->sizes.size();
  if (a->sizes.back() != b->sizes[b_rank == 1 ? 0 : b_rank - 2]) return {};
  Count macs = Count(a->sizes.back()) * a->values_per_element;
  if (a_rank > 1) macs *= a->sizes[a_rank - 2];
  if (b_rank > 1) macs *= b->sizes[b_rank - 1];
  for (std::size_t from_end = 3; from_end <= std::max(a_rank, b_rank); ++from_end) {
    const std::int64_t of_a = from_end <= a_rank ? a->sizes[a_rank - from_end] : 1;
    const std::int64_t of_b = from_end <= b_rank ? b->sizes[b_rank - from_end] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return {};
    macs *= of_a == 1 ? of_b : of_a;
  }
  return macs;
}

// Slots: a, b.
std::optional<OpCost> matmul_cost(const Arguments& arguments) {
  const auto macs = matmul_macs(arguments.tensor(0), arguments.tensor(1));
  if (!macs) return {};
  return contraction_cost(*macs);
}

// Slots: a, b, mask.
std::optional<OpCost> matmul_backward_cost(const Arguments& arguments) {
  const auto macs = matmul_macs(arguments.tensor(0), arguments.tensor(1));
  const auto mask = arguments.ints(2);
  if (!macs || mask.size() != 2) return {};
  return contraction_cost(*macs * ((mask[0] != 0 ? 1 : 0) + (mask[1] != 0 ? 1 : 0)));
}

// Over the last dimension of both; a scalar only scales. Slots: a, b.
std::optional<OpCost> inner_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  if (a == nullptr || b == nullptr) return {};
  if (a->sizes.empty() || b->sizes.empty()) return OpCost();
  if (a->sizes.back() != b->sizes.back()) return {};
  return contraction_cost(elements(*a) * elements(b->sizes.first(b->sizes.size() - 1)));
}

// Sizes of the dimensions that are not among `summed`, which may be counted from the end.
Count kept_elements(const TensorShape& tensor, std::span<const std::int64_t> summed) {
  const auto rank = static_cast<std::int64_t>(tensor.sizes.size());
  Count kept = 1;
  for (std::int64_t dim = 0; dim < rank; ++dim) {
    const bool is_summed = std::any_of(summed.begin(), summed.end(), [&](std::int64_t other) {
      return other == dim || other + rank == dim;
    });
    if (!is_summed) kept *= tensor.sizes[static_cast<std::size_t>(dim)];
  }
  return kept;
}

// Over pairs of dimensions. Where one of a pair is of size one, the other's is summed over before,
// by itself. Slots: a, b, dims of a, dims of b.
std::optional<OpCost> tensordot_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  const auto a_dims = arguments.ints(2);
  const auto b_dims = arguments.ints(3);
  if (a == nullptr || b == nullptr || a_dims.size() != b_dims.size()) return {};
  if (a_dims.empty()) return OpCost();  // an outer product

  const auto size_of = [](const TensorShape& tensor, std::int64_t dim) -> std::int64_t {
    const auto rank = static_cast<std::int64_t>(tensor.sizes.size());
    if (dim < 0) dim += rank;
    return dim >= 0 && dim < rank ? tensor.sizes[static_cast<std::size_t>(dim)] : -1;
  };
  Count macs = kept_elements(*a, a_dims) * kept_elements(*b, b_dims);
  for (std::size_t i = 0; i < a_dims.size(); ++i) {
    const std::int64_t of_a = size_of(*a, a_dims[i]);
    const std::int64_t of_b = size_of(*b, b_dims[i]);
    if (of_a < 0 || of_b < 0 || (of_a != of_b && of_a != 1 && of_b != 1)) return {};
    macs *= std::min(of_a, of_b);
  }
  return contraction_cost(macs);
}

// ---- einsum ----

// The sizes of an equation's labels; "..." stands for up to kMostEllipsis dimensions.
class EinsumLabels {
 public:
  // False where the operand does not fit what is known.
  bool add(std::string_view labels, std::span<const std::int64_t> sizes) {
    const std::size_t dots = labels.find("...");
    const std::size_t named = labels.size() - (dots == std::string_view::npos ? 0 : 3);
    if (sizes.size() < named) return false;
    const std::size_t ellipsis = sizes.size() - named;
    if (ellipsis > (dots == std::string_view::npos ? 0 : kMostEllipsis)) return false;
    std::size_t dim = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (i == dots) {
        // Aligned at the end, as in broadcasting.
        for (std::size_t d = 0; d < ellipsis; ++d) {
          if (!set(kFirstEllipsis + (ellipsis - 1 - d), sizes[dim++])) return false;
        }
        i += 2;
      } else if (!set(static_cast<unsigned char>(labels[i]), sizes[dim++])) {
        return false;
      }
    }
    return true;
  }

  void drop(char label) { sizes_[static_cast<unsigned char>(label)] = -1; }

  Count volume() const {
    Count volume = 1;
    for (const std::int64_t size : sizes_) {
      if (size >= 0) volume *= size;
    }
    return volume;
  }

 private:
  static constexpr std::size_t kFirstEllipsis = 128;  // behind all letters
  static constexpr std::size_t kMostEllipsis = 16;

  bool set(std::size_t label, std::int64_t size) {
    if (label >= sizes_.size()) return false;
    std::int64_t& known = sizes_[label];
    if (known > 1 && size != 1 && size != known) return false;
    if (known < 0 || known == 1) known = size;
    return true;
  }

  std::array<std::int64_t, kFirstEllipsis + kMostEllipsis> sizes_ = [] {
    std::array<std::int64_t, kFirstEllipsis + kMostEllipsis> unknown;
    unknown.fill(-1);
    return unknown;
  }();
};

// Two operands, one product for each combination of their labels' values. A label that only one of
// them has is summed over before, by itself; where none is left to sum over, einsum multiplies. Of
// more operands the order decides, which only the products know that it makes. Slots: equation,
// operands.
std::optional<OpCost> einsum_cost(const Arguments& arguments) {
  std::array<char, 128> buffer;
  std::size_t length = 0;
  for (const char c : arguments.text(0)) {
    if (c == ' ') continue;
    if (length == buffer.size()) return {};
    buffer[length++] = c;
  }
  const std::string_view equation(buffer.data(), length);
  const std::size_t arrow = equation.find("->");
  const std::string_view inputs = equation.substr(0, arrow);
  const std::size_t comma = inputs.find(',');
  const auto operands = arguments.tensors(1);
  if (operands.size() < 2) return OpCost();
  if (operands.size() > 2 || comma == std::string_view::npos) return {};

  const std::array<std::string_view, 2> of_operand = {inputs.substr(0, comma),
                                                      inputs.substr(comma + 1)};
  EinsumLabels labels;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!operands[i].is_plain || !labels.add(of_operand[i], operands[i].sizes)) return {};
  }
  // Without an arrow the result has the labels that occur once.
  const auto is_summed = [&](char label) {
    if (arrow != std::string_view::npos) {
      return equation.find(label, arrow + 2) == std::string_view::npos;
    }
    return std::count(inputs.begin(), inputs.end(), label) > 1;
  };
  bool contracts = false;
  for (const char label : inputs) {
    if (label == ',' || label == '.' || !is_summed(label)) continue;
    const bool is_shared = of_operand[0].find(label) != std::string_view::npos &&
                           of_operand[1].find(label) != std::string_view::npos;
    contracts |= is_shared;
    if (!is_shared) labels.drop(label);
  }
  return contracts ? contraction_cost(labels.volume()) : OpCost();
}

constexpr auto kWrapper = OpKind::kWrapper;
constexpr auto kFused = OpKind::kPrimitive;

constexpr FormulaRow kMatmulWrapperRows[] = {
    {"aten::linear", kWrapper, linear_cost, {"input", "weight", "bias"}, 0, fvcore_macs},
    {"aten::matmul", kWrapper, matmul_cost, {"self", "other"}, 0, fvcore_macs},
    {"aten::linalg_matmul", kWrapper, matmul_cost, {"self", "other"}},
    {"aten::einsum", kWrapper, einsum_cost, {"equation", "tensors"}, 0, fvcore_macs},
    {"aten::einsum.sublist"},  // its equation is in no argument; it calls the other one
    {"aten::inner", kWrapper, inner_cost, {"self", "other"}},
    {"aten::tensordot", kWrapper, tensordot_cost, {"self", "other", "dims_self", "dims_other"}},
    {"aten::matmul_backward", kWrapper, matmul_backward_cost, {"self", "other", "mask"}},
    {"aten::linear_backward", kWrapper, linear_backward_cost, {"self", "weight", "output_mask"}},
    {"aten::mkldnn_linear", kFused, linear_cost, {"self", "weight", "bias"}},
    {"aten::mkldnn_linear_backward",
     kWrapper,
     linear_backward_cost,
     {"self", "weight", "output_mask"}},
    {"aten::mkldnn_linear_backward_input",
     kFused,
     linear_backward_input_cost,
     {"grad_output", "weight"}},
    {"aten::mkldnn_linear_backward_weights",
     kFused,
     linear_backward_weights_cost,
     {"input", "weight", "bias_defined"}},
    {"mkldnn::_linear_pointwise", kFused, linear_cost, {"X", "W", "B"}},
    {"mkl::_mkl_linear", kFused, linear_cost, {"X", "ORI_W", "B"}},
    {"quantized::linear_dynamic_fp16_unpacked_weight",
     kFused,
     linear_cost,
     {"X", "weight", "bias"}},
};

}  // namespace

void add_matmul_wrapper_formulas(FormulaIndex& index) {
  index.add(kMatmulWrapperRows);
  // These run products whose order they choose, or which their arguments do not tell.
  index.add_names(
      "chain_matmul linalg_multi_dot linalg_vecdot bilinear _trilinear linalg_matrix_power", {});
}

}  // namespace layertrace
