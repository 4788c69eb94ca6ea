// Matrix products that the dispatcher sees as such: 2·m·k·n for (m, k) times (k, n).
//
// aux_flops: one addition per element of the result for what is added to it (the bias, beta·C
// unless beta is 0; its factors are taken as 1), one multiplication where scales are applied to it,
// and the activation of _addmm_activation (ReLU 1, GELU 9).
//
// Outer products (ger, addr) sum nothing up: they are multiplications, in the elementwise table.
#include "flops/families.h"

namespace layertrace {
namespace {

struct Product {
  Count batch = 1;
  Count m;
  Count k;
  Count n;
  Count macs() const { return batch * m * k * n; }
  Count results() const { return batch * m * n; }
};

// (…, m, k) times (…, k, n), both of `rank` dimensions.
std::optional<Product> product_of(const TensorShape* a, const TensorShape* b, std::size_t rank) {
  if (a == nullptr || b == nullptr || a->sizes.size() != rank || b->sizes.size() != rank) return {};
  if (a->sizes[rank - 1] != b->sizes[rank - 2]) return {};
  Product product{.m = a->sizes[rank - 2],
                  .k = Count(a->sizes[rank - 1]) * a->values_per_element,
                  .n = b->sizes[rank - 1]};
  if (rank == 3) {
    if (a->sizes[0] != b->sizes[0]) return {};
    product.batch = a->sizes[0];
  }
  return product;
}

// Slots: a, b.
template <std::size_t kRank>
std::optional<OpCost> mm_cost(const Arguments& arguments) {
  const auto product = product_of(arguments.tensor(0), arguments.tensor(1), kRank);
  if (!product) return {};
  return contraction_cost(product->macs());
}

// Slots: a, b, beta, use_gelu.
template <std::size_t kRank>
std::optional<OpCost> addmm_cost(const Arguments& arguments) {
  const auto product = product_of(arguments.tensor(0), arguments.tensor(1), kRank);
  if (!product) return {};
  const Count adds = arguments.number(2, 1) == 0 ? 0 : 1;
  return contraction_cost(product->macs(), product->results() * adds);
}

std::optional<OpCost> addmm_activation_cost(const Arguments& arguments) {
  const auto product = product_of(arguments.tensor(0), arguments.tensor(1), 2);
  if (!product) return {};
  const Count per_result = 1 + (arguments.flag(3) ? 9 : 1);
  return contraction_cost(product->macs(), product->results() * per_result);
}

// Sums over the batch, too: one result of (m, n).
std::optional<OpCost> addbmm_cost(const Arguments& arguments) {
  const auto product = product_of(arguments.tensor(0), arguments.tensor(1), 3);
  if (!product) return {};
  const Count adds = arguments.number(2, 1) == 0 ? 0 : 1;
  return contraction_cost(product->macs(), product->m * product->n * adds);
}

// Slots: a, b, bias.
std::optional<OpCost> scaled_mm_cost(const Arguments& arguments) {
  const auto product = product_of(arguments.tensor(0), arguments.tensor(1), 2);
  if (!product) return {};
  return contraction_cost(product->macs(), product->results() * (arguments.has(2) ? 2 : 1));
}

// One product per group, the rows of (m, k), the columns of (k, n) or the sum over k being divided
// among them: only where both have a dimension for the groups does each do all of it. How the
// offsets divide is data; that they cover all is assumed. Slots: a, b.
std::optional<OpCost> grouped_mm_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  if (a == nullptr || b == nullptr) return {};
  const std::size_t a_rank = a->sizes.size();
  const std::size_t b_rank = b->sizes.size();
  if (a_rank < 2 || a_rank > 3 || b_rank < 2 || b_rank > 3) return {};
  if (a->sizes[a_rank - 1] != b->sizes[b_rank - 2]) return {};
  if (a_rank == 3 && b_rank == 3) return mm_cost<3>(arguments);
  return contraction_cost(Count(a->sizes[a_rank - 2]) * a->sizes[a_rank - 1] *
                          a->values_per_element * b->sizes[b_rank - 1]);
}

// Slots: list of a, list of b.
std::optional<OpCost> list_mm_cost(const Arguments& arguments) {
  const auto a = arguments.tensors(0);
  const auto b = arguments.tensors(1);
  if (a.size() != b.size()) return {};
  Count macs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto product = product_of(&a[i], &b[i], 2);
    if (!product || !a[i].is_plain || !b[i].is_plain) return {};
    macs += product->macs();
  }
  return contraction_cost(macs);
}

// Slots: matrix, vector, beta.
std::optional<OpCost> mv_cost(const Arguments& arguments) {
  const TensorShape* matrix = arguments.tensor(0);
  const TensorShape* vector = arguments.tensor(1);
  if (matrix == nullptr || vector == nullptr) return {};
  if (matrix->sizes.size() != 2 || vector->sizes.size() != 1) return {};
  if (matrix->sizes[1] != vector->sizes[0]) return {};
  return contraction_cost(elements(*matrix));
}

std::optional<OpCost> addmv_cost(const Arguments& arguments) {
  auto cost = mv_cost(arguments);
  if (cost && arguments.number(2, 1) != 0) {
    cost->aux_flops = Count(arguments.tensor(0)->sizes[0]).value();
  }
  return cost;
}

