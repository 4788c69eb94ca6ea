// Matrix products: the formulas against loops that make them.
#include <gtest/gtest.h>

#include <random>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

// (batch, m, k) times (batch, k, n), all ones: each result is k.
std::uint64_t naive_products(std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n) {
  MultiplyAdd multiply_add;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i) multiply_add(sum, 1, 1);
        EXPECT_EQ(sum, static_cast<double>(k));
      }
    }
  }
  return multiply_add.flops();
}

TEST(Matmul, AgreesWithLoops) {
  std::mt19937 random(1);
  const auto size = [&] { return static_cast<std::int64_t>(random() % 6); };  // also empty ones
  for (int i = 0; i < 60; ++i) {
    const std::int64_t batch = size();
    const std::int64_t m = size();
    const std::int64_t k = size();
    const std::int64_t n = size();
    const std::uint64_t one = naive_products(1, m, k, n);
    const std::uint64_t all = naive_products(batch, m, k, n);
    SCOPED_TRACE(testing::Message() << batch << ' ' << m << ' ' << k << ' ' << n);

    for (const char* name : {"aten::mm", "aten::_int_mm", "aten::_scaled_mm", "aten::_scaled_mm_v2",
                             "aten::_grouped_mm"}) {
      EXPECT_EQ(CallBuilder(name).tensor("self", {m, k}).tensor("mat2", {k, n}).flops(), one)
          << name;
    }
    for (const char* name : {"aten::addmm", "aten::addmm_", "aten::_addmm_activation"}) {
      CallBuilder call(name);
      call.tensor("self", {m, n}).tensor("mat1", {m, k}).tensor("mat2", {k, n});
      EXPECT_EQ(call.flops(), one) << name;
    }
    EXPECT_EQ(CallBuilder("aten::bmm")
                  .tensor("self", {batch, m, k})
                  .tensor("mat2", {batch, k, n})
                  .flops(),
              all);
    for (const char* name : {"aten::baddbmm", "aten::baddbmm_", "aten::addbmm"}) {
      CallBuilder call(name);
      call.tensor("self", {m, n}).tensor("batch1", {batch, m, k}).tensor("batch2", {batch, k, n});
      EXPECT_EQ(call.flops(), all) << name;
    }
    EXPECT_EQ(CallBuilder("aten::mv").tensor("self", {m, k}).tensor("vec", {k}).flops(),
              naive_products(1, m, k, 1));
    EXPECT_EQ(CallBuilder("aten::addmv")
                  .tensor("self", {m})
                  .tensor("mat", {m, k})
                  .tensor("vec", {k})
                  .flops(),
              naive_products(1, m, k, 1));
    EXPECT_EQ(CallBuilder("aten::dot").tensor("self", {k}).tensor("tensor", {k}).flops(),
              naive_products(1, 1, k, 1));
    EXPECT_EQ(CallBuilder("aten::vdot").tensor("self", {k}).tensor("other", {k}).flops(),
              naive_products(1, 1, k, 1));
    EXPECT_EQ(CallBuilder("aten::linear")
                  .tensor("input", {batch, m, k})
                  .tensor("weight", {n, k})
                  .none("bias")
                  .flops(),
              all);
    EXPECT_EQ(
        CallBuilder("aten::matmul").tensor("self", {batch, m, k}).tensor("other", {k, n}).flops(),
        all);
    EXPECT_EQ(
        CallBuilder("aten::matmul").tensor("self", {m, k}).tensor("other", {batch, k, n}).flops(),
        all);
    EXPECT_EQ(CallBuilder("aten::einsum")
                  .text("equation", "bik, bkj -> bij")
                  .tensors("tensors", {{batch, m, k}, {batch, k, n}})
                  .flops(),
              all);
    EXPECT_EQ(
        CallBuilder("aten::inner").tensor("self", {batch, m, k}).tensor("other", {n, k}).flops(),
        all);
    EXPECT_EQ(CallBuilder("aten::tensordot")
                  .tensor("self", {k, batch, m})
                  .tensor("other", {n, k})
                  .ints("dims_self", {0})
                  .ints("dims_other", {-1})
                  .flops(),
              all);
  }
}

