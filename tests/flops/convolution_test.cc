// Convolutions: the formulas against loops that slide a kernel over places, padding included.
#include <gtest/gtest.h>

#include <random>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

struct ConvolutionSetting {
  std::int64_t batch = 1;
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t groups = 1;
  Sizes spatial;
  Sizes kernel;
  Sizes stride;
  Sizes padding;
  Sizes dilation;
  Sizes output_padding;

  Sizes input() const { return joined({batch, in}, spatial); }
  Sizes weight() const { return joined({out, in / groups}, kernel); }
  Sizes transposed_weight() const { return joined({in, out / groups}, kernel); }
  static Sizes joined(Sizes head, const Sizes& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
  }
};

ConvolutionSetting random_convolution(std::mt19937& random, std::size_t dims) {
  const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(random() % most) + 1; };
  ConvolutionSetting setting;
  setting.batch = up_to(2);
  setting.groups = up_to(2);
  setting.in = setting.groups * up_to(2);
  setting.out = setting.groups * up_to(2);
  for (std::size_t dim = 0; dim < dims; ++dim) {
    setting.kernel.push_back(up_to(3));
    setting.stride.push_back(up_to(3));
    setting.padding.push_back(up_to(3) - 1);
    setting.dilation.push_back(up_to(2));
    setting.output_padding.push_back(up_to(2) - 1);
    setting.spatial.push_back(up_to(3) + setting.dilation[dim] * (setting.kernel[dim] - 1));
  }
  return setting;
}

// Calls `visit` for each place of a box of these sizes.
template <typename Visit>
void for_each_place(const Sizes& sizes, const Visit& visit) {
  Sizes place(sizes.size(), 0);
  for (const std::int64_t size : sizes) {
    if (size == 0) return;
  }
  for (;;) {
    visit(place);
    std::size_t dim = 0;
    while (dim < sizes.size() && ++place[dim] == sizes[dim]) place[dim++] = 0;
    if (dim == sizes.size()) return;
  }
}

// How often the kernel fits into the padded input, by sliding it.
Sizes naive_output(const ConvolutionSetting& setting) {
  Sizes output;
  for (std::size_t dim = 0; dim < setting.spatial.size(); ++dim) {
    std::int64_t places = 0;
    const std::int64_t last = setting.dilation[dim] * (setting.kernel[dim] - 1);
    for (std::int64_t start = -setting.padding[dim];
         start + last < setting.spatial[dim] + setting.padding[dim]; start += setting.stride[dim]) {
      ++places;
    }
    output.push_back(places);
  }
  return output;
}

// Every product of a weight with an input's element or padding, in whichever direction it is used.
std::uint64_t naive_convolution(const ConvolutionSetting& setting, const Sizes& places) {
  MultiplyAdd multiply_add;
  for (std::int64_t n = 0; n < setting.batch; ++n) {
    for (std::int64_t out = 0; out < setting.out; ++out) {
      for_each_place(places, [&](const Sizes& /*place*/) {
        double sum = 0;
        for (std::int64_t in = 0; in < setting.in / setting.groups; ++in) {
          for_each_place(setting.kernel, [&](const Sizes& /*offset*/) { multiply_add(sum, 1, 1); });
        }
        EXPECT_GT(sum, 0);
      });
    }
  }
  return multiply_add.flops();
}

// Each element of the input, times each weight of its channel, is added somewhere. Gives the
// output's sizes, too: what is added to, less the padding.
std::uint64_t naive_transposed(const ConvolutionSetting& setting, Sizes& output) {
  output.clear();
  for (std::size_t dim = 0; dim < setting.spatial.size(); ++dim) {
    std::int64_t end = 0;
    for (std::int64_t at = 0; at < setting.spatial[dim]; ++at) {
      for (std::int64_t offset = 0; offset < setting.kernel[dim]; ++offset) {
        end = std::max(end, at * setting.stride[dim] + offset * setting.dilation[dim] + 1);
      }
    }
    output.push_back(end - 2 * setting.padding[dim] + setting.output_padding[dim]);
  }
  MultiplyAdd multiply_add;
  double sum = 0;
  for (std::int64_t n = 0; n < setting.batch; ++n) {
    for (std::int64_t in = 0; in < setting.in; ++in) {
      for_each_place(setting.spatial, [&](const Sizes& /*place*/) {
        for (std::int64_t out = 0; out < setting.out / setting.groups; ++out) {
          for_each_place(setting.kernel, [&](const Sizes& /*offset*/) { multiply_add(sum, 1, 1); });
        }
      });
    }
  }
  return multiply_add.flops();
}

std::uint64_t volume(const Sizes& sizes) { return elements(sizes).value(); }

