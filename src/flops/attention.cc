// Scaled dot product attention: 2·B·Hq·Sq·Sk·(D+Dv) forward, the two products of the math. A fused
// backward makes five, the first again and one for each operand of both: 2·B·Hq·Sq·Sk·(3D+2Dv).
// Grouped queries do as many products as there are query heads.
//
// flops_causal counts the pairs of positions that a causal mask or a window leaves. Kernels differ
// in where the mask starts if queries and keys are not as many: PyTorch's own definition, the
// CPU's, cuDNN's and the efficient kernel's is at the first key (ones(L, S).tril()), flash
// attention's on CUDA at the last (nn/attention/bias.py, 2.15: "for this particular op it means
// lower right").
//
// aux_flops: 6 per pair: the scale, and softmax's comparison, subtraction, exp, addition, division;
// backward 6 per pair: scale, subtraction and exp of the recomputation, a subtraction, a
// multiplication and the scale for the scores' gradient; and 2·Dv per query for the rows' sums.
#include "flops/attention.h"

#include <algorithm>
#include <cstdlib>

#include "flops/families.h"

namespace layertrace {
namespace {

// 1 + 2 + … + last, each but `most` at most.
Count ramp(std::int64_t last, std::int64_t most) noexcept {
  if (last <= 0) return {};
  const std::int64_t rising = std::min(last, most);
  const Count triangle = (Count(rising) * (rising + 1)).value() / 2;
  return triangle + Count(last - rising) * most;
}

// Pairs with j − i ≤ limit: query i meets the first i + limit + 1 keys.
std::uint64_t pairs_up_to(std::int64_t limit, std::int64_t queries, std::int64_t keys) noexcept {
  return ramp(limit + queries, keys).value() - ramp(limit, keys).value();
}

enum class Layout : std::uint8_t { kHeadsFirst, kSequenceFirst };  // (…, H, S, D) and (B, S, H, D)
enum class CausalStart : std::uint8_t { kFirstKey, kLastKey };

constexpr SlotNames kAttention = {"query|q",
                                  "key|k",
                                  "value|v",
                                  "is_causal",
                                  "cum_seq_q|cu_seqlens_q",
                                  "seqused_k|seqlen_k",
                                  "block_table",
                                  "custom_mask_type",
                                  "window_size_left",
                                  "window_size_right",
                                  "window_size"};
enum AttentionSlot : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kIsCausal,
  kSequenceStarts,
  kKeysUsed,
  kBlockTable,
  kMaskType,
  kWindowLeft,
  kWindowRight,
  kWindow,
};

struct Attention {
  Count heads = 1;  // of all of the batch
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  Count dim;
  Count value_dim;
};

std::optional<Attention> attention_of(const Arguments& arguments, Layout layout) {
  const TensorShape* query = arguments.tensor(kQuery);
  const TensorShape* key = arguments.tensor(kKey);
  const TensorShape* value = arguments.tensor(kValue);
  if (query == nullptr || key == nullptr || value == nullptr) return {};
  const std::size_t rank = query->sizes.size();
  if (rank < 2 || key->sizes.size() != rank || value->sizes.size() != rank) return {};
  if (layout == Layout::kSequenceFirst && rank != 4) return {};  // packed: lengths are data
  if (query->sizes.back() != key->sizes.back()) return {};

  const std::size_t sequence = layout == Layout::kSequenceFirst ? 1 : rank - 2;
  if (key->sizes[sequence] != value->sizes[sequence]) return {};
  Attention attention{.queries = query->sizes[sequence],
                      .keys = key->sizes[sequence],
                      .dim = query->sizes.back(),
                      .value_dim = value->sizes.back()};
  for (std::size_t dim = 0; dim + 1 < rank; ++dim) {
    // Batches may be broadcast, and key heads are shared among query heads.
    if (dim != sequence) attention.heads *= std::max(query->sizes[dim], key->sizes[dim]);
  }
  return attention;
}

// Sequences one behind the other, whose lengths are data. What passes their starts on has a tensor
// of no length where there are none.
bool is_packed(const Arguments& arguments) {
  const TensorShape* starts = arguments.tensor(kSequenceStarts);
  return starts != nullptr && elements(*starts) != 0;
}

OpCost attention_cost(const Attention& attention, const AttentionBand& band) {
  const Count per_pair = attention.heads * (attention.dim + attention.value_dim);
  const Count pairs = Count(attention.queries) * attention.keys;
  OpCost cost = contraction_cost(per_pair * pairs, attention.heads * pairs * 6);
  cost.flops_causal =
      (per_pair * attention_pairs(attention.queries, attention.keys, band) * 2).value();
  return cost;
}

OpCost attention_backward_cost(const Attention& attention, const AttentionBand& band) {
  const Count per_pair = attention.heads * (attention.dim * 3 + attention.value_dim * 2);
  const Count pairs = Count(attention.queries) * attention.keys;
  const Count row_sums = attention.heads * attention.queries * attention.value_dim * 2;
  OpCost cost = contraction_cost(per_pair * pairs, attention.heads * pairs * 6 + row_sums);
  cost.flops_causal =
      (per_pair * attention_pairs(attention.queries, attention.keys, band) * 2).value();
  return cost;
}

template <Layout kLayout, CausalStart kStart, auto kCost>
std::optional<OpCost> sdpa_cost(const Arguments& arguments) {
  if (kLayout == Layout::kSequenceFirst && is_packed(arguments)) return {};
  if (arguments.has(kKeysUsed) || arguments.has(kBlockTable)) return {};
  const auto attention = attention_of(arguments, kLayout);
  if (!attention) return {};

  AttentionBand band;
  if (kStart == CausalStart::kLastKey) band.shift = attention->keys - attention->queries;
  if (arguments.flag(kIsCausal)) band.right = 0;
  if (const auto left = arguments.integer(kWindowLeft); left && *left >= 0) band.left = left;
  if (const auto right = arguments.integer(kWindowRight); right && *right >= 0) {
    band.right = band.right ? std::min(*band.right, *right) : *right;
  }
  return kCost(*attention, band);
}

// The efficient kernel's masks: 0 none, 1 causal from the first key, 2 from the last; its window is
// of so many keys up to the query's own.
template <auto kCost>
std::optional<OpCost> efficient_cost(const Arguments& arguments) {
  if (is_packed(arguments) || arguments.has(kKeysUsed)) return {};
  const auto attention = attention_of(arguments, Layout::kSequenceFirst);
  if (!attention) return {};
  AttentionBand band;
  const std::int64_t mask = arguments.integer(kMaskType).value_or(0);
  if (mask == 2) band.shift = attention->keys - attention->queries;
  if (mask != 0) {
    band.right = 0;
    if (const auto window = arguments.integer(kWindow); window && *window > 0) {
      band.left = *window - 1;
    }
  }
  return kCost(*attention, band);
}

// cuDNN's takes heads first, where it does not take packed sequences.
template <auto kCost>
std::optional<OpCost> cudnn_cost(const Arguments& arguments) {
  const TensorShape* query = arguments.tensor(kQuery);
  if (query == nullptr || query->sizes.size() != 4) return {};
  return sdpa_cost<Layout::kHeadsFirst, CausalStart::kFirstKey, kCost>(arguments);
}

// ---- Whole modules in one operator ----

constexpr SlotNames kMultiHead = {"query|src",    "key",          "num_head|num_heads",
                                  "ffn_weight_1", "ffn_weight_2", "use_gelu"};

// Projections of query, key and value, attention, and the projection of its result; (B, S, E).
// aux_flops: the biases of both projections, and attention's.
std::optional<OpCost> multi_head_cost(const Arguments& arguments) {
  const TensorShape* query = arguments.tensor(0);
  const TensorShape* key = arguments.tensor(1) != nullptr ? arguments.tensor(1) : query;
  const auto heads = arguments.integer(2);
  if (query == nullptr || arguments.has(1) != (arguments.tensor(1) != nullptr)) return {};
  if (query->sizes.size() != 3 || key->sizes.size() != 3 || !heads || *heads < 1) return {};
  const std::int64_t width = query->sizes[2];
  const Count batch = query->sizes[0];
  const Count rows = batch * query->sizes[1];
  const Count key_rows = batch * key->sizes[1];
  const OpCost inner = attention_cost({.heads = batch * *heads,
                                       .queries = query->sizes[1],
                                       .keys = key->sizes[1],
                                       .dim = width / *heads,
                                       .value_dim = width / *heads},
                                      {});
  const Count projections = rows * width * width * 2 + key_rows * width * width * 2;
  return contraction_cost(projections + inner.macs(),
                          (rows * 2 + key_rows * 2) * width + inner.aux_flops);
}

// That, and two linear layers. aux_flops: also their biases, the activation (ReLU 1, GELU 5), two
// residual additions and two layer norms (8 each).
std::optional<OpCost> encoder_layer_cost(const Arguments& arguments) {
  const auto attention = multi_head_cost(arguments);
  const TensorShape* first = arguments.tensor(3);
  const TensorShape* second = arguments.tensor(4);
  if (!attention || first == nullptr || second == nullptr || first->sizes.size() != 2) return {};
  const TensorShape& source = *arguments.tensor(0);
  const Count rows = Count(source.sizes[0]) * source.sizes[1];
  const Count hidden = rows * first->sizes[0];
  return contraction_cost(
      Count(attention->macs()) + rows * (elements(*first) + elements(*second)),
      Count(attention->aux_flops) + hidden * (arguments.flag(5) ? 6 : 2) + elements(source) * 19);
}

// fvcore's hooks switch this operator off: it sees the two linear layers and the norms, and
// attention's as one operator, which it does not know.
std::optional<std::uint64_t> fvcore_encoder_layer(const Arguments& arguments,
                                                  const std::optional<OpCost>& cost) {
  const auto attention = multi_head_cost(arguments);
  if (!cost || !attention) return {};
  const Count linear = cost->macs() - attention->macs();
  return (linear + elements(*arguments.tensor(0)) * 10).value();
}

}  // namespace

