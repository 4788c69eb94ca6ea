// Finding a formula by name, its arguments by theirs, and the user's own.
#include "flops/formulas.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

TEST(Formulas, FindArgumentsByNameInAnyOrder) {
  CallBuilder call("aten::addmm");
  call.tensor("self", {7}).tensor("mat1", {3, 5}).tensor("mat2", {5, 7}).number("beta", 0);
  const auto cost = call.cost();
  EXPECT_EQ(cost, (OpCost{.flops = 210, .flops_causal = 210}));
  EXPECT_EQ(call.reverse().cost(), cost);

  CallBuilder more("aten::mm");
  more.flag("a_new_one", true).tensor("self", {3, 5}).text("another", "x").tensor("mat2", {5, 7});
  EXPECT_EQ(more.flops(), 210u);
}

TEST(Formulas, SayNothingWhereAnArgumentHasAnotherName) {
  EXPECT_FALSE(CallBuilder("aten::mm").tensor("self", {3, 5}).tensor("renamed", {5, 7}).cost());
}

TEST(Formulas, AreFoundForInPlaceFormsAndOverloads) {
  EXPECT_EQ(CallBuilder("aten::addmm_").kind(), OpKind::kPrimitive);
  EXPECT_EQ(CallBuilder("aten::addmm", "out").kind(), OpKind::kPrimitive);
  EXPECT_EQ(CallBuilder("aten::add_", "Scalar").kind(), OpKind::kFree);
  EXPECT_EQ(CallBuilder("aten::__iand__").kind(), OpKind::kUnknown);
}

TEST(Formulas, KnowWhichOperatorsAreWhat) {
  for (const char* name :
       {"aten::linear", "aten::matmul", "aten::einsum", "aten::conv2d", "aten::lstm",
        "aten::scaled_dot_product_attention", "aten::_native_multi_head_attention",
        "aten::_transformer_encoder_layer_fwd", "aten::conv_transpose3d"}) {
    EXPECT_EQ(CallBuilder(name).kind(), OpKind::kWrapper) << name;
  }
  for (const char* name : {"aten::_linalg_svd", "aten::_fft_c2c", "quantized::linear", "mylib::op",
                           "aten::_foreach_no_such_thing"}) {
    EXPECT_EQ(CallBuilder(name).kind(), OpKind::kUnknown) << name;
    EXPECT_FALSE(CallBuilder(name).cost()) << name;
  }
}

TEST(Formulas, TakeACompositeOperatorWithoutOneAsFree) {
  CallBuilder call("aten::cross_entropy_loss");
  EXPECT_EQ(call.kind(), OpKind::kUnknown);
  EXPECT_TRUE(call.composite().bind().is_silent());
}

TEST(Formulas, StayLargeRatherThanWrapAround) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_EQ(
      CallBuilder("aten::mm").tensor("self", {kHuge, kHuge}).tensor("mat2", {kHuge, kHuge}).flops(),
      std::numeric_limits<std::uint64_t>::max());
  // The widest product of a model of 70 billion parameters, over a million tokens.
  EXPECT_EQ(
      CallBuilder("aten::mm").tensor("self", {1 << 20, 8192}).tensor("mat2", {8192, 28672}).flops(),
      std::uint64_t{2} * (1 << 20) * 8192 * 28672);
}

// ---- The user's own ----

UserFormula fixed(std::uint64_t flops) {
  return [flops](const OpSignature&, OpArguments) {
    return OpCost{.flops = flops, .flops_causal = flops};
  };
}

TEST(UserFormulas, AddAnOperatorAndReplaceOne) {
  CallBuilder unknown("mylib::op");
  CallBuilder known("aten::mm");
  known.tensor("self", {3, 5}).tensor("mat2", {5, 7});
  FormulaTable table;
  table.add("mylib::op", fixed(11));
  table.add("aten::mm", fixed(12));
  EXPECT_EQ(unknown.bind(table).kind(), OpKind::kPrimitive);
  EXPECT_EQ(unknown.flops(table), 11u);
  EXPECT_EQ(known.flops(table), 12u);
  EXPECT_EQ(known.bind(table).fvcore_flops(known.inputs()),
            105u);                 // what fvcore says does not change
  EXPECT_EQ(known.flops(), 210u);  // another table's is as it was
}