void add_convolution(CallBuilder& call, const ConvolutionSetting& setting, bool transposed) {
  call.ints("stride", setting.stride)
      .ints("padding", setting.padding)
      .ints("dilation", setting.dilation)
      .flag("transposed", transposed)
      .ints("output_padding", setting.output_padding)
      .integer("groups", setting.groups);
}

TEST(Convolution, AgreesWithLoops) {
  std::mt19937 random(2);
  for (int i = 0; i < 150; ++i) {
    const ConvolutionSetting setting =
        random_convolution(random, 1 + static_cast<std::size_t>(i % 3));
    const Sizes output = naive_output(setting);
    const std::uint64_t expected = naive_convolution(setting, output);
    for (const char* name : {"aten::convolution", "aten::_convolution", "aten::conv2d",
                             "aten::convolution_overrideable"}) {
      CallBuilder call(name);
      call.tensor("input", setting.input())
          .tensor("weight", setting.weight())
          .tensor("bias", {setting.out});
      add_convolution(call, setting, false);
      EXPECT_EQ(call.flops(), expected) << name;
      EXPECT_EQ(call.aux_flops(),
                volume(output) * static_cast<std::uint64_t>(setting.batch * setting.out));
      EXPECT_EQ(call.fvcore_flops(), expected / 2);
    }
    for (const char* name : {"aten::cudnn_convolution", "aten::mkldnn_convolution",
                             "aten::miopen_convolution", "aten::slow_conv_dilated2d"}) {
      CallBuilder call(name);
      call.tensor("self", setting.input()).tensor("weight", setting.weight());
      add_convolution(call, setting, false);
      EXPECT_EQ(call.flops(), expected) << name;
      EXPECT_EQ(call.aux_flops(), 0u);
    }
  }
}

TEST(Convolution, AgreesWithLoopsWhenTransposed) {
  std::mt19937 random(3);
  for (int i = 0; i < 150; ++i) {
    ConvolutionSetting setting = random_convolution(random, 1 + static_cast<std::size_t>(i % 3));
    setting.padding.assign(setting.padding.size(), 0);
    if (i % 2 == 0) setting.padding[0] = setting.dilation[0] * (setting.kernel[0] - 1) / 2;
    Sizes output;
    const std::uint64_t expected = naive_transposed(setting, output);
    CallBuilder call("aten::convolution");
    call.tensor("input", setting.input())
        .tensor("weight", setting.transposed_weight())
        .tensor("bias", {setting.out});
    add_convolution(call, setting, true);
    EXPECT_EQ(call.flops(), expected);
    EXPECT_EQ(call.aux_flops(),
              volume(output) * static_cast<std::uint64_t>(setting.batch * setting.out));
    EXPECT_EQ(call.fvcore_flops(), expected / 2);

    CallBuilder own("aten::cudnn_convolution_transpose");
    own.tensor("self", setting.input()).tensor("weight", setting.transposed_weight());
    add_convolution(own, setting, false);
    EXPECT_EQ(own.flops(), expected);
  }
}

TEST(Convolution, MakesEachGradientByAsManyProducts) {
  std::mt19937 random(4);
  for (int i = 0; i < 80; ++i) {
    const ConvolutionSetting setting =
        random_convolution(random, 1 + static_cast<std::size_t>(i % 3));
    const bool transposed = i % 2 == 1;
    Sizes output = naive_output(setting);
    const std::uint64_t forward =
        transposed ? naive_transposed(setting, output) : naive_convolution(setting, output);
    for (std::int64_t mask = 0; mask < 8; ++mask) {
      const std::int64_t of_input = mask & 1;
      const std::int64_t of_weight = mask >> 1 & 1;
      const std::int64_t of_bias = mask >> 2;
      CallBuilder call("aten::convolution_backward");
      const Sizes gradient = ConvolutionSetting::joined({setting.batch, setting.out}, output);
      call.tensor("grad_output", gradient)
          .tensor("input", setting.input())
          .tensor("weight", transposed ? setting.transposed_weight() : setting.weight())
          .none("bias_sizes");
      add_convolution(call, setting, transposed);
      call.ints("output_mask", {of_input, of_weight, of_bias});
      EXPECT_EQ(call.flops(), forward * static_cast<std::uint64_t>(of_input + of_weight));
      EXPECT_EQ(call.aux_flops(), of_bias == 0 ? 0 : volume(gradient));
      EXPECT_FALSE(call.fvcore_flops());
    }
  }
}

