// A LibTorch program under layertrace, on the first CUDA device, in ways that one thread and one
// stream do not show. tests/python/gpu/test_cpp.py holds them against Python.
//
//   several_cuda threads OUTPUT   two threads train a model each, on a stream of its own
//   several_cuda eager OUTPUT     a training step, three times
//   several_cuda graph OUTPUT     the same step, captured once and replayed three times
//   several_cuda nccl OUTPUT      a training step, and a kernel that is called as NCCL's are
//   several_cuda MODEL OUTPUT     a step of a model of several_models.h
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <torch/torch.h>

#include <iostream>
#include <map>
#include <string>
#include <thread>

#include <layertrace/layertrace.h>

#include "several_models.h"

namespace {

namespace nn = torch::nn;

constexpr int kSteps = 3;

nn::Sequential branch(const nn::AnyModule& activation) {
  nn::Sequential layers(nn::Linear(32, 32));
  layers->push_back(activation);
  layers->push_back(nn::LayerNorm(nn::LayerNormOptions({32})));
  layers->push_back(nn::Linear(32, 32));
  return layers;
}

struct TwoBranchesImpl : nn::Module {
  TwoBranchesImpl() {
    left = register_module("left", branch(nn::AnyModule(nn::ReLU())));
    right = register_module("right", branch(nn::AnyModule(nn::Tanh())));
  }
  nn::Sequential left{nullptr};
  nn::Sequential right{nullptr};
};
TORCH_MODULE(TwoBranches);

void train_branch(nn::Sequential& model, c10::cuda::CUDAStream stream, const torch::Tensor& x) {
  const c10::StreamGuard guard(stream);
  for (int i = 0; i < 5; ++i) {
    model->zero_grad();
    model->forward(x).pow(2).mean().backward();
  }
}

layertrace::Result<layertrace::Profile> train_in_threads(const std::string& output) {
  TwoBranches model;
  model->to(torch::kCUDA);
  torch::optim::SGD optimizer(model->parameters(), 1e-3);
  const torch::Tensor x = torch::randn({4, 32}).cuda();
  const auto left = c10::cuda::getStreamFromPool();
  const auto right = c10::cuda::getStreamFromPool();
  const auto step = [&] {
    optimizer.zero_grad();
    torch::cuda::synchronize();
    std::thread first([&] { train_branch(model->left, left, x); });
    std::thread second([&] { train_branch(model->right, right, x); });
    first.join();
    second.join();
    torch::cuda::synchronize();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) step();
  torch::cuda::synchronize();
  auto session = layertrace::Session::start(model, {.output = output, .require_gpu = true});
  if (!session) return session.error();
  step();
  session->step();
  return session->stop();
}

// The model that both ways of the same step train.
struct Trained {
  Trained() {
    model = nn::Sequential(nn::Linear(32, 32), nn::GELU(),
                           nn::LayerNorm(nn::LayerNormOptions({32})), nn::Linear(32, 8));
    model->to(torch::kCUDA);
    optimizer.emplace(model->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
    x = torch::randn({4, 32}).cuda();
    // As PyTorch's documentation has it: libraries set themselves up.
    const c10::StreamGuard guard(c10::cuda::getStreamFromPool());
    for (int i = 0; i < 3; ++i) step();
    torch::cuda::synchronize();
  }
  void step() {
    optimizer->zero_grad();
    model->forward(x).pow(2).mean().backward();
    optimizer->step();
  }
  nn::Sequential model;
  std::optional<torch::optim::SGD> optimizer;
  torch::Tensor x;
};

layertrace::Result<layertrace::Profile> train_eagerly(const std::string& output) {
  Trained trained;
  auto session =
      layertrace::Session::start(*trained.model, {.output = output, .require_gpu = true});
  if (!session) return session.error();
  for (int i = 0; i < kSteps; ++i) {
    trained.step();
    torch::cuda::synchronize();
    session->step();
  }
  return session->stop();
}

layertrace::Result<layertrace::Profile> train_by_graph(const std::string& output) {
  Trained trained;
  auto session =
      layertrace::Session::start(*trained.model, {.output = output, .require_gpu = true});
  if (!session) return session.error();
  at::cuda::CUDAGraph graph;
  {
    const c10::StreamGuard guard(c10::cuda::getStreamFromPool());
    graph.capture_begin();
    trained.step();
    graph.capture_end();
  }
  session->step();
  for (int i = 0; i < kSteps; ++i) {
    graph.replay();
    torch::cuda::synchronize();
    session->step();
  }
  return session->stop();
}

// A function of the runtime that LibTorch has brought: one that is linked would be the
// simulation's, on a real GPU, too.
template <typename Function>
Function* runtime(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// What nvcc makes of a kernel, done by hand.
void register_kernel(const char* host, char* name) {
  static int binary = 0;
  using RegisterBinary = void**(void*);
  using RegisterFunction =
      void(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
  void** const handle = runtime<RegisterBinary>("__cudaRegisterFatBinary")(&binary);
  runtime<RegisterFunction>("__cudaRegisterFunction")(handle, host, name, name, -1, nullptr,
                                                      nullptr, nullptr, nullptr, nullptr);
}

void reduce_all() {}  // the host's side of the kernel: its address is what it is known by

layertrace::Result<layertrace::Profile> train_with_collective(const std::string& output) {
  static char name[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  const auto* host = reinterpret_cast<const char*>(&reduce_all);
  register_kernel(host, name);
  using Launch = cudaError_t(const void*, dim3, dim3, void**, size_t, cudaStream_t);
  auto* const launch = runtime<Launch>("cudaLaunchKernel");
  Trained trained;
  auto session =
      layertrace::Session::start(*trained.model, {.output = output, .require_gpu = true});
  if (!session) return session.error();
  for (int i = 0; i < kSteps; ++i) {
    trained.step();
    if (launch(host, dim3(2), dim3(256), nullptr, 0, nullptr) != cudaSuccess)
      return layertrace::Error{"cannot launch", "CUDA refuses", ""};
    torch::cuda::synchronize();
    session->step();
  }
  return session->stop();
}

struct Gradients {
  int backwards = 1;        // a step
  bool set_to_none = true;  // else they are set to zero, and each backward adds to them
};

template <typename Model>
layertrace::Result<layertrace::Profile> train(const std::string& output, torch::Tensor inputs,
                                              Gradients gradients = {}) {
  Model model;
  model->to(torch::kCUDA);
  inputs = inputs.cuda();
  torch::optim::SGD optimizer(model->parameters(), 1e-3);
  const auto step = [&] {
    optimizer.zero_grad(gradients.set_to_none);
    for (int i = 0; i < gradients.backwards; ++i) model->forward(inputs).pow(2).mean().backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) step();
  torch::cuda::synchronize();
  auto session = layertrace::Session::start(model, {.output = output, .require_gpu = true});
  if (!session) return session.error();
  step();
  session->step();
  return session->stop();
}

layertrace::Result<layertrace::Profile> train_lstm_model(const std::string& output) {
  return train<models::LstmModel>(output, models::sentences(), {.backwards = 2});
}

layertrace::Result<layertrace::Profile> train_encoder(const std::string& output) {
  return train<models::Encoder>(output, torch::randn({2, 3, 32, 32}));
}

layertrace::Result<layertrace::Profile> train_decoder(const std::string& output) {
  return train<models::Decoder>(output, models::sentences(),
                                {.backwards = 2, .set_to_none = false});
}

layertrace::Result<layertrace::Profile> train_transformer(const std::string& output) {
  return train<models::Transformer>(output, models::sentences(), {.set_to_none = false});
}

}  // namespace

int main(int argc, char** argv) {
  using Way = layertrace::Result<layertrace::Profile> (*)(const std::string&);
  const std::map<std::string, Way> ways = {
      {"threads", &train_in_threads},    {"eager", &train_eagerly},
      {"graph", &train_by_graph},        {"nccl", &train_with_collective},
      {"lstm_model", &train_lstm_model}, {"encoder", &train_encoder},
      {"decoder", &train_decoder},       {"transformer", &train_transformer}};
  if (argc != 3 || !ways.contains(argv[1]) || !torch::cuda::is_available()) {
    std::cerr << "several_cuda WAY OUTPUT: needs a CUDA device\n";
    return 1;
  }
  torch::manual_seed(0);
  const auto profile = ways.at(argv[1])(argv[2]);
  if (!profile) {
    std::cerr << profile.error().message() << '\n';
    return 1;
  }
}
