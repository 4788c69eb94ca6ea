// A LibTorch program that trains on the first CUDA device and knows nothing of layertrace. Its
// twin is tests/python/gpu/twin.py.
//
//   unchanged_cuda STEPS
#include <torch/torch.h>

#include <cstdio>
#include <string>

namespace nn = torch::nn;

struct NetImpl : nn::Module {
  NetImpl() {
    register_module("conv", conv);
    register_module("bn", bn);
    register_module("relu", relu);
    register_module("pool", pool);
    register_module("norm", norm);
    register_module("head", head);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor features = relu(bn(conv(x)));
    // Between layers the model works itself, too.
    const torch::Tensor pooled = pool(features * torch::sigmoid(features)).flatten(1);
    return head(norm(torch::tanh(pooled) + pooled));
  }
  nn::Conv2d conv{nn::Conv2dOptions(3, 8, 3).padding(1)};
  nn::BatchNorm2d bn{8};
  nn::ReLU relu;
  nn::AdaptiveAvgPool2d pool{nn::AdaptiveAvgPool2dOptions({4, 4})};
  nn::LayerNorm norm{nn::LayerNormOptions({128})};
  nn::Linear head{128, 10};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::stoi(argv[1]) : 6;
  torch::manual_seed(0);
  const torch::Device device(torch::kCUDA);
  Net model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const torch::Tensor images = torch::randn({4, 3, 16, 16}).to(device);
  const torch::Tensor labels = torch::zeros({4}, torch::kLong).to(device);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(model->forward(images), labels).backward();
    optimizer.step();
  }
  torch::cuda::synchronize();
  std::printf("trained %d\n", steps);
}
