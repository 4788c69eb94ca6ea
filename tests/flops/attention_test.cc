// Attention: the formulas against loops over heads, queries and keys.
#include "flops/attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

struct AttentionSetting {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t dim = 1;
  std::int64_t value_dim = 1;
};

AttentionSetting random_attention(std::mt19937& random) {
  const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(random() % most) + 1; };
  AttentionSetting setting{.batch = up_to(3),
                           .key_heads = up_to(2),
                           .queries = up_to(6),
                           .keys = up_to(6),
                           .dim = up_to(4),
                           .value_dim = up_to(4)};
  setting.heads = setting.key_heads * up_to(3);
  return setting;
}

enum class CausalMask : std::uint8_t { kNone, kFirstKey, kLastKey };

bool meet(const AttentionSetting& setting, std::int64_t query, std::int64_t key, CausalMask mask) {
  if (mask == CausalMask::kNone) return true;
  return key <= query + (mask == CausalMask::kLastKey ? setting.keys - setting.queries : 0);
}

// The products of so many vectors of D and so many of Dv, for each pair.
std::uint64_t naive_attention(const AttentionSetting& setting, int of_dim, int of_value_dim,
                              CausalMask mask) {
  MultiplyAdd multiply_add;
  double sum = 0;
  const auto vectors = [&](int count, std::int64_t length) {
    for (int i = 0; i < count; ++i) {
      for (std::int64_t d = 0; d < length; ++d) multiply_add(sum, 1, 1);
    }
  };
  for (std::int64_t head = 0; head < setting.batch * setting.heads; ++head) {
    for (std::int64_t query = 0; query < setting.queries; ++query) {
      for (std::int64_t key = 0; key < setting.keys; ++key) {
        if (!meet(setting, query, key, mask)) continue;
        vectors(of_dim, setting.dim);
        vectors(of_value_dim, setting.value_dim);
      }
    }
  }
  return multiply_add.flops();
}

void heads_first(CallBuilder& call, const AttentionSetting& s) {
  call.tensor("query", {s.batch, s.heads, s.queries, s.dim})
      .tensor("key", {s.batch, s.key_heads, s.keys, s.dim})
      .tensor("value", {s.batch, s.key_heads, s.keys, s.value_dim});
}
void sequence_first(CallBuilder& call, const AttentionSetting& s) {
  call.tensor("query", {s.batch, s.queries, s.heads, s.dim})
      .tensor("key", {s.batch, s.keys, s.key_heads, s.dim})
      .tensor("value", {s.batch, s.keys, s.key_heads, s.value_dim});
}

struct AttentionKernel {
  const char* name;
  bool is_backward;
  bool is_sequence_first;
  CausalMask mask;  // what is_causal means to it
};
constexpr AttentionKernel kKernels[] = {
    {"aten::scaled_dot_product_attention", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_attention_math", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", true, false,
     CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_efficient_attention", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_efficient_attention_backward", true, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_cudnn_attention", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_cudnn_attention_backward", true, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_fused_attention_overrideable", false, false, CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", true, false,
     CausalMask::kFirstKey},
    {"aten::_scaled_dot_product_flash_attention", false, false, CausalMask::kLastKey},
    {"aten::_scaled_dot_product_flash_attention_backward", true, false, CausalMask::kLastKey},
    {"aten::_flash_attention_forward", false, true, CausalMask::kLastKey},
    {"aten::_flash_attention_backward", true, true, CausalMask::kLastKey},
    {"aten::_cudnn_attention_forward", false, false, CausalMask::kFirstKey},
    {"aten::_cudnn_attention_backward", true, false, CausalMask::kFirstKey},
};

TEST(Attention, AgreesWithLoops) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const AttentionSetting setting = random_attention(random);
    for (const AttentionKernel& kernel : kKernels) {
      const int of_dim = kernel.is_backward ? 3 : 1;  // scores again, and both their gradients
      const int of_value = kernel.is_backward ? 2 : 1;
      for (const bool causal : {false, true}) {
        CallBuilder call(kernel.name);
        kernel.is_sequence_first ? sequence_first(call, setting) : heads_first(call, setting);
        call.number("dropout_p", 0).flag("is_causal", causal);
        EXPECT_EQ(call.flops(), naive_attention(setting, of_dim, of_value, CausalMask::kNone))
            << kernel.name;
        EXPECT_EQ(call.flops_causal(), naive_attention(setting, of_dim, of_value,
                                                       causal ? kernel.mask : CausalMask::kNone))
            << kernel.name;
        EXPECT_EQ(call.fvcore_flops(), 0u);
      }
    }
  }
}

TEST(Attention, ReadsTheEfficientKernelsMask) {
  std::mt19937 random(6);
  for (int i = 0; i < 40; ++i) {
    const AttentionSetting setting = random_attention(random);
    for (const std::int64_t mask : {0, 1, 2}) {
      CallBuilder call("aten::_efficient_attention_forward");
      sequence_first(call, setting);
      call.none("bias").none("cu_seqlens_q").integer("custom_mask_type", mask);
      EXPECT_EQ(call.flops_causal(), naive_attention(setting, 1, 1, static_cast<CausalMask>(mask)));
    }
  }
}

