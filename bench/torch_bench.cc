// What recording costs a LibTorch program, one scope, operator or autograd node at a time, and how
// long the end takes.
//
// The loops here write records some ten times as fast as any program does and as the writer reads
// them. So they run in short bursts with pauses, of which the first loops are not counted, and give
// the median over the bursts: what another program on the same core does to a few of them is not in
// it. A run that lost a record is no result.
#include <benchmark/benchmark.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <layertrace/layertrace.h>

namespace {

using std::chrono::steady_clock;

constexpr int kWarmLoops = 100;
constexpr int kTimedLoops = 1000;
constexpr int kBursts = 300;
constexpr auto kPause = std::chrono::milliseconds(1);

struct Net : torch::nn::Module {
  Net() { child = register_module("child", torch::nn::Linear(1, 1)); }
  torch::nn::Linear child{nullptr};
};

// Nanoseconds for one loop of a burst.
template <typename Body>
double burst(const Body& body) {
  for (int i = 0; i < kWarmLoops; ++i) body();
  const auto start = steady_clock::now();
  for (int i = 0; i < kTimedLoops; ++i) body();
  return std::chrono::duration<double, std::nano>(steady_clock::now() - start).count() /
         kTimedLoops;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// One repetition is one iteration; what it found is in `counters["ns"]`.
void set_ns(benchmark::State& state, double ns) {
  state.SetIterationTime(ns * 1e-9);
  state.counters["ns"] = ns;
}

// The profile, if the session kept all its records; otherwise the benchmark is over.
bool stop_whole(benchmark::State& state, layertrace::Session& session) {
  const auto profile = session.stop();
  if (!profile) {
    state.SkipWithError(profile.error().message().c_str());
  } else if (profile->health.dropped != 0) {
    state.SkipWithError("records were dropped");
  } else {
    return true;
  }
  return false;
}

#define LAYERTRACE_REPETITION(function) \
  BENCHMARK(function)->Iterations(1)->UseManualTime()->Unit(benchmark::kNanosecond)

// ---- Scopes ----

// Without the loop around it, which runs in turn with it.
void scope_without_session(benchmark::State& state) {
  const Net net;
  for (auto _ : state) {
    std::vector<double> empty;
    std::vector<double> bursts;
    for (int i = 0; i < kBursts; ++i) {
      empty.push_back(burst([&] { benchmark::DoNotOptimize(&net); }));
      bursts.push_back(burst([&] {
        const layertrace::ModuleScope scope(&net);
        benchmark::DoNotOptimize(&net);
      }));
    }
    set_ns(state, median(bursts) - median(empty));
  }
}
LAYERTRACE_REPETITION(scope_without_session);

void scope_recorded(benchmark::State& state) {
  Net net;
  for (auto _ : state) {
    auto session = layertrace::Session::start(net, {.ops = false});
    if (!session) return state.SkipWithError(session.error().message().c_str());
    std::vector<double> bursts;
    for (int i = 0; i < kBursts; ++i) {
      std::this_thread::sleep_for(kPause);
      const layertrace::ModuleScope root(&net);
      bursts.push_back(burst([&] { const layertrace::ModuleScope scope(net.child.get()); }));
    }
    if (!stop_whole(state, *session)) return;
    set_ns(state, median(bursts));
  }
}
LAYERTRACE_REPETITION(scope_recorded);

// ---- Operators and nodes ----

// What recording adds to one loop of `body`. The session's schedule leaves out every second step,
// so that bursts with and without alternate.
template <typename Body>
void measure_added(benchmark::State& state, bool ops, int per_loop, const Body& body) {
  Net net;
  for (auto _ : state) {
    auto session = layertrace::Session::start(
        net, {.schedule = {.skip = 1, .record = 1, .repeat = 0}, .ops = ops});
    if (!session) return state.SkipWithError(session.error().message().c_str());
    std::vector<double> without;
    std::vector<double> with;
    for (int i = 0; i < 2 * kBursts; ++i) {
      std::this_thread::sleep_for(kPause);
      (i % 2 == 0 ? without : with).push_back(body());
      session->step();
    }
    if (!stop_whole(state, *session)) return;
    set_ns(state, (median(with) - median(without)) / per_loop);
    state.counters["without_ns"] = median(without) / per_loop;
  }
}

// One operator, all of RecordFunction included.
void op_recorded(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::zeros({1});
  measure_added(state, /*ops=*/true, 1, [&] { return burst([&] { x.neg_(); }); });
}
LAYERTRACE_REPETITION(op_recorded);

// One autograd node, in the mode that records no operators.
void node_recorded(benchmark::State& state) {
  constexpr int kNodes = 200;
  const torch::Tensor leaf = torch::zeros({1}, torch::requires_grad());
  torch::Tensor x = leaf;
  for (int i = 0; i < kNodes; ++i) x = at::alias(x);  // its backward does nothing
  const auto backward = [&] {
    const auto start = steady_clock::now();
    x.backward({}, /*retain_graph=*/true);
    return std::chrono::duration<double, std::nano>(steady_clock::now() - start).count();
  };
  measure_added(state, /*ops=*/false, kNodes + 2, [&] {  // the root and the leaf's node as well
    backward();
    backward();
    return backward();
  });
}
LAYERTRACE_REPETITION(node_recorded);

// ---- The end ----

// Stopping after a million scopes and operators, recorded without a pause: the writer is still
// behind when the program asks for the end.
void stop_after_a_million(benchmark::State& state) {
  constexpr int kEvents = 1'000'000;
  constexpr int kEventsPerStep = 10'000;
  const std::string path = "/tmp/layertrace-bench-" + std::to_string(getpid()) + ".pftrace";
  Net net;
  for (auto _ : state) {
    auto session = layertrace::Session::start(
        net, {.output = path, .memory_cap_bytes = std::size_t{512} << 20});
    if (!session) return state.SkipWithError(session.error().message().c_str());
    for (int event = 0; event < kEvents; event += kEventsPerStep) {
      const layertrace::ModuleScope root(&net);
      for (int i = 0; i < kEventsPerStep; i += 2) {
        const layertrace::ModuleScope scope(net.child.get());
        at::RecordFunction op(at::RecordScope::FUNCTION);
        if (op.isActive()) op.before("aten::relu");
      }
      session->step();
    }
    const auto start = steady_clock::now();
    if (!stop_whole(state, *session)) return;
    const std::chrono::duration<double> elapsed = steady_clock::now() - start;
    state.SetIterationTime(elapsed.count());
    state.counters["seconds"] = elapsed.count();

    const auto info = layertrace::info(path);
    std::remove(path.c_str());
    if (!info) return state.SkipWithError(info.error().message().c_str());
    const std::uint64_t events = info->scopes + info->activities;
    if (events < kEvents) return state.SkipWithError("events are missing");
    state.counters["bytes"] = static_cast<double>(info->file_bytes) / static_cast<double>(events);
  }
}
BENCHMARK(stop_after_a_million)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
