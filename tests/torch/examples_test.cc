// PyTorch's own C++ examples: MNIST, as it is and with the one line added, and DCGAN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::ElementsAre;
using torch::Tensor;

// As in the MNIST example: the model on the stack, functional ops in its forward. `scoped` adds the
// one line.
struct MnistNet : nn::Module {
  explicit MnistNet(bool with_scope) : scoped(with_scope) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(Tensor x) {
    std::optional<ModuleScope> scope;
    if (scoped) scope.emplace(this);
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2_drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 320});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.5, /*training=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }
  bool scoped;
  nn::Conv2d conv1{nn::Conv2dOptions(1, 10, /*kernel_size=*/5)};
  nn::Conv2d conv2{nn::Conv2dOptions(10, 20, /*kernel_size=*/5)};
  nn::Dropout2d conv2_drop;
  nn::Linear fc1{320, 50};
  nn::Linear fc2{50, 10};
};

Strings without_leaves(const Strings& nodes) {
  Strings result;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(result),
               [](const std::string& node) { return !node.starts_with("AccumulateGrad"); });
  return result;
}

void train_mnist(MnistNet& model) {
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  optimizer.zero_grad();
  Tensor loss = torch::nll_loss(model.forward(torch::randn({4, 1, 28, 28})),
                                torch::randint(0, 10, {4}, torch::kLong));
  loss.backward();
  optimizer.step();
}

TEST(Examples, Mnist) {
  MnistNet model(/*with_scope=*/true);
  const Recorded run = record(model, [&] { train_mnist(model); });
  EXPECT_EQ(run.layer("").name, "MnistNet");
  EXPECT_THAT(run.scopes(), ElementsAre("", "conv1", "conv2", "conv2_drop", "fc1", "fc2"));
  EXPECT_THAT(run.regions(), ElementsAre("zero_grad", "loss", "backward", "SGD.step"));
  EXPECT_THAT(without_leaves(run.nodes()),
              ElementsAre("NllLossBackward0 of (none)", "LogSoftmaxBackward0 of ",
                          "AddmmBackward0 of fc2", "TBackward0 of fc2", "MulBackward0 of ",
                          "ReluBackward0 of ", "AddmmBackward0 of fc1", "TBackward0 of fc1",
                          "ViewBackward0 of ", "ReluBackward0 of ",
                          "MaxPool2DWithIndicesBackward0 of ", "MulBackward0 of conv2_drop",
                          "ConvolutionBackward0 of conv2", "ReluBackward0 of ",
                          "MaxPool2DWithIndicesBackward0 of ", "ConvolutionBackward0 of conv1"));
}

// Unchanged, as a user meets layertrace first: the layers are right, and what is the root's own is
// said to be nobody's.
TEST(Examples, MnistWithoutAScope) {
  MnistNet model(/*with_scope=*/false);
  const Recorded run = record(model, [&] { train_mnist(model); });
  EXPECT_THAT(run.scopes(), ElementsAre("conv1", "conv2", "conv2_drop", "fc1", "fc2"));
  EXPECT_EQ(run.layer("").calls, 0);
  EXPECT_TRUE(run.layer("").ran);
  EXPECT_EQ(run.profile.health.notes.size(), 1U);
  for (const Span& node : run.select(SpanKind::kNode)) {
    if (node.layer == kNobody) {
      EXPECT_EQ(node.cause, Cause::kMadeOutside) << node.name;
    }
  }
  EXPECT_THAT(
      without_leaves(run.nodes()),
      ElementsAre("NllLossBackward0 of (none)", "LogSoftmaxBackward0 of (none)",
                  "AddmmBackward0 of fc2", "TBackward0 of fc2", "MulBackward0 of (none)",
                  "ReluBackward0 of (none)", "AddmmBackward0 of fc1", "TBackward0 of fc1",
                  "ViewBackward0 of (none)", "ReluBackward0 of (none)",
                  "MaxPool2DWithIndicesBackward0 of (none)", "MulBackward0 of conv2_drop",
                  "ConvolutionBackward0 of conv2", "ReluBackward0 of (none)",
                  "MaxPool2DWithIndicesBackward0 of (none)", "ConvolutionBackward0 of conv1"));
}

