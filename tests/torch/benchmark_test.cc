// benchmark() and throughput() of LibTorch's models: what they measure, and what they leave alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <layertrace/benchmark.h>

namespace layertrace::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::Tensor;

// Notes in which state it is called; `heavy` does a hundred times what `light` does.
struct TimedNetImpl : torch::nn::Module {
  struct State {
    bool is_recording;
    bool is_training;
    bool is_inference;
    bool operator==(const State&) const = default;
  };

  torch::nn::Linear light = register_module("light", torch::nn::Linear(64, 64));
  torch::nn::Linear heavy = register_module("heavy", torch::nn::Linear(64, 6400));
  torch::nn::Dropout drop = register_module("drop", torch::nn::Dropout(0.5));
  std::vector<State> seen;
  std::uint64_t throws_at = 0;

  Tensor forward(const Tensor& x) {
    const ModuleScope scope(this);
    seen.push_back(
        {detail::recording.load() != 0, is_training(), c10::InferenceMode::is_enabled()});
    if (seen.size() == throws_at) throw std::runtime_error("tired");
    return heavy(drop(light(x)));
  }
};
TORCH_MODULE(TimedNet);

BenchmarkOptions few() { return {.iterations = 6, .drop_first = 2}; }

TEST(Benchmark, TimesTheWholeWithoutScopesAndModulesWith) {
  TimedNet model;
  const auto timed = benchmark(model, torch::randn({64, 64}), few());
  ASSERT_TRUE(timed) << timed.error().message();
  EXPECT_EQ(timed->total_ns.size(), 4u);
  EXPECT_EQ(timed->scoped_ns.size(), 4u);
  EXPECT_THAT(timed->total_ns, Each(testing::Gt(0u)));
  EXPECT_EQ(timed->model, "TimedNet");
  // Without anything in the model, then with warm-up and scopes.
  ASSERT_EQ(model->seen.size(), 12u);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(model->seen[i], (TimedNetImpl::State{false, false, true})) << i;
  for (std::size_t i = 8; i < 12; ++i)
    EXPECT_EQ(model->seen[i], (TimedNetImpl::State{true, false, true})) << i;

  std::vector<std::string> paths;
  for (const TimedModule& module : timed->modules) {
    paths.push_back(module.path);
    EXPECT_THAT(module.iterations, ElementsAre(2, 3, 4, 5)) << module.path;
    EXPECT_EQ(module.calls, 1) << module.path;
    EXPECT_FALSE(module.is_gpu);
  }
  EXPECT_THAT(paths, ElementsAre("", "light", "heavy", "drop"));
  for (std::size_t i = 0; i < 4; ++i) {  // by two clocks that are alike but for some millionths
    EXPECT_LE(static_cast<double>(timed->modules[0].ns[i]),
              1.001 * static_cast<double>(timed->scoped_ns[i]));
  }
  EXPECT_GT(time_stats(timed->modules[2].ns).min_ms, time_stats(timed->modules[1].ns).min_ms);

  const auto table = benchmark_table(*timed, {.table = {.root = "__root__"}});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows(), 5u);
  EXPECT_EQ(table->find("device")->values[0], TableValue(std::string("cpu")));
  EXPECT_THAT(benchmark_text(*timed), HasSubstr("With scopes in it the model takes "));
}

TEST(Benchmark, TakesModelsAndInputsInEveryWay) {
  struct Two : torch::nn::Module {
    Tensor forward(const Tensor& a, const Tensor& b) { return a + b; }
  };
  Two on_stack;
  auto inputs = std::make_tuple(torch::ones({2}), torch::ones({2}));
  EXPECT_TRUE(benchmark(on_stack, inputs, few()));
  auto shared = std::make_shared<Two>();
  EXPECT_TRUE(benchmark(shared, inputs, few()));
  int calls = 0;
  const auto call = [&] {
    ++calls;
    return on_stack.forward(torch::ones({2}), torch::ones({2}));
  };
  const auto total =
      benchmark(on_stack, call, {.iterations = 6, .drop_first = 2, .modules = false});
  ASSERT_TRUE(total);
  EXPECT_EQ(calls, 6);
  EXPECT_TRUE(total->modules.empty());
  EXPECT_FALSE(scope_overhead(*total).has_value());
  torch::nn::Sequential sequential(torch::nn::Linear(2, 2), torch::nn::ReLU());
  EXPECT_TRUE(benchmark(sequential, torch::ones({1, 2}), few()));
}

void expect_as_before(TimedNet& model, const Tensor& numbers, std::size_t threads) {
  EXPECT_TRUE(model->is_training());
  EXPECT_FALSE(model->drop->is_training());
  EXPECT_TRUE(model->light->is_training());
  EXPECT_FALSE(c10::InferenceMode::is_enabled());
  EXPECT_TRUE(torch::equal(at::detail::getDefaultCPUGenerator().get_state(), numbers));
  EXPECT_EQ(static_cast<std::size_t>(at::get_num_threads()), threads);
}

