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

  auto session = layertrace::Session::start(model, {.output = "quick_start.pftrace"});
  if (!session) {
    std::cerr << session.error().message() << '\n';
    return 1;
  }
  for (int step = 0; step < 10; ++step) {
    auto loss = torch::nll_loss(model->forward(torch::randn({64, 784})).log_softmax(1),
                                torch::randint(10, {64}));
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