// Slots: the vectors.
std::optional<OpCost> dot_cost(const Arguments& arguments) {
  const TensorShape* a = arguments.tensor(0);
  const TensorShape* b = arguments.tensor(1);
  if (a == nullptr || b == nullptr || elements(*a) != elements(*b)) return {};
  return contraction_cost(elements(*a));
}

// ---- Weights that are packed, whose other arguments tell n; k is the input's ----

std::optional<OpCost> rows_times(const TensorShape* input, Count n, Count per_result) {
  if (input == nullptr || input->sizes.empty()) return {};
  const Count k = input->sizes.back();
  const Count rows = elements(input->sizes.first(input->sizes.size() - 1));
  return contraction_cost(rows * k * n, rows * n * per_result);
}

// (n, k), with a scale per n. Slots: input, weight.
std::optional<OpCost> int8pack_mm_cost(const Arguments& arguments) {
  const TensorShape* weight = arguments.tensor(1);
  if (weight == nullptr || weight->sizes.size() != 2) return {};
  return rows_times(arguments.tensor(0), weight->sizes[0], 1);
}

// n rows, of which CUDA's tiles of four dimensions have eight each (_meta_registrations.py, 2.15).
// Scales are applied to the weights as these are read, and not counted. Slots: input, weight.
std::optional<OpCost> int4pack_mm_cost(const Arguments& arguments) {
  const TensorShape* weight = arguments.tensor(1);
  if (weight == nullptr || (weight->sizes.size() != 2 && weight->sizes.size() != 4)) return {};
  const int rows_per_tile = weight->sizes.size() == 4 ? 8 : 1;
  return rows_times(arguments.tensor(0), Count(weight->sizes[0]) * rows_per_tile, 0);
}

// Slots: input, out_features.
std::optional<OpCost> dynamic_4bit_mm_cost(const Arguments& arguments) {
  const auto n = arguments.integer(1);
  if (!n) return {};
  return rows_times(arguments.tensor(0), *n, 1);
}

// A scale per column of the result. Slots: input, scale, bias.
std::optional<OpCost> mixed_dtypes_linear_cost(const Arguments& arguments) {
  const TensorShape* scale = arguments.tensor(1);
  if (scale == nullptr) return {};
  return rows_times(arguments.tensor(0), elements(*scale), arguments.has(2) ? 2 : 1);
}

constexpr auto kMatrix = OpKind::kPrimitive;

constexpr FormulaRow kMatmulRows[] = {
    {"aten::mm", kMatrix, mm_cost<2>, {"self", "mat2"}, 0, fvcore_macs},
    {"aten::addmm", kMatrix, addmm_cost<2>, {"mat1", "mat2", "beta"}, 0, fvcore_macs},
    {"aten::_addmm_activation", kMatrix, addmm_activation_cost, {"mat1", "mat2", "", "use_gelu"}},
    {"aten::_scaled_mm", kMatrix, scaled_mm_cost, {"self", "mat2", "bias"}},
    {"aten::_scaled_mm_v2", kMatrix, scaled_mm_cost, {"self", "mat2", "bias"}},
    {"aten::_scaled_addmm", kMatrix, scaled_mm_cost, {"mat1", "mat2", "self"}},
    {"aten::_int_mm", kMatrix, mm_cost<2>, {"self", "mat2"}},
    {"aten::_foreach_mm", kMatrix, list_mm_cost, {"self", "mat2"}},
    {"aten::_grouped_mm", kMatrix, grouped_mm_cost, {"self", "mat2"}},
    {"aten::_scaled_grouped_mm", kMatrix, grouped_mm_cost, {"self", "mat2"}},
    {"aten::_scaled_grouped_mm_v2", kMatrix, grouped_mm_cost, {"self", "mat2"}},
    {"aten::bmm", kMatrix, mm_cost<3>, {"self", "mat2"}, 0, fvcore_macs},
    {"aten::baddbmm", kMatrix, addmm_cost<3>, {"batch1", "batch2", "beta"}},
    {"aten::addbmm", kMatrix, addbmm_cost, {"batch1", "batch2", "beta"}},
    {"aten::mv", kMatrix, mv_cost, {"self", "vec"}},
    {"aten::addmv", kMatrix, addmv_cost, {"mat", "vec", "beta"}},
    {"aten::dot", kMatrix, dot_cost, {"self", "tensor"}},
    {"aten::vdot", kMatrix, dot_cost, {"self", "other"}},
    {"aten::_weight_int8pack_mm", kMatrix, int8pack_mm_cost, {"self", "mat2"}},
    {"aten::_weight_int4pack_mm", kMatrix, int4pack_mm_cost, {"self", "mat2"}},
    {"aten::_weight_int4pack_mm_for_cpu", kMatrix, int4pack_mm_cost, {"self", "mat2"}},
    {"aten::_weight_int4pack_mm_with_scales_and_zeros",
     kMatrix,
     int4pack_mm_cost,
     {"self", "mat2"}},
    {"aten::_dyn_quant_matmul_4bit", kMatrix, dynamic_4bit_mm_cost, {"inp", "out_features"}},
    {"aten::_mixed_dtypes_linear", kMatrix, mixed_dtypes_linear_cost, {"input", "scale", "bias"}},
};

}  // namespace

void add_matmul_formulas(FormulaIndex& index) { index.add(kMatmulRows); }

}  // namespace layertrace
