// Inference timing: how long a model takes, as a whole and by module.
//
//   auto timed = layertrace::benchmark(model, torch::randn({1, 3, 224, 224}));
//   if (!timed) std::cerr << timed.error().message();
//   if (timed) std::cout << layertrace::benchmark_text(*timed);
//
// The whole is measured without any scope inside the model: plain calls, and the clock around each.
// The modules' times are from a second pass, with scopes and nothing else. On a GPU each call ends
// when the devices that hold the model have done what they were asked for; of a model without
// parameters and buffers none is known: give a function that calls it and waits.
//
// What the model throws passes through, and the model is as it was. Nothing else may use the model
// meanwhile, and no session may be active.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>
#include <layertrace/timing.h>

namespace layertrace {

struct BenchmarkOptions {
  std::uint64_t iterations = 1000;  // calls in each of the two passes
  std::uint64_t drop_first = 100;   // of these left out, at its beginning
  bool modules = true;              // without: the whole alone
  // While it lasts. What each submodule's mode was, and the random numbers, are restored. A tensor
  // that the model makes in its first call and keeps is one of inference mode: no backward takes
  // it.
  bool eval = true;
  bool inference_mode = true;
  // As many threads while it lasts; 0: as it is. Between operators PyTorch lets their number be set
  // once only, so that this one stays.
  int intra_op_threads = 0;
  int inter_op_threads = 0;
  // How modules' times on a GPU are taken; see Options.
  Timing timing = Timing::kEvents;
  bool aggregate = true;  // what tables of it have; see Benchmark
  std::string name = {};  // of the run, in tables
  // Called now and then between two calls of the model, never inside what is timed.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
};

// Where this process runs, on a device by PyTorch's name for it ("cpu", "cuda:0"); `gpu` is that
// device's name, which a simulated one tells itself.
LAYERTRACE_API TimingEnvironment timing_environment(const std::string& device,
                                                    const std::string& gpu);

namespace detail {

LAYERTRACE_API Result<Benchmark> run_benchmark(torch::nn::Module* model,
                                               const std::function<void()>& call,
                                               const BenchmarkOptions& options);
// `call_of` gives what calls the model with a batch of that size.
using CallOf = std::function<std::function<void()>(std::uint64_t batch_size)>;
LAYERTRACE_API Result<Throughput> run_throughput(torch::nn::Module* model, const CallOf& call_of,
                                                 const std::vector<std::uint64_t>& batch_sizes,
                                                 const BenchmarkOptions& options);
// As many rows, taken from the first on, again and again.
LAYERTRACE_API at::Tensor batch_of(const at::Tensor& tensor, std::uint64_t batch_size);

template <typename Model>
torch::nn::Module* module_of(Model& model) {
  if constexpr (requires { typename Model::ContainedType; }) {
    return model.is_empty() ? nullptr : model.ptr().get();
  } else if constexpr (requires { model.get(); }) {
    return model.get();
  } else {
    return &model;
  }
}

template <typename Model, typename... Inputs>
void forward(Model& model, Inputs&... inputs) {
  if constexpr (requires { model->forward(inputs...); }) {
    static_cast<void>(model->forward(inputs...));
  } else {
    static_cast<void>(model.forward(inputs...));
  }
}

// With a tensor or anything else that the forward takes; several in a tuple.
template <typename Model, typename Inputs>
void call_with(Model& model, Inputs& inputs) {
  if constexpr (requires { typename std::tuple_size<std::remove_cvref_t<Inputs>>::type; }) {
    std::apply([&](auto&... each) { forward(model, each...); }, inputs);
  } else {
    forward(model, inputs);
  }
}

}  // namespace detail

// Times a model: by reference, as a shared_ptr or as a module holder. `inputs` is what its forward
// is called with (several in a std::tuple), or a function without arguments that calls it.
template <typename Model, typename Inputs>
Result<Benchmark> benchmark(Model&& model, Inputs&& inputs, const BenchmarkOptions& options = {}) {
  std::function<void()> call;
  if constexpr (std::invocable<Inputs&>) {
    call = [&inputs] { static_cast<void>(inputs()); };
  } else {
    call = [&model, &inputs] { detail::call_with(model, inputs); };
  }
  return detail::run_benchmark(detail::module_of(model), call, options);
}

// Latency and throughput over sizes of batches, without scopes. `inputs` is a tensor, whose first
// dimension becomes the size, or a function that gives the inputs for one. Where memory does not
// suffice, the sizes before it are the result, and a note says so.
//
//   auto sweep = layertrace::throughput(model, torch::randn({1, 3, 224, 224}), {1, 2, 4, 8});
//   if (sweep) std::cout << layertrace::throughput_text(*sweep);
template <typename Model, typename Inputs>
Result<Throughput> throughput(Model&& model, Inputs&& inputs,
                              const std::vector<std::uint64_t>& batch_sizes,
                              const BenchmarkOptions& options = {.iterations = 100,
                                                                 .drop_first = 10}) {
  const auto call_of = [&](std::uint64_t batch_size) -> std::function<void()> {
    const auto calling = [&model](auto batch) {
      return [&model, batch = std::move(batch)]() mutable { detail::call_with(model, batch); };
    };
    if constexpr (std::invocable<Inputs&, std::uint64_t>) {
      return calling(inputs(batch_size));
    } else {
      return calling(detail::batch_of(inputs, batch_size));
    }
  };
  return detail::run_throughput(detail::module_of(model), call_of, batch_sizes, options);
}

}  // namespace layertrace
