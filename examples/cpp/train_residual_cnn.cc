// Trains a small residual network on made-up pictures for a few steps, under layertrace, and prints
// where the time went.
//
//   train_residual_cnn [OUTPUT.pftrace]
#include <torch/torch.h>

#include <iostream>
#include <string>

#include <layertrace/layertrace.h>

namespace nn = torch::nn;

// Two convolutions and a way around them.
struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride) {
    conv1 = register_module(
        "conv1", nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)));
    bn1 = register_module("bn1", nn::BatchNorm2d(out));
    conv2 =
        register_module("conv2", nn::Conv2d(nn::Conv2dOptions(out, out, 3).padding(1).bias(false)));
    bn2 = register_module("bn2", nn::BatchNorm2d(out));
    relu = register_module("relu", nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
    if (stride != 1 || in != out) {
      shortcut = register_module(
          "shortcut",
          nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                         nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    layertrace::ModuleScope scope(this);  // the one line for a module of one's own
    torch::Tensor y = relu(bn1(conv1(x)));
    y = bn2(conv2(y));
    return relu(y + (shortcut.is_empty() ? x : shortcut->forward(x)));
  }

  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  nn::ReLU relu{nullptr};
  nn::Sequential shortcut{nullptr};
};
TORCH_MODULE(ResidualBlock);

struct ResidualNetImpl : nn::Module {
  explicit ResidualNetImpl(int64_t classes) {
    stem = register_module(
        "stem", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1).bias(false)),
                               nn::BatchNorm2d(16), nn::ReLU(nn::ReLUOptions(true))));
    blocks = register_module("blocks", nn::ModuleList());
    int64_t channels = 16;
    for (const int64_t width : {16, 16, 16, 32, 64}) {
      blocks->push_back(ResidualBlock(channels, width, width == channels ? 1 : 2));
      channels = width;
    }
    pool = register_module("pool", nn::AdaptiveAvgPool2d(1));
    head = register_module("head", nn::Linear(channels, classes));
  }

  torch::Tensor forward(torch::Tensor x) {
    layertrace::ModuleScope scope(this);
    x = stem->forward(x);
    for (const auto& block : *blocks) x = block->as<ResidualBlockImpl>()->forward(x);
    return head(pool(x).flatten(1));
  }

  nn::Sequential stem{nullptr};
  nn::ModuleList blocks{nullptr};
  nn::AdaptiveAvgPool2d pool{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(ResidualNet);

int main(int argc, char** argv) {
  torch::set_num_threads(1);  // threads that wait for each other tell of the machine's other work
  const std::string output = argc > 1 ? argv[1] : "demo.pftrace";
  constexpr int kSteps = 6;
  constexpr int64_t kClasses = 10;
  torch::manual_seed(0);
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  ResidualNet model(kClasses);
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));

  // Skip the first two steps: LibTorch sets itself up in them.
  auto session =
      layertrace::Session::start(model, {.output = output, .schedule = {.skip = 1, .warmup = 1}});
  if (!session) {
    std::cerr << session.error().message() << '\n';
    return 1;
  }
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor pictures, labels;
    {
      layertrace::Scope scope("data");
      pictures = torch::randn({16, 3, 32, 32}).to(device);
      labels = torch::randint(kClasses, {16}).to(device);
    }
    optimizer.zero_grad();
    torch::Tensor loss = nn::functional::cross_entropy(model->forward(pictures), labels);
    loss.backward();
    optimizer.step();
    std::cerr << "step " << step + 1 << '/' << kSteps << "  loss " << loss.item<float>() << '\n';
    session->step();
  }
  auto profile = session->stop();
  if (!profile) {
    std::cerr << profile.error().message() << '\n';
    return 1;
  }
  std::cout << layertrace::tree(*profile, layertrace::for_terminal(1));
  std::cout << "\nThe trace is in " << output
            << ". Open it in Perfetto UI with\n\n  build/bin/layertrace view " << output
            << "\n\nor read it again with  build/bin/layertrace tree " << output << '\n';
}