TEST(Benchmark, LeavesTheModelAsItWas) {
  TimedNet model;
  model->train();
  model->drop->eval();
  const Tensor x = torch::randn({2, 64});
  const Tensor numbers = at::detail::getDefaultCPUGenerator().get_state();
  const auto threads = static_cast<std::size_t>(at::get_num_threads());
  const auto timed = benchmark(model, x, {.iterations = 6, .drop_first = 2, .intra_op_threads = 2});
  ASSERT_TRUE(timed);
  EXPECT_EQ(timed->environment.intra_op_threads, 2u);
  expect_as_before(model, numbers, threads);
  // Of its own random numbers, too.
  model->drop->train();
  ASSERT_TRUE(benchmark(
      model, x, {.iterations = 6, .drop_first = 2, .eval = false, .inference_mode = false}));
  model->drop->eval();
  expect_as_before(model, numbers, threads);
  EXPECT_EQ(model->seen.back(), (TimedNetImpl::State{true, true, false}));
}

TEST(Benchmark, PassesOnWhatTheModelThrows) {
  TimedNet model;
  model->drop->eval();
  const Tensor x = torch::randn({2, 64});
  const Tensor numbers = at::detail::getDefaultCPUGenerator().get_state();
  const auto threads = static_cast<std::size_t>(at::get_num_threads());
  for (const std::uint64_t call : {3u, 9u}) {  // in either pass
    model->seen.clear();
    model->throws_at = call;
    EXPECT_THROW(static_cast<void>(benchmark(model, x, few())), std::runtime_error);
    expect_as_before(model, numbers, threads);
  }
  model->throws_at = 0;
  EXPECT_TRUE(benchmark(model, x, few()));
}

TEST(Benchmark, TellsHowFarItIs) {
  std::vector<std::uint64_t> done;
  BenchmarkOptions options = few();
  options.progress = [&](std::uint64_t calls, std::uint64_t all) {
    done.push_back(calls);
    EXPECT_EQ(all, 12u);
  };
  TimedNet model;
  ASSERT_TRUE(benchmark(model, torch::randn({2, 64}), options));
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), 12u);
}

TEST(Benchmark, SaysWhatIsWrong) {
  TimedNet model;
  const Tensor x = torch::randn({2, 64});
  const auto error = [](const auto& result) { return result ? "" : result.error().message(); };
  EXPECT_EQ(error(benchmark(model, x, {.iterations = 5, .drop_first = 5})),
            "cannot time a model: of 5 iterations the first 5 would be dropped. Let iterations be "
            "more than drop_first");
  TimedNet empty(nullptr);
  EXPECT_EQ(error(benchmark(
                empty, [] {}, few())),
            "cannot time a model: the model is null. Give it a module");
  auto session = Session::start(model);
  ASSERT_TRUE(session);
  EXPECT_THAT(error(benchmark(model, x, few())), HasSubstr("a session is active"));
  ASSERT_TRUE(session->stop());
  EXPECT_EQ(error(throughput(model, x, {}, few())),
            "cannot time batches: no size is given. Give sizes of 1 or more");
  EXPECT_THAT(error(throughput(model, x, {1, 0}, few())), HasSubstr("a size is 0"));
}

TEST(Throughput, TimesBatchesOfEachSize) {
  struct Rows : torch::nn::Module {
    std::vector<std::int64_t> seen;
    Tensor forward(const Tensor& x) {
      if (seen.empty() || seen.back() != x.size(0)) seen.push_back(x.size(0));
      if (x.size(0) > 8) throw std::bad_alloc();
      return x + 1;
    }
  };
  Rows model;
  const Tensor x = torch::arange(6).reshape({3, 2});
  const auto sweep = throughput(model, x, {1, 4, 9, 16}, few());
  ASSERT_TRUE(sweep) << sweep.error().message();
  EXPECT_THAT(model.seen, ElementsAre(1, 4, 9));
  EXPECT_EQ(sweep->out_of_memory_at, 9u);
  const Table table = throughput_table(*sweep);
  EXPECT_THAT(table.find("batch_size")->values,
              ElementsAre(TableValue(std::int64_t{1}), TableValue(std::int64_t{4})));
  model.seen.clear();
  const auto made = throughput(
      model, [](std::uint64_t size) { return torch::ones({static_cast<std::int64_t>(size), 2}); },
      {2, 5});
  ASSERT_TRUE(made);
  EXPECT_THAT(model.seen, ElementsAre(2, 5));
  EXPECT_EQ(made->batches[0].ns.size(), 90u);
  EXPECT_FALSE(throughput(model, x, {9}, few()));
  EXPECT_TRUE(
      torch::equal(detail::batch_of(x, 4), torch::tensor({{0, 1}, {2, 3}, {4, 5}, {0, 1}})));
}

}  // namespace
}  // namespace layertrace::test