TEST(UserFormulas, PreferTheOverload) {
  FormulaTable table;
  table.add("mylib::op", fixed(1));
  table.add("mylib::op.wide", fixed(2), OpKind::kWrapper);
  EXPECT_EQ(CallBuilder("mylib::op").flops(table), 1u);
  EXPECT_EQ(CallBuilder("mylib::op", "wide").flops(table), 2u);
  EXPECT_EQ(CallBuilder("mylib::op", "wide").bind(table).kind(), OpKind::kWrapper);
}

TEST(UserFormulas, ReadSignatureAndInputs) {
  FormulaTable table;
  table.add("mylib::op",
            [](const OpSignature& signature, OpArguments inputs) -> std::optional<OpCost> {
              EXPECT_EQ(signature.name, "mylib::op");
              for (std::size_t i = 0; i < signature.arguments.size(); ++i) {
                if (signature.arguments[i] != "x") continue;
                return OpCost{.flops = elements(std::get<TensorShape>(inputs[i])).value()};
              }
              return {};
            });
  CallBuilder call("mylib::op");
  call.integer("n", 1).tensor("x", {3, 4});
  EXPECT_EQ(call.flops(table), 12u);
}

TEST(UserFormulas, CannotHurtTheProgram) {
  FormulaTable table;
  table.add("mylib::op", [](const OpSignature&, OpArguments) -> std::optional<OpCost> {
    throw std::runtime_error("a mistake");
  });
  EXPECT_FALSE(CallBuilder("mylib::op").bind(table).cost({}));
}

TEST(UserFormulas, AreSharedByTheProcess) {
  const std::uint64_t before = process_formula_revision();
  add_process_formula("mylib::of_the_process", fixed(5));
  EXPECT_EQ(process_formula_revision(), before + 1);
  EXPECT_EQ(CallBuilder("mylib::of_the_process").flops(), 5u);
  FormulaTable table;
  table.add("mylib::of_the_process", fixed(6));
  EXPECT_EQ(CallBuilder("mylib::of_the_process").flops(table), 6u);
}

// ---- fvcore's numbers ----

TEST(Fvcore, CountsWhatItKnows) {
  EXPECT_EQ(CallBuilder("aten::linear")
                .tensor("input", {2, 3, 5})
                .tensor("weight", {7, 5})
                .tensor("bias", {7})
                .fvcore_flops(),
            210u);
  EXPECT_EQ(CallBuilder("aten::addmm")
                .tensor("self", {7})
                .tensor("mat1", {6, 5})
                .tensor("mat2", {5, 7})
                .fvcore_flops(),
            210u);
  const auto batch_norm = [](bool training, bool affine) {
    CallBuilder call("aten::batch_norm");
    call.tensor("input", {2, 5, 2});
    affine ? call.tensor("weight", {5}) : call.none("weight");
    return call.flag("training", training).fvcore_flops();
  };
  EXPECT_EQ(batch_norm(false, true), 40u);
  EXPECT_EQ(batch_norm(false, false), 20u);
  EXPECT_EQ(batch_norm(true, true), 100u);
  EXPECT_EQ(batch_norm(true, false), 80u);
  EXPECT_EQ(
      CallBuilder("aten::layer_norm").tensor("input", {20}).tensor("weight", {20}).fvcore_flops(),
      100u);
  EXPECT_EQ(CallBuilder("aten::group_norm").tensor("input", {20}).none("weight").fvcore_flops(),
            80u);
  EXPECT_EQ(CallBuilder("aten::adaptive_avg_pool2d").tensor("self", {1, 2, 6, 6}).fvcore_flops(),
            72u);
  EXPECT_EQ(CallBuilder("aten::upsample_bilinear2d")
                .tensor("self", {1, 2, 3, 3})
                .ints("output_size", {6, 6})
                .fvcore_flops(),
            288u);
  EXPECT_EQ(CallBuilder("aten::upsample_nearest2d")
                .tensor("self", {1, 2, 3, 3})
                .ints("output_size", {6, 6})
                .fvcore_flops(),
            72u);
}

TEST(Fvcore, DoesNotKnowTheRest) {
  for (const char* name :
       {"aten::relu", "aten::baddbmm", "aten::mv", "aten::convolution_backward"}) {
    EXPECT_FALSE(CallBuilder(name).fvcore_flops()) << name;
  }
  for (const char* name :
       {"aten::scaled_dot_product_attention", "aten::lstm", "aten::_native_multi_head_attention"}) {
    EXPECT_EQ(CallBuilder(name).fvcore_flops(), 0u) << name;  // nor sees what is inside
  }
}

}  // namespace
}  // namespace layertrace
