#include <torch/torch.h>

#include <iostream>

#include <layertrace/layertrace.h>

struct NetImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(784, 128));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));

  torch::Tensor forward(torch::Tensor x) {
    // One line in a module of your own; LibTorch's layers need none.
    layertrace::ModuleScope scope(this);
    return fc2(torch::relu(fc1(x)));
  }
};
TORCH_MODULE(Net);

int main() {
  Net model;
  torch::optim::SGD optimizer(model->parameters(), 0.1);

  auto session = layertrace::Session::start(
      model, {.output = "quick_start.pftrace", .schedule = {.warmup = 2, .record = 8}});
  if (!session) {
    std::cerr << session.error().message() << '\n';
    return 1;
  }
  for (int step = 0; step < 10; ++step) {
    torch::Tensor images, labels;
    {
      layertrace::Scope data("data");  // a region of your own
      images = torch::randn({64, 784});
      labels = torch::randint(10, {64});
    }
    auto loss = torch::cross_entropy_loss(model->forward(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    session->step();  // the end of a training step
  }
  auto profile = session->stop();
  if (!profile) {
    std::cerr << profile.error().message() << '\n';
    return 1;
  }
  std::cout << layertrace::tree(*profile);
}
