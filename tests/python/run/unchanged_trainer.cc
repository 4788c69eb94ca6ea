// A program that knows nothing of layertrace, written as PyTorch's own C++ examples are: the model
// on the stack, functional operators in its forward, a submodule of one's own.
//
//   unchanged_trainer STEPS [EXIT_CODE | throw]
#include <torch/torch.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

struct Block : torch::nn::Module {
  Block() : a(32, 32), b(32, 32) {
    register_module("a", a);
    register_module("b", b);
  }
  torch::Tensor forward(torch::Tensor x) { return b(torch::relu(a(x))) + x; }
  torch::nn::Linear a, b;
};

struct Net : torch::nn::Module {
  Net() : conv(torch::nn::Conv2dOptions(1, 4, 5)), fc1(4 * 12 * 12, 32), fc2(32, 10) {
    register_module("conv", conv);
    register_module("fc1", fc1);
    register_module("block", block);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv->forward(x), 2));
    x = torch::relu(fc1->forward(x.flatten(1)));
    return torch::log_softmax(fc2->forward(block->forward(x)), 1);
  }
  torch::nn::Conv2d conv;
  torch::nn::Linear fc1;
  std::shared_ptr<Block> block = std::make_shared<Block>();
  torch::nn::Linear fc2;
};

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::stoi(argv[1]) : 15;
  const std::string end = argc > 2 ? argv[2] : "0";
  torch::manual_seed(1);
  Net model;
  model.to(torch::kCPU);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  model.train();
  torch::Tensor loss;
  for (int i = 0; i < steps; ++i) {
    const auto data = torch::randn({4, 1, 28, 28});
    const auto target = torch::randint(10, {4}, torch::kLong);
    optimizer.zero_grad();
    loss = torch::nll_loss(model.forward(data), target);
    loss.backward();
    optimizer.step();
  }
  std::printf("loss %.6f\n", loss.item<float>());
  std::fflush(stdout);
  if (end == "throw") throw std::runtime_error("as asked");
  return std::stoi(end);
}
