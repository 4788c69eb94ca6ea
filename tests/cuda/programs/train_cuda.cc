// A LibTorch program that trains on the first CUDA device, under layertrace. It knows nothing of
// simulation.
#include <torch/torch.h>

#include <iostream>

#include <layertrace/layertrace.h>

namespace nn = torch::nn;

struct NetImpl : nn::Module {
  NetImpl() {
    features = register_module(
        "features",
        nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8),
                       nn::ReLU(), nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({4, 4}))));
    head = register_module("head", nn::Linear(128, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    layertrace::ModuleScope scope(this);
    return head(features->forward(x).flatten(1));
  }
  nn::Sequential features{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  if (argc != 2 || !torch::cuda::is_available()) {
    std::cerr << "train_cuda OUTPUT: needs a CUDA device\n";
    return 1;
  }
  torch::manual_seed(0);
  const torch::Device device(torch::kCUDA);
  Net model;
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  const torch::Tensor images = torch::randn({4, 3, 16, 16}).to(device);
  const torch::Tensor labels = torch::zeros({4}, torch::kLong).to(device);

  auto session = layertrace::Session::start(
      model, {.output = argv[1], .schedule = {.warmup = 1, .record = 3}});
  if (!session) {
    std::cerr << session.error().message() << '\n';
    return 1;
  }
  for (int step = 0; step < 4; ++step) {
    const torch::Tensor loss = torch::cross_entropy_loss(model->forward(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    torch::cuda::synchronize();
    session->step();
  }
  auto profile = session->stop();
  if (!profile) {
    std::cerr << profile.error().message() << '\n';
    return 1;
  }
  std::cout << layertrace::tree(*profile);
}