Count attention_pairs(std::int64_t queries, std::int64_t keys, const AttentionBand& band) noexcept {
  if (!band.left && !band.right) return Count(queries) * keys;
  // Limits further away than any pair make no difference, and would overflow.
  const std::int64_t far = queries + keys + std::abs(band.shift);
  const std::int64_t right = std::min(band.right.value_or(far), far) + band.shift;
  const std::uint64_t up_to_right = pairs_up_to(right, queries, keys);
  if (!band.left) return up_to_right;
  const std::int64_t before_left = band.shift - std::min(*band.left, far) - 1;
  const std::uint64_t up_to_left = pairs_up_to(before_left, queries, keys);
  return up_to_right > up_to_left ? up_to_right - up_to_left : 0;
}

void add_attention_formulas(FormulaIndex& index) {
  using enum Layout;
  using enum CausalStart;
  constexpr auto kForward = attention_cost;
  constexpr auto kBackward = attention_backward_cost;
  // fvcore sees attention as one operator, which it does not know.
  const auto add = [&](std::string_view names, CostFunction cost,
                       OpKind kind = OpKind::kPrimitive) {
    index.add_names(names,
                    {.kind = kind, .cost = cost, .arguments = kAttention, .fvcore = fvcore_none});
  };
  add("scaled_dot_product_attention _scaled_dot_product_attention_math",
      sdpa_cost<kHeadsFirst, kFirstKey, kForward>, OpKind::kWrapper);
  add("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
      "_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable "
      "_scaled_dot_product_attention_math_for_mps _triton_scaled_dot_attention",
      sdpa_cost<kHeadsFirst, kFirstKey, kForward>);
  add("_scaled_dot_product_flash_attention_for_cpu_backward "
      "_scaled_dot_product_efficient_attention_backward "
      "_scaled_dot_product_cudnn_attention_backward "
      "_scaled_dot_product_fused_attention_overrideable_backward",
      sdpa_cost<kHeadsFirst, kFirstKey, kBackward>);
  add("_scaled_dot_product_flash_attention", sdpa_cost<kHeadsFirst, kLastKey, kForward>);
  add("_scaled_dot_product_flash_attention_backward", sdpa_cost<kHeadsFirst, kLastKey, kBackward>);
  add("_flash_attention_forward _flash_attention_forward_no_dropout_inplace",
      sdpa_cost<kSequenceFirst, kLastKey, kForward>);
  add("_flash_attention_backward", sdpa_cost<kSequenceFirst, kLastKey, kBackward>);
  add("_efficient_attention_forward", efficient_cost<kForward>);
  add("_efficient_attention_backward", efficient_cost<kBackward>);
  add("_cudnn_attention_forward _cudnn_attention_forward_no_dropout_inplace", cudnn_cost<kForward>);
  add("_cudnn_attention_backward", cudnn_cost<kBackward>);

  constexpr FormulaRow kModules[] = {
      {"aten::_native_multi_head_attention", OpKind::kWrapper, multi_head_cost, kMultiHead, 0,
       fvcore_none},
      {"aten::_triton_multi_head_attention", OpKind::kWrapper, multi_head_cost, kMultiHead, 0,
       fvcore_none},
      {"aten::_transformer_encoder_layer_fwd", OpKind::kWrapper, encoder_layer_cost, kMultiHead, 0,
       fvcore_encoder_layer},
  };
  index.add(kModules);
}

}  // namespace layertrace