TEST(Matmul, ReadsThePackedWeightsOtherArguments) {
  const std::uint64_t expected = naive_products(1, 4, 32, 16);
  EXPECT_EQ(CallBuilder("aten::_weight_int8pack_mm")
                .tensor("self", {4, 32})
                .tensor("mat2", {16, 32})
                .tensor("scales", {16})
                .flops(),
            expected);
  EXPECT_EQ(CallBuilder("aten::_weight_int4pack_mm")
                .tensor("self", {4, 32})
                .tensor("mat2", {2, 1, 32, 4})
                .integer("qGroupSize", 32)
                .tensor("qScaleAndZeros", {1, 16, 2})
                .flops(),
            expected);
  EXPECT_EQ(CallBuilder("aten::_weight_int4pack_mm_for_cpu")
                .tensor("self", {4, 32})
                .tensor("mat2", {16, 16})
                .integer("qGroupSize", 32)
                .tensor("qScaleAndZeros", {1, 16, 2})
                .flops(),
            expected);
  EXPECT_EQ(CallBuilder("aten::_dyn_quant_matmul_4bit")
                .tensor("inp", {4, 32})
                .tensor("packed_weights", {999})
                .integer("block_size", 32)
                .integer("in_features", 32)
                .integer("out_features", 16)
                .flops(),
            expected);
  EXPECT_EQ(CallBuilder("aten::_mixed_dtypes_linear")
                .tensor("input", {2, 2, 32})
                .tensor("weight", {32, 8})
                .tensor("scale", {16})
                .none("bias")
                .flops(),
            expected);
  // Two values in each stored element of both operands.
  EXPECT_EQ(CallBuilder("aten::_scaled_mm")
                .shape("self", {4, 16}, 1, 2)
                .shape("mat2", {16, 16}, 1, 2)
                .none("bias")
                .flops(),
            expected);
}

TEST(Matmul, CountsEachGroupsProduct) {
  const auto flops = [](const Sizes& a, const Sizes& b) {
    return CallBuilder("aten::_grouped_mm")
        .tensor("self", a)
        .tensor("mat2", b)
        .tensor("offs", {3})
        .flops();
  };
  EXPECT_EQ(flops({8, 5}, {3, 5, 7}), naive_products(1, 8, 5, 7));     // rows are divided
  EXPECT_EQ(flops({3, 8, 5}, {5, 7}), naive_products(1, 8, 5, 7));     // columns are
  EXPECT_EQ(flops({8, 5}, {5, 7}), naive_products(1, 8, 5, 7));        // the sum is
  EXPECT_EQ(flops({3, 8, 5}, {3, 5, 7}), naive_products(3, 8, 5, 7));  // nothing is
  EXPECT_EQ(CallBuilder("aten::_foreach_mm")
                .tensors("self", {{2, 3}, {4, 5}})
                .tensors("mat2", {{3, 4}, {5, 6}})
                .flops(),
            naive_products(1, 2, 3, 4) + naive_products(1, 4, 5, 6));
}

TEST(Matmul, MakesOneProductForEachGradient) {
  for (const std::int64_t input : {0, 1}) {
    for (const std::int64_t weight : {0, 1}) {
      CallBuilder call("aten::mkldnn_linear_backward");
      call.tensor("self", {2, 3, 5})
          .tensor("grad_output", {2, 3, 7})
          .tensor("weight", {7, 5})
          .ints("output_mask", {input, weight, 1});
      EXPECT_EQ(call.flops(),
                naive_products(2, 3, 5, 7) * static_cast<std::uint64_t>(input + weight));
      EXPECT_EQ(call.aux_flops(), 42u);
    }
  }
  EXPECT_EQ(CallBuilder("aten::mkldnn_linear_backward_input")
                .ints("input_size", {6, 5})
                .tensor("grad_output", {6, 7})
                .tensor("weight", {7, 5})
                .flops(),
            naive_products(1, 6, 5, 7));
  EXPECT_EQ(CallBuilder("aten::matmul_backward")
                .tensor("grad", {2, 3, 7})
                .tensor("self", {2, 3, 5})
                .tensor("other", {5, 7})
                .ints("mask", {1, 1})
                .flops(),
            2 * naive_products(2, 3, 5, 7));
}

