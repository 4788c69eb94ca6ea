// A layer of LibTorch and a call of it: what it does on its own, and whether a session gives all of
// that to the layer.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "torch/run.h"

namespace layertrace::test {

using Tensors = std::vector<torch::Tensor>;

struct Case {
  std::string type;
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensors()> call;
  std::string note = {};
};

inline Tensors tensors(const torch::Tensor& t) { return {t}; }
inline Tensors tensors(const torch::nn::ASMoutput& out) { return {out.output}; }
inline Tensors tensors(const torch::nn::utils::rnn::PackedSequence& packed) {
  return {packed.data()};
}
template <typename A, typename B>
Tensors tensors(const std::tuple<A, B>& pair) {
  Tensors result = tensors(std::get<0>(pair));
  for (const torch::Tensor& t : tensors(std::get<1>(pair))) result.push_back(t);
  return result;
}

template <typename Holder, typename... Inputs>
Case a_case(std::string type, Holder layer, Inputs... inputs) {
  return {std::move(type), layer.ptr(),
          [=]() mutable { return tensors(layer->forward(inputs...)); }};
}

inline torch::Tensor leaf(std::vector<int64_t> sizes) {
  return torch::randn(sizes, torch::requires_grad());
}

// Runs the layer alone, then as the one layer of a parent: it must give the same results, show up
// with one call, and have the same operators in the forward; the parent has none; and each backward
// node and operator is its own.
void expect_owns_all(const Case& layer, const RunOptions& options = {});

}  // namespace layertrace::test
