// How much longer a training step takes while it is recorded.
//
//   step_bench MODEL ROUNDS         MODEL: cnn, transformer
//
// A round runs a few steps in each of four ways, in a new order each time: without a session; the
// same once more, which shows how far two equal things differ here (the sham); recording layers and
// nodes; recording operators too. Printed is one line for each way and round: the way, the median
// step's wall time and processor time (of all threads, the writer's included) in nanoseconds, and
// how many records a step made.
//
// The first model is the demo's own, the second one a deep transformer of tiny layers: there a step
// is all overhead, PyTorch's own above all, and recording shows most.
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include <layertrace/layertrace.h>

// The demo's model, without its main(), which may end without a return only by that name.
#define main train_residual_cnn_main  // NOLINT(readability-identifier-naming)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
#include "../examples/cpp/train_residual_cnn.cc"  // NOLINT(bugprone-suspicious-include)
#pragma GCC diagnostic pop
#undef main

namespace {

constexpr int kWarmSteps = 2;
constexpr int kTimedSteps = 5;

enum class Way { kWithout, kSham, kLayers, kOps };
constexpr std::array kWays{Way::kWithout, Way::kSham, Way::kLayers, Way::kOps};
constexpr std::array kNames{"without", "sham", "layers", "ops"};

struct Duration {
  double wall_ns = 0;
  double cpu_ns = 0;
};
struct Outcome {
  Duration step;
  std::uint64_t records = 0;
};

double now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

Duration now() { return {now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_PROCESS_CPUTIME_ID)}; }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

Duration median(const std::vector<Duration>& durations) {
  std::vector<double> wall, cpu;
  for (const Duration& each : durations) {
    wall.push_back(each.wall_ns);
    cpu.push_back(each.cpu_ns);
  }
  return {median(std::move(wall)), median(std::move(cpu))};
}

[[noreturn]] void fail(const layertrace::Error& error) {
  std::fprintf(stderr, "step_bench: %s\n", error.message().c_str());
  std::exit(1);
}

Outcome run(Way way, torch::nn::Module& model, const std::function<void()>& train) {
  std::optional<layertrace::Session> session;
  if (way == Way::kLayers || way == Way::kOps) {
    auto started = layertrace::Session::start(model, {.ops = way == Way::kOps});
    if (!started) fail(started.error());
    session.emplace(std::move(*started));
  }
  std::vector<Duration> durations;
  for (int step = 0; step < kWarmSteps + kTimedSteps; ++step) {
    const Duration start = now();
    train();
    if (session) session->step();
    const Duration end = now();
    if (step < kWarmSteps) continue;
    durations.push_back({end.wall_ns - start.wall_ns, end.cpu_ns - start.cpu_ns});
  }
  if (!session) return {median(durations)};
  const auto profile = session->stop();
  if (!profile) fail(profile.error());
  return {median(durations), profile->health.recorded / (kWarmSteps + kTimedSteps)};
}

struct Training {
  std::shared_ptr<torch::nn::Module> model;
  std::function<void()> step;
};

Training cnn() {
  ResidualNet model(10);
  auto optimizer = std::make_shared<torch::optim::AdamW>(model->parameters());
  const torch::Tensor pictures = torch::randn({16, 3, 32, 32});
  const torch::Tensor labels = torch::randint(10, {16});
  return {model.ptr(), [=]() mutable {
            optimizer->zero_grad();
            nn::functional::cross_entropy(model->forward(pictures), labels).backward();
            optimizer->step();
          }};
}

Training transformer() {
  constexpr int kLayers = 24;
  constexpr int kWidth = 32;
  nn::TransformerEncoder model(nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(kWidth, 2).dim_feedforward(64).dropout(0.1), kLayers));
  auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), 0.01);
  const torch::Tensor words = torch::randn({8, 2, kWidth});
  return {model.ptr(), [=]() mutable {
            optimizer->zero_grad();
            model->forward(words).sum().backward();
            optimizer->step();
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const int rounds = argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 0;
  if ((name != "cnn" && name != "transformer") || rounds < 1) {
    std::fprintf(stderr, "step_bench MODEL ROUNDS    MODEL: cnn, transformer\n");
    return 2;
  }
  torch::manual_seed(0);
  at::set_num_threads(1);  // the other core is the writer's
  const Training training = name == "cnn" ? cnn() : transformer();
  for (int step = 0; step < kWarmSteps; ++step) training.step();

  std::minstd_rand random;
  auto order = kWays;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const Way way : order) {
      const auto [step, records] = run(way, *training.model, training.step);
      std::printf("%s %.0f %.0f %zu\n", kNames[static_cast<std::size_t>(way)], step.wall_ns,
                  step.cpu_ns, static_cast<std::size_t>(records));
    }
  }
}