TEST(Matmul, KnowsEinsumsEquations) {
  const auto cost = [](std::string_view equation, const std::vector<Sizes>& operands) {
    return CallBuilder("aten::einsum")
        .text("equation", equation)
        .tensors("tensors", operands)
        .cost();
  };
  const auto flops = [&](std::string_view equation, const std::vector<Sizes>& operands) {
    return cost(equation, operands).value().flops;
  };
  EXPECT_EQ(flops("ij,jk", {{2, 3}, {3, 5}}), 2u * 2 * 3 * 5);  // the result is implied
  EXPECT_EQ(flops("...ij,...jk->...ik", {{7, 1, 2, 3}, {4, 3, 5}}), 2u * 7 * 4 * 2 * 3 * 5);
  EXPECT_EQ(flops("ij,ij->", {{2, 3}, {2, 3}}), 2u * 2 * 3);
  EXPECT_EQ(flops("i,j->ij", {{2}, {3}}), 0u);                          // an outer product
  EXPECT_EQ(flops("ij,ij->ij", {{2, 3}, {2, 3}}), 0u);                  // a multiplication
  EXPECT_EQ(flops("ii->i", {{3, 3}}), 0u);                              // a view
  EXPECT_EQ(flops("ijm,jk->ik", {{2, 3, 9}, {3, 5}}), 2u * 2 * 3 * 5);  // m is summed over before
  EXPECT_FALSE(cost("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}));         // the order decides
  EXPECT_FALSE(cost("ij,jk->ik", {{2, 3}, {4, 5}}));
  EXPECT_FALSE(cost("ij,jk->ik", {{2, 3}, {3}}));
}

TEST(Matmul, CountsWhatIsAddedToTheResult) {
  const auto aux = [](double beta) {
    CallBuilder call("aten::addmm");
    call.tensor("self", {4}).tensor("mat1", {3, 5}).tensor("mat2", {5, 4}).number("beta", beta);
    return call.aux_flops();
  };
  EXPECT_EQ(aux(1), 12u);
  EXPECT_EQ(aux(0), 0u);
  EXPECT_EQ(CallBuilder("aten::mm").tensor("self", {3, 5}).tensor("mat2", {5, 4}).aux_flops(), 0u);
  EXPECT_EQ(CallBuilder("aten::linear")
                .tensor("input", {3, 5})
                .tensor("weight", {4, 5})
                .tensor("bias", {4})
                .aux_flops(),
            12u);
  CallBuilder gelu("aten::_addmm_activation");
  gelu.tensor("self", {4}).tensor("mat1", {3, 5}).tensor("mat2", {5, 4}).flag("use_gelu", true);
  EXPECT_EQ(gelu.aux_flops(), 12u * 10);
}

TEST(Matmul, SaysWhatItCannotCount) {
  EXPECT_FALSE(CallBuilder("aten::mm").tensor("self", {3, 5}, false).tensor("mat2", {5, 4}).cost());
  EXPECT_FALSE(CallBuilder("aten::mm").tensor("self", {3, 5}).tensor("mat2", {6, 4}).cost());
  EXPECT_FALSE(CallBuilder("aten::mm").tensor("self", {3, 5}).none("mat2").cost());
  EXPECT_FALSE(CallBuilder("aten::mm").tensor("self", {3, 5}).cost());
  EXPECT_FALSE(CallBuilder("aten::bmm").tensor("self", {2, 3, 5}).tensor("mat2", {1, 5, 4}).cost());
  EXPECT_FALSE(CallBuilder("aten::linear").tensor("input", {3, 5}).tensor("weight", {4, 6}).cost());
}

}  // namespace
}  // namespace layertrace
