// The functions by which programs handle whole models: whom they are called on shows the models of
// a program that was not changed. Each calls itself on the children; the outermost call counts.
#include <torch/nn/module.h>

#include <utility>

#include "torch/auto_session.h"
#include "torch/next_function.h"

namespace layertrace {
namespace {

class ModelCall {
 public:
  explicit ModelCall(const torch::nn::Module& module) : outermost_(!std::exchange(inside, true)) {
    if (outermost_) auto_session::on_model(module);
  }
  ~ModelCall() {
    if (outermost_) inside = false;
  }
  ModelCall(const ModelCall&) = delete;  // it stands for a stretch of one thread's stack
  ModelCall& operator=(const ModelCall&) = delete;

 private:
  static inline thread_local bool inside = false;
  const bool outermost_;
};

}  // namespace
}  // namespace layertrace

namespace torch::nn {

using layertrace::ModelCall;
using layertrace::next_function;

std::vector<Tensor> Module::parameters(bool recurse) const {
  static const auto next =
      next_function<std::vector<Tensor>, const Module, bool>("_ZNK5torch2nn6Module10parametersEb");
  if (!recurse) return next(this, recurse);
  const ModelCall call(*this);
  return next(this, recurse);
}

void Module::train(bool on) {
  static const auto next = next_function<void, Module, bool>("_ZN5torch2nn6Module5trainEb");
  const ModelCall call(*this);
  next(this, on);
}

void Module::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  static const auto next = next_function<void, Module, torch::Device, torch::Dtype, bool>(
      "_ZN5torch2nn6Module2toEN3c106DeviceENS2_10ScalarTypeEb");
  const ModelCall call(*this);
  next(this, device, dtype, non_blocking);
}

void Module::to(torch::Dtype dtype, bool non_blocking) {
  static const auto next =
      next_function<void, Module, torch::Dtype, bool>("_ZN5torch2nn6Module2toEN3c1010ScalarTypeEb");
  const ModelCall call(*this);
  next(this, dtype, non_blocking);
}

void Module::to(torch::Device device, bool non_blocking) {
  static const auto next =
      next_function<void, Module, torch::Device, bool>("_ZN5torch2nn6Module2toEN3c106DeviceEb");
  const ModelCall call(*this);
  next(this, device, non_blocking);
}

}  // namespace torch::nn
