// What costs aux_flops alone, and what costs nothing.
#include <gtest/gtest.h>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

std::uint64_t unary(const char* name) {
  CallBuilder call(name);
  call.tensor("self", {4, 5});
  EXPECT_EQ(call.kind(), OpKind::kFree) << name;
  EXPECT_EQ(call.flops(), 0u) << name;
  return call.aux_flops();
}

TEST(Aux, CountsElementwiseOperators) {
  EXPECT_EQ(unary("aten::relu"), 20u);
  EXPECT_EQ(unary("aten::relu_"), 20u);
  EXPECT_EQ(unary("aten::exp"), 20u);
  EXPECT_EQ(unary("aten::rsqrt"), 40u);
  EXPECT_EQ(unary("aten::sigmoid"), 60u);
  EXPECT_EQ(unary("aten::silu"), 80u);
  EXPECT_EQ(unary("aten::gelu"), 100u);
  EXPECT_EQ(CallBuilder("aten::gelu").tensor("self", {20}).text("approximate", "tanh").aux_flops(),
            180u);
  EXPECT_EQ(
      CallBuilder("aten::clamp").tensor("self", {20}).number("min", 0).none("max").aux_flops(),
      20u);
  EXPECT_EQ(
      CallBuilder("aten::clamp").tensor("self", {20}).number("min", 0).number("max", 1).aux_flops(),
      40u);
}

TEST(Aux, CountsTheBroadcast) {
  EXPECT_EQ(CallBuilder("aten::mul").tensor("self", {4, 1, 3}).tensor("other", {5, 1}).aux_flops(),
            60u);
  EXPECT_EQ(CallBuilder("aten::mul").tensor("self", {4, 3}).number("other", 2).aux_flops(), 12u);
  EXPECT_EQ(CallBuilder("aten::mul").tensor("self", {0, 3}).tensor("other", {1}).aux_flops(), 0u);
  EXPECT_EQ(CallBuilder("aten::mul", "out")
                .tensor("self", {3})
                .tensor("other", {2, 3})
                .tensor("out", {2, 3})
                .aux_flops(),
            6u);
  EXPECT_FALSE(CallBuilder("aten::mul").tensor("self", {4}, false).cost());
}

TEST(Aux, CountsAlpha) {
  const auto add = [](double alpha) {
    return CallBuilder("aten::add_", "Tensor")
        .tensor("self", {20})
        .tensor("other", {20})
        .number("alpha", alpha)
        .aux_flops();
  };
  EXPECT_EQ(add(1), 20u);
  EXPECT_EQ(add(-0.1), 40u);
}

TEST(Aux, CountsListsOfTensorsAsTheOperatorOnEach) {
  const auto list = [](const char* name) {
    return CallBuilder(name)
        .tensors("self", {{4, 5}, {10}})
        .tensors("other", {{4, 5}, {10}})
        .aux_flops();
  };
  EXPECT_EQ(list("aten::_foreach_add_"), 30u);
  EXPECT_EQ(list("aten::_foreach_addcdiv_"), 90u);
  EXPECT_EQ(list("aten::_foreach_sqrt"), 30u);
  EXPECT_EQ(list("aten::_foreach_norm"), 60u);
  EXPECT_EQ(list("aten::_foreach_copy_"), 0u);
  EXPECT_TRUE(CallBuilder("aten::_foreach_zero_").bind().is_silent());
}

TEST(Aux, CountsWhatIsReduced) {
  for (const char* name :
       {"aten::sum", "aten::mean", "aten::amax", "aten::argmax", "aten::cumsum"}) {
    EXPECT_EQ(CallBuilder(name).tensor("self", {3, 2}).tensor("out", {3}).aux_flops(), 6u) << name;
  }
  EXPECT_EQ(CallBuilder("aten::var", "correction").tensor("self", {3, 2}).aux_flops(), 24u);
  EXPECT_EQ(CallBuilder("aten::max", "dim").tensor("self", {3, 2}).aux_flops(), 6u);
  EXPECT_EQ(
      CallBuilder("aten::max", "other").tensor("self", {3, 1}).tensor("other", {4}).aux_flops(),
      12u);
  EXPECT_EQ(CallBuilder("aten::_softmax").tensor("self", {3, 2}).aux_flops(), 30u);
  EXPECT_EQ(CallBuilder("aten::_softmax_backward_data")
                .tensor("grad_output", {3, 2})
                .tensor("output", {3, 2})
                .aux_flops(),
            24u);
}

TEST(Aux, CountsNorms) {
  const auto layer_norm = [](bool affine) {
    CallBuilder call("aten::native_layer_norm");
    call.tensor("input", {2, 10}).ints("normalized_shape", {10});
    affine ? call.tensor("weight", {10}).tensor("bias", {10}) : call.none("weight").none("bias");
    return call.aux_flops();
  };
  EXPECT_EQ(layer_norm(true), 160u);
  EXPECT_EQ(layer_norm(false), 120u);
  const auto batch_norm = [](bool training) {
    return CallBuilder("aten::native_batch_norm")
        .tensor("input", {2, 5, 2})
        .tensor("weight", {5})
        .tensor("bias", {5})
        .flag("training", training)
        .aux_flops();
  };
  EXPECT_EQ(batch_norm(true), 160u);
  EXPECT_EQ(batch_norm(false), 80u);
  const auto backward = [](const Sizes& mask) {
    return CallBuilder("aten::native_layer_norm_backward")
        .tensor("grad_out", {2, 10})
        .tensor("input", {2, 10})
        .tensor("weight", {10})
        .ints("output_mask", mask)
        .aux_flops();
  };
  EXPECT_EQ(backward({1, 1, 1}), 260u);
  EXPECT_EQ(backward({0, 0, 1}), 20u);
  EXPECT_EQ(CallBuilder("aten::_fused_rms_norm")
                .tensor("input", {2, 10})
                .tensor("weight", {10})
                .aux_flops(),
            80u);
}