TEST(Attention, CountsThePairsOfAWindow) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const auto queries = static_cast<std::int64_t>(random() % 9);
    const auto keys = static_cast<std::int64_t>(random() % 9);
    AttentionBand band{.shift = static_cast<std::int64_t>(random() % 15) - 7};
    if (random() % 3 != 0) band.left = static_cast<std::int64_t>(random() % 6);
    if (random() % 3 != 0) band.right = static_cast<std::int64_t>(random() % 6);
    std::uint64_t expected = 0;
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t key = 0; key < keys; ++key) {
        const std::int64_t distance = key - query - band.shift;
        if (band.left && distance < -*band.left) continue;
        if (band.right && distance > *band.right) continue;
        ++expected;
      }
    }
    ASSERT_EQ(attention_pairs(queries, keys, band).value(), expected)
        << queries << " queries, " << keys << " keys, shift " << band.shift;
  }
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(attention_pairs(3, 4, {.left = kAll, .right = kAll}).value(), 12u);
}

TEST(Attention, AppliesFlashAttentionsWindow) {
  CallBuilder call("aten::_flash_attention_forward");
  sequence_first(call, {.queries = 6, .keys = 6, .dim = 2, .value_dim = 2});
  call.flag("is_causal", true).integer("window_size_left", 1).integer("window_size_right", -1);
  EXPECT_EQ(call.flops(), 2u * 36 * 4);
  EXPECT_EQ(call.flops_causal(), 2u * (1 + 5 * 2) * 4);  // itself, and one before
}

TEST(Attention, TakesAnyBatchOfDimensions) {
  CallBuilder call("aten::scaled_dot_product_attention");
  call.tensor("query", {5, 6}).tensor("key", {7, 6}).tensor("value", {7, 3});
  EXPECT_EQ(call.flops(), 2u * 5 * 7 * 9);
  CallBuilder broadcast("aten::scaled_dot_product_attention");
  broadcast.tensor("query", {1, 2, 5, 6}).tensor("key", {3, 2, 7, 6}).tensor("value", {3, 2, 7, 3});
  EXPECT_EQ(broadcast.flops(), 2u * 3 * 2 * 5 * 7 * 9);
}

TEST(Attention, CannotCountWhatDependsOnData) {
  CallBuilder packed("aten::_flash_attention_forward");
  packed.tensor("query", {100, 2, 8})
      .tensor("key", {100, 2, 8})
      .tensor("value", {100, 2, 8})
      .tensor("cum_seq_q", {5})
      .tensor("cum_seq_k", {5});
  EXPECT_FALSE(packed.cost());
  CallBuilder in_a_batch("aten::_efficient_attention_forward");
  sequence_first(in_a_batch, {.queries = 100, .keys = 100});
  in_a_batch.tensor("cu_seqlens_q", {5});
  EXPECT_FALSE(in_a_batch.cost());
  CallBuilder paged("aten::_flash_attention_forward");
  sequence_first(paged, {.queries = 4, .keys = 100});
  paged.tensor("block_table", {1, 10});
  EXPECT_FALSE(paged.cost());
  CallBuilder nested("aten::scaled_dot_product_attention");
  nested.tensor("query", {2, 2, 5, 6}, false)
      .tensor("key", {2, 2, 5, 6}, false)
      .tensor("value", {2, 2, 5, 6}, false);
  EXPECT_FALSE(nested.cost());
}

// A backward passes the forward's starts on, of no length where there were none.
TEST(Attention, CountsWhereStartsAreEmpty) {
  CallBuilder call("aten::_flash_attention_backward");
  sequence_first(call, {.queries = 4, .keys = 4, .dim = 2, .value_dim = 2});
  call.tensor("cum_seq_q", {0}).tensor("cum_seq_k", {0}).flag("is_causal", false);
  EXPECT_EQ(call.flops(), 2u * 16 * (3 * 2 + 2 * 2));
}

TEST(Attention, CountsWholeModulesByTheirParts) {
  const std::uint64_t projections = std::uint64_t{2} * 2 * 5 * 8 * 8 * 4;
  const std::uint64_t attention = std::uint64_t{2} * 2 * 5 * 5 * 16;
  CallBuilder module("aten::_native_multi_head_attention");
  module.tensor("query", {2, 5, 8})
      .tensor("key", {2, 5, 8})
      .tensor("value", {2, 5, 8})
      .integer("embed_dim", 8)
      .integer("num_head", 2)
      .tensor("qkv_weight", {24, 8});
  EXPECT_EQ(module.kind(), OpKind::kWrapper);
  EXPECT_EQ(module.flops(), projections + attention);
  CallBuilder layer("aten::_transformer_encoder_layer_fwd");
  layer.tensor("src", {2, 5, 8})
      .integer("embed_dim", 8)
      .integer("num_heads", 2)
      .tensor("ffn_weight_1", {32, 8})
      .tensor("ffn_weight_2", {8, 32});
  EXPECT_EQ(layer.fvcore_flops(), 2u * 5 * 8 * 32 * 2 + 2u * 5 * 8 * 10);
  EXPECT_EQ(layer.flops(), projections + attention + std::uint64_t{2} * 2 * 5 * 8 * 32 * 2);
  CallBuilder nested("aten::_transformer_encoder_layer_fwd");
  nested.tensor("src", {2, 5, 8}, false).integer("num_heads", 2);
  EXPECT_FALSE(nested.cost());
}

}  // namespace
}  // namespace layertrace
