// Parameters, buffers, kernel sizes and shapes of LibTorch's modules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::ElementsAre;

Strings names_of(const Layer& layer) {
  Strings names;
  for (const Parameter& parameter : layer.parameters) names.push_back(parameter.name);
  return names;
}

TEST(Parameters, AreThoseOfTheModules) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).bias(false)), nn::BatchNorm2d(4),
                       nn::MaxPool2d(2), nn::Flatten(), nn::Linear(36, 2));
  model->ptr(4)->parameters()[0].set_requires_grad(false);
  const Recorded run =
      record(*model, [&] { model->forward(torch::randn({2, 3, 8, 8})).sum().backward(); });
  EXPECT_THAT(names_of(run.layer("0")), ElementsAre("weight"));
  EXPECT_THAT(names_of(run.layer("1")),
              ElementsAre("weight", "bias", "running_mean", "running_var", "num_batches_tracked"));
  EXPECT_EQ(run.layer("0").params, 108U);
  EXPECT_THAT(run.layer("0").parameters.at(0).shape, ElementsAre(4, 3, 3, 3));
  EXPECT_EQ(run.layer("0").parameters.at(0).dtype, "float32");
  EXPECT_EQ(run.layer("1").buffer_bytes, 40U);
  EXPECT_EQ(run.layer("4").params, 74U);
  EXPECT_EQ(run.layer("4").params_trainable, 2U);
  EXPECT_EQ(run.layer("").params, 190U);
  EXPECT_EQ(run.layer("").param_bytes, 760U);
  EXPECT_EQ(run.layer("0").kernel_size, "3 × 3");
  EXPECT_EQ(run.layer("2").kernel_size, "2 × 2");
  EXPECT_EQ(run.layer("4").kernel_size, "");
}

TEST(Parameters, OfASharedModuleCountOnce) {
  const nn::Linear shared(3, 3);
  Model model;
  model->add("a", shared);
  model->add("b", shared);
  model->body = [&](const torch::Tensor& x) { return nn::Linear(shared)(x); };
  const Recorded run = record(*model, [&] { model(torch::randn({1, 3})).sum().backward(); });
  EXPECT_EQ(run.layer("b").shared_with, "a");
  EXPECT_EQ(run.layer("b").params, 12U);
  EXPECT_EQ(run.layer("b").parameters.at(0).shared_with, "a.weight");
  EXPECT_EQ(run.layer("").params, 12U);
}

TEST(Shapes, AreToldOfLibTorchsLayers) {
  Model model;
  auto lstm = model->add("lstm", nn::LSTM(3, 5));
  auto linear = model->add("linear", nn::Linear(5, 2));
  model->body = [&](const torch::Tensor& x) { return linear(std::get<0>(lstm(x))); };
  const Recorded run = record(*model, [&] { model(torch::randn({4, 1, 3})).sum().backward(); });
  ASSERT_EQ(run.layer("linear").shapes.size(), 1U);
  EXPECT_EQ(run.layer("linear").shapes[0].input, "float32[4, 1, 5]");
  EXPECT_EQ(run.layer("linear").shapes[0].output, "float32[4, 1, 2]");
  ASSERT_EQ(run.layer("lstm").shapes.size(), 1U);
  EXPECT_EQ(run.layer("lstm").shapes[0].input, "float32[4, 1, 3]");
  EXPECT_EQ(run.layer("lstm").shapes[0].output,
            "float32[4, 1, 5], float32[1, 1, 5], float32[1, 1, 5]");
}

}  // namespace
}  // namespace layertrace::test
