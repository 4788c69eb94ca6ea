// A program of somebody else's: LibTorch's layers and one of its own, recorded, its tree printed.
// Fails if a layer is missing, as it would be if the package let libtorch come before layertrace.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>

#include <layertrace/layertrace.h>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    layers = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8)));
  }
  torch::Tensor forward(torch::Tensor x) {
    layertrace::ModuleScope scope(this);
    return layers->forward(x).tanh();
  }
  torch::nn::Sequential layers{nullptr};
};
TORCH_MODULE(Net);

int main() {
  Net net;
  auto session = layertrace::Session::start(net, {.output = "consumer.pftrace"});
  if (!session) {
    std::cerr << session.error().message() << '\n';
    return 1;
  }
  net->forward(torch::randn({2, 4})).sum().backward();
  session->step();
  const auto profile = session->stop();
  if (!profile) {
    std::cerr << profile.error().message() << '\n';
    return 1;
  }
  std::cout << layertrace::tree(*profile);
  for (const char* path : {"", "layers.0", "layers.1"}) {
    const layertrace::Layer* layer = profile->find(path);
    if (layer == nullptr || layer->calls != 1 ||
        layer->phase(layertrace::Phase::kBackward).activities.mean == 0) {
      std::cerr << "layer '" << path << "' was not seen, forward and backward\n";
      return 1;
    }
  }
  const auto again = layertrace::load("consumer.pftrace");
  std::remove("consumer.pftrace");
  return again && layertrace::tree(*again) == layertrace::tree(*profile) ? 0 : 1;
}
