// card(): a model is called for its summary, then timed without a session, and left as it was.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "torch/cuda_devices.h"

namespace layertrace {
namespace {

// In eval mode, without gradients, as long as it lives.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& model) {
    // Parents before children, since train() goes down.
    for (auto& module : model.modules(/*include_self=*/false))
      modes_.emplace_back(module.get(), module->is_training());
    modes_.emplace(modes_.begin(), &model, model.is_training());
    model.eval();
  }
  ~Evaluating() {
    for (const auto& [module, is_training] : modes_) module->train(is_training);
  }
  Evaluating(const Evaluating&) = delete;  // it stands for a stretch of time
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;
  at::NoGradGuard no_grad_;
};

c10::Device device_of(const torch::nn::Module& model, const detail::Tensors& inputs) {
  for (const at::Tensor& parameter : model.parameters()) return parameter.device();
  for (const at::Tensor* input : inputs) return input->device();
  return c10::kCPU;
}

void wait_for(c10::Device device) {
  if (device.is_cuda())
    c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
}

// Each call by itself, from an idle device to an idle one.
std::vector<double> time_calls(const std::function<void()>& call, c10::Device device, int warmup,
                               int iterations) {
  std::vector<double> seconds;
  for (int i = 0; i < warmup + iterations; ++i) {
    wait_for(device);
    const auto start = std::chrono::steady_clock::now();
    call();
    wait_for(device);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i >= warmup) seconds.push_back(taken.count());
  }
  return seconds;
}

double bytes_of(const detail::Tensors& tensors) {
  double bytes = 0;
  for (const at::Tensor* tensor : tensors)
    bytes += tensor->defined() ? static_cast<double>(tensor->nbytes()) : 0;
  return bytes;
}

}  // namespace

Result<ModelCard> detail::make_card(torch::nn::Module* model, const CardOptions& options,
                                    const CardCalls& calls) {
  const std::string tried = "cannot make a card";
  if (model == nullptr) return Error{tried, "the model is null", "Give it a module"};
  if (options.iterations < 0 || options.warmup < 0)
    return Error{tried, "a number of calls is below 0", "Give 0 or more"};
  if (const auto checked = check_metrics(options.metrics); !checked) return checked.error();
  const Evaluating evaluating(*model);
  auto summary = calls.summarise();
  if (!summary) return summary.error();
  const c10::Device device = device_of(*model, calls.inputs);
  MetricInput input;
  input.summary = &*summary;
  input.convention = options.convention;
  input.evaluate = options.evaluate;
  input.model = model;
  input.batch_size = options.batch_size;
  if (!calls.inputs.empty()) {
    const at::Tensor& first = *calls.inputs.front();
    input.input_bytes = bytes_of(calls.inputs);
    if (input.batch_size == 0 && first.defined() && first.dim() > 0)
      input.batch_size = static_cast<std::uint64_t>(first.size(0));
  }
  if (calls.call && !device.is_meta())
    input.call_s = time_calls(calls.call, device, options.warmup, options.iterations);
  return layertrace::make_card(input, device.str(), options);
}

}  // namespace layertrace