// An out= form asks for gradients by giving them a place.
TEST(Convolution, ReadsWhichGradientsAnOutFormAsksFor) {
  const auto flops = [](bool input, bool weight) {
    CallBuilder call("aten::_slow_conv2d_backward", "grad_input");
    call.tensor("grad_output", {1, 4, 5, 5})
        .tensor("self", {1, 3, 5, 5})
        .tensor("weight", {4, 3, 3, 3});
    input ? call.tensor("grad_input", {1, 3, 5, 5}) : call.none("grad_input");
    weight ? call.tensor("grad_weight", {4, 3, 3, 3}) : call.none("grad_weight");
    call.none("grad_bias");
    return call.flops();
  };
  const std::uint64_t once = std::uint64_t{2} * 25 * 4 * 3 * 9;
  EXPECT_EQ(flops(false, false), 0u);
  EXPECT_EQ(flops(true, false), once);
  EXPECT_EQ(flops(true, true), 2 * once);
}

TEST(Convolution, TakesPaddingByName) {
  const auto flops = [](std::string_view padding) {
    CallBuilder call("aten::conv1d", "padding");
    call.tensor("input", {2, 3, 10})
        .tensor("weight", {4, 3, 5})
        .ints("stride", {1})
        .text("padding", padding)
        .ints("dilation", {2});
    return call.flops();
  };
  EXPECT_EQ(flops("same"), 2u * 2 * 10 * 4 * 3 * 5);
  EXPECT_EQ(flops("valid"), 2u * 2 * 2 * 4 * 3 * 5);
}

TEST(Convolution, TakesOneNumberForAllDimensionsAndNoBatch) {
  CallBuilder call("aten::conv2d");
  call.tensor("input", {3, 8, 6})
      .tensor("weight", {4, 3, 3, 3})
      .none("bias")
      .ints("stride", {2})
      .ints("padding", {1})
      .ints("dilation", {1})
      .integer("groups", 1);
  EXPECT_EQ(call.flops(), 2u * 4 * 3 * 4 * 3 * 9);
}

TEST(Convolution, CountsDepthwiseByItsOneChannelPerGroup) {
  CallBuilder call("aten::_conv_depthwise2d");
  call.tensor("self", {2, 8, 5, 5})
      .tensor("weight", {8, 1, 3, 3})
      .ints("kernel_size", {3, 3})
      .none("bias")
      .ints("stride", {1, 1})
      .ints("padding", {1, 1})
      .ints("dilation", {1, 1});
  EXPECT_EQ(call.flops(), 2u * 2 * 25 * 8 * 9);
}

TEST(Convolution, CountsOverTimeBatchChannels) {
  CallBuilder forward("aten::conv_tbc");
  forward.tensor("self", {10, 2, 3})
      .tensor("weight", {5, 3, 4})
      .tensor("bias", {4})
      .integer("pad", 1);
  EXPECT_EQ(forward.flops(), 2u * 8 * 2 * 5 * 3 * 4);
  EXPECT_EQ(forward.aux_flops(), 8u * 2 * 4);
  CallBuilder backward("aten::conv_tbc_backward");
  backward.tensor("self", {8, 2, 4})
      .tensor("input", {10, 2, 3})
      .tensor("weight", {5, 3, 4})
      .tensor("bias", {4})
      .integer("pad", 1);
  EXPECT_EQ(backward.flops(), 2 * forward.flops());
}

TEST(Convolution, AddsWhatIsFusedToAux) {
  CallBuilder call("aten::cudnn_convolution_add_relu");
  call.tensor("self", {1, 3, 4, 4})
      .tensor("weight", {2, 3, 1, 1})
      .tensor("z", {1, 2, 4, 4})
      .number("alpha", 1)
      .tensor("bias", {2})
      .ints("stride", {1, 1})
      .ints("padding", {0, 0})
      .ints("dilation", {1, 1})
      .integer("groups", 1);
  EXPECT_EQ(call.flops(), 2u * 16 * 6);
  EXPECT_EQ(call.aux_flops(), 32u * 3);
}

TEST(Convolution, SaysWhatItCannotCount) {
  const auto cost = [](const Sizes& input, const Sizes& weight, std::int64_t stride) {
    CallBuilder call("aten::convolution");
    call.tensor("input", input)
        .tensor("weight", weight)
        .ints("stride", {stride})
        .ints("padding", {0});
    return call.cost();
  };
  EXPECT_TRUE(cost({1, 3, 8}, {4, 3, 3}, 1));
  EXPECT_FALSE(cost({1, 3, 2}, {4, 3, 3}, 1));  // smaller than the kernel
  EXPECT_FALSE(cost({1, 3, 8}, {4, 3, 3}, 0));
  EXPECT_FALSE(cost({1, 3, 8, 8, 8}, {4, 3, 3}, 1));
  EXPECT_FALSE(cost({1, 3}, {4, 3}, 1));
  CallBuilder backward("aten::convolution_backward");
  backward.tensor("grad_output", {1, 4})
      .tensor("input", {1, 4})
      .tensor("weight", {4})
      .ints("output_mask", {1, 1, 1});
  EXPECT_FALSE(backward.cost());
}

}  // namespace
}  // namespace layertrace