// Its relus and poolings run between the layers, where nothing says whose they are: but the loss
// they are not.
TEST(Examples, WhatRunsBetweenLayersIsNotTheLoss) {
  MnistNet model(/*with_scope=*/false);
  const Recorded run = record(model, [&] { train_mnist(model); });
  for (const Span& op : run.select(SpanKind::kActivity)) {
    if (op.name == "aten::relu" || op.name == "aten::max_pool2d_with_indices") {
      EXPECT_NE(op.phase, Phase::kLoss) << op.name;
    }
  }
}

// As in the DCGAN example: a generator with transposed convolutions, a Sequential as discriminator,
// three backwards.
struct DcganGeneratorImpl : nn::Module {
  DcganGeneratorImpl() {
    register_module("conv1", conv1);
    register_module("batch_norm1", batch_norm1);
    register_module("conv2", conv2);
  }
  Tensor forward(Tensor x) {
    ModuleScope scope(this);
    x = torch::relu(batch_norm1(conv1(x)));
    return torch::tanh(conv2(x));
  }
  nn::ConvTranspose2d conv1{nn::ConvTranspose2dOptions(8, 6, 4).bias(false)};
  nn::BatchNorm2d batch_norm1{6};
  nn::ConvTranspose2d conv2{nn::ConvTranspose2dOptions(6, 1, 4).stride(2).padding(1).bias(false)};
};
TORCH_MODULE(DcganGenerator);

TEST(Examples, Dcgan) {
  DcganGenerator generator;
  nn::Sequential discriminator(
      nn::Conv2d(nn::Conv2dOptions(1, 4, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(4),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(4, 1, 4).bias(false)), nn::Sigmoid());
  torch::optim::Adam generator_optimizer(generator->parameters(), torch::optim::AdamOptions(2e-4));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(),
                                             torch::optim::AdamOptions(2e-4));
  const Recorded run =
      record(Models{{"generator", generator.get()}, {"discriminator", discriminator.get()}}, [&] {
        discriminator->zero_grad();
        const Tensor real_output = discriminator->forward(torch::rand({2, 1, 8, 8})).reshape({2});
        torch::binary_cross_entropy(real_output, torch::ones({2})).backward();
        const Tensor fake = generator->forward(torch::randn({2, 8, 1, 1}));
        const Tensor fake_output = discriminator->forward(fake.detach()).reshape({2});
        torch::binary_cross_entropy(fake_output, torch::zeros({2})).backward();
        discriminator_optimizer.step();
        generator->zero_grad();
        torch::binary_cross_entropy(discriminator->forward(fake).reshape({2}), torch::ones({2}))
            .backward();
        generator_optimizer.step();
      });
  const Strings discriminated{"discriminator.0", "discriminator.1", "discriminator.2",
                              "discriminator.3", "discriminator.4"};
  Strings expected = discriminated;
  for (const char* path :
       {"generator", "generator.conv1", "generator.batch_norm1", "generator.conv2"})
    expected.emplace_back(path);
  for (int i = 0; i < 2; ++i)
    expected.insert(expected.end(), discriminated.begin(), discriminated.end());
  EXPECT_EQ(lines(run.scopes()), lines(expected));
  EXPECT_EQ(run.calls("discriminator.1"), 3);
  // The first two backwards stop at the discriminator; the third goes through both.
  Strings convolutions;
  for (const std::string& node : run.nodes()) {
    if (node.starts_with("ConvolutionBackward0") || node.starts_with("NativeBatchNormBackward0"))
      convolutions.push_back(node);
  }
  const Strings once{"ConvolutionBackward0 of discriminator.3",
                     "NativeBatchNormBackward0 of discriminator.1",
                     "ConvolutionBackward0 of discriminator.0"};
  expected.clear();
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), once.begin(), once.end());
  for (const char* last : {"ConvolutionBackward0 of generator.conv2",
                           "NativeBatchNormBackward0 of generator.batch_norm1",
                           "ConvolutionBackward0 of generator.conv1"}) {
    expected.emplace_back(last);
  }
  EXPECT_EQ(lines(convolutions), lines(expected));
}

}  // namespace
}  // namespace layertrace::test