TEST(Aux, CountsPoolsWindows) {
  const auto pool = [](const char* name, bool ceil_mode) {
    return CallBuilder(name)
        .tensor("self", {2, 3, 6, 6})
        .ints("kernel_size", {3, 3})
        .ints("stride", {2, 2})
        .ints("padding", {0, 0})
        .flag("ceil_mode", ceil_mode)
        .aux_flops();
  };
  EXPECT_EQ(pool("aten::avg_pool2d", false), 6u * 4 * 9);
  EXPECT_EQ(pool("aten::max_pool2d_with_indices", true), 6u * 9 * 9);
  // An empty stride is the kernel's size; one number counts for both dimensions.
  EXPECT_EQ(CallBuilder("aten::avg_pool2d")
                .tensor("self", {3, 6, 6})
                .ints("kernel_size", {2})
                .ints("stride", {})
                .aux_flops(),
            3u * 9 * 4);
  EXPECT_EQ(CallBuilder("aten::avg_pool2d_backward")
                .tensor("grad_output", {1, 1, 3, 3})
                .tensor("self", {1, 1, 6, 6})
                .ints("kernel_size", {2, 2})
                .aux_flops(),
            36u);
  EXPECT_EQ(CallBuilder("aten::_adaptive_avg_pool2d")
                .tensor("self", {1, 2, 6, 6})
                .ints("output_size", {2, 2})
                .aux_flops(),
            72u);
}

TEST(Aux, CountsResampling) {
  EXPECT_EQ(CallBuilder("aten::upsample_bilinear2d")
                .tensor("self", {1, 2, 3, 3})
                .ints("output_size", {6, 6})
                .aux_flops(),
            72u * 7);
  EXPECT_EQ(CallBuilder("aten::upsample_bilinear2d", "vec")
                .tensor("input", {1, 2, 3, 3})
                .none("output_size")
                .aux_flops(),
            0u);
  EXPECT_EQ(CallBuilder("aten::grid_sampler_2d")
                .tensor("input", {1, 2, 3, 3})
                .tensor("grid", {1, 5, 5, 2})
                .integer("interpolation_mode", 0)
                .aux_flops(),
            50u * 7);
}

TEST(Aux, CountsLossesAndOptimizers) {
  EXPECT_EQ(CallBuilder("aten::mse_loss")
                .tensor("self", {10})
                .tensor("target", {10})
                .integer("reduction", 1)
                .aux_flops(),
            30u);
  EXPECT_EQ(CallBuilder("aten::mse_loss")
                .tensor("self", {10})
                .tensor("target", {10})
                .integer("reduction", 0)
                .aux_flops(),
            20u);
  EXPECT_EQ(CallBuilder("aten::_fused_adamw_")
                .tensors("self", {{4, 5}, {10}})
                .number("weight_decay", 0.01)
                .flag("amsgrad", false)
                .aux_flops(),
            30u * 15);
  EXPECT_EQ(CallBuilder("aten::_fused_sgd_")
                .tensors("self", {{10}})
                .number("weight_decay", 0)
                .number("momentum", 0.9)
                .flag("nesterov", false)
                .aux_flops(),
            50u);
}

TEST(Aux, CountsOuterProductsAsMultiplications) {
  EXPECT_EQ(CallBuilder("aten::ger").tensor("self", {4}).tensor("vec2", {5}).cost(),
            (OpCost{.aux_flops = 20}));
  EXPECT_EQ(CallBuilder("aten::addr")
                .tensor("self", {4, 5})
                .tensor("vec1", {4})
                .tensor("vec2", {5})
                .cost(),
            (OpCost{.aux_flops = 40}));
}

TEST(Aux, ChargesNothingForMemory) {
  for (const char* name :
       {"aten::embedding", "aten::index", "aten::copy_", "aten::view", "aten::cat", "aten::clone",
        "aten::empty", "aten::as_strided", "aten::nll_loss_forward", "aten::where",
        "aten::masked_fill_", "aten::uniform_", "c10d::allreduce_"}) {
    EXPECT_TRUE(CallBuilder(name).bind().is_silent()) << name;
    EXPECT_EQ(CallBuilder(name).cost(), OpCost()) << name;
  }
}

TEST(Aux, SumsBytesAndElements) {
  CallBuilder call("aten::cat");
  call.tensors("tensors", {{2, 3}, {4}}).tensor("out", {10}).integer("dim", 0).none("other");
  EXPECT_EQ(sum_elements(call.inputs()).value(), 20u);
  EXPECT_EQ(sum_bytes(call.inputs()).value(), 80u);
  const OpArgument undefined[] = {TensorShape{}};
  EXPECT_EQ(sum_elements(undefined).value(), 0u);
  EXPECT_EQ(sum_bytes(undefined).value(), 0u);
}

}  // namespace
}  // namespace layertrace
