// Profiles made by hand, for the tests of the reports.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>

#include <layertrace/profile.h>

#include "roofline/rates.h"

namespace layertrace::made {

inline constexpr double kUs = 1e3;
inline constexpr double kMs = 1e6;

inline Stat constant(double value) { return {value, value, value, value, 0}; }

struct Made {
  double forward_ns = 0;
  double backward_ns = 0;
  double calls = 1;
  double activities = 0;
};

// Layers are added parents first; a layer's path follows from its parent's.
class ProfileMaker {
 public:
  int root(const std::string& type, Made figures = {}) { return add(-1, "", type, type, figures); }

  int layer(int parent, const std::string& name, const std::string& type, Made figures = {}) {
    const std::string& above = profile.layers[parent].path;
    return add(parent, above.empty() ? name : above + "." + name, name, type, figures);
  }

  int not_run(int parent, const std::string& name, const std::string& type) {
    const int index = layer(parent, name, type, {.calls = 0});
    profile.layers[index].ran = false;
    return index;
  }

  Layer& operator[](int index) { return profile.layers[index]; }

  void steps(std::initializer_list<double> wall_ns) {
    for (const double ns : wall_ns) {
      Step step;
      step.index = profile.steps.size();
      step.wall_ns = static_cast<std::uint64_t>(ns);
      profile.steps.push_back(step);
    }
    profile.step_count = wall_ns.size();
    profile.step_ns = {.mean = std::accumulate(wall_ns.begin(), wall_ns.end(), 0.0) /
                               static_cast<double>(wall_ns.size()),
                       .min = std::min(wall_ns),
                       .max = std::max(wall_ns)};
  }

  void outside(Phase phase, double host_ns, double activities) {
    PhaseStats& stats = profile.outside[static_cast<std::size_t>(phase)];
    stats.host_ns = constant(host_ns);
    stats.activities = constant(activities);
  }

  Profile profile;

 private:
  int add(int parent, std::string path, std::string name, std::string type, Made figures) {
    const int index = static_cast<int>(profile.layers.size());
    Layer layer;
    layer.path = std::move(path);
    layer.name = std::move(name);
    layer.type = std::move(type);
    layer.parent = parent;
    layer.calls = figures.calls;
    layer.ran = true;
    PhaseStats& forward = layer.phases[static_cast<std::size_t>(Phase::kForward)];
    forward.calls = constant(figures.calls);
    forward.host_ns = constant(figures.forward_ns);
    forward.activities = constant(figures.activities);
    layer.phases[static_cast<std::size_t>(Phase::kBackward)].host_ns =
        constant(figures.backward_ns);
    profile.layers.push_back(std::move(layer));
    if (parent >= 0) profile.layers[parent].children.push_back(index);
    return index;
  }
};

// A small net with everything that a row can be: a container, a layer that did not run, a shared
// one, one that was not registered; two steps of 10 and 12 ms; some activities without a layer.
inline Profile small_net() {
  ProfileMaker net;
  const int root = net.root("Net", {4 * kMs, 5 * kMs, 1, 120});
  net.layer(root, "embed", "Embedding", {250 * kUs, 400 * kUs, 1, 4});
  const int heads = net.layer(root, "heads", "ModuleList", {3 * kMs, 4 * kMs, 0, 90});
  net.layer(heads, "0", "Linear", {2 * kMs, 3 * kMs, 1, 60});
  net.layer(heads, "1", "Linear", {1 * kMs, 1 * kMs, 1, 30});
  net.not_run(root, "drop", "Dropout");
  const int tied = net.not_run(root, "out", "Embedding");
  net[tied].shared_with = "embed";
  const int late = net.layer(root, "late", "Tanh", {950, 0, 0.5, 1});
  net[late].registered = false;
  net.steps({10 * kMs, 12 * kMs});
  net.outside(Phase::kLoss, 300 * kUs, 6);
  net.outside(Phase::kOptimizer, 1.2 * kMs, 14);
  net.outside(Phase::kData, 20 * kUs, 0);

  Profile profile = std::move(net.profile);
  profile.run.program = "train_net";
  profile.run.cpu = "AMD EPYC 7R32";
  Health& health = profile.health;
  health.attributed_share = 0.998;
  health.activities = 1204;
  health.activity_ns = 12'000'000;
  health.unattributed = {
      {"launched by a thread with no scope", 3, 24'000, {{"aten::add", 2}, {"aten::mul", 1}}}};
  health.nodes = 310;
  health.unattributed_nodes = {{"made before the recording began", 4, 0, {{"AddBackward0", 4}}}};
  health.emitted = 12345;
  health.recorded = 12345;
  health.scope_cost_ns = 55;
  health.op_cost_ns = 210;
  health.writer_cpu_ns = 4'200'000;
  health.tracing_share = 0.003;
  return profile;
}

// A net on a GPU: kernels and copies, event pairs, and time in which the GPU waited.
inline Profile gpu_net() {
  ProfileMaker net;
  const int root = net.root("Net", {4 * kMs, 5 * kMs, 1, 12});
  const int body = net.layer(root, "body", "Sequential", {3 * kMs, 4 * kMs, 1, 10});
  const int linear = net.layer(body, "0", "Linear", {2 * kMs, 4 * kMs, 1, 6});
  net.layer(body, "1", "ReLU", {1 * kMs, 0, 1, 4});
  const int head = net.layer(root, "head", "Linear", {1 * kMs, 1 * kMs, 1, 2});
  const auto gpu = [&](int layer, Phase phase, double busy_ns, double event_ns, double idle_ns) {
    PhaseStats& stats = net[layer].phases[static_cast<std::size_t>(phase)];
    stats.busy_ns = stats.activity_ns = constant(busy_ns);
    stats.event_ns = constant(event_ns);
    stats.idle_ns = constant(idle_ns);
    stats.launches = constant(3);
  };
  for (const int layer : {root, body}) {
    gpu(layer, Phase::kForward, 500 * kUs, 550 * kUs, 500 * kUs);
    gpu(layer, Phase::kBackward, 1 * kMs, 1.2 * kMs, 3.4 * kMs);
  }
  gpu(linear, Phase::kForward, 250 * kUs, 300 * kUs, 200 * kUs);
  gpu(linear, Phase::kBackward, 800 * kUs, 900 * kUs, 3.1 * kMs);
  gpu(head, Phase::kForward, 150 * kUs, 180 * kUs, 100 * kUs);
  for (const int layer : {root, head})
    net[layer].phases[static_cast<std::size_t>(Phase::kBackward)].copies = constant(2);
  net.steps({10 * kMs, 12 * kMs});
  net.outside(Phase::kData, 2 * kMs, 1);
  net.outside(Phase::kOptimizer, 1 * kMs, 3);
  net.profile.outside[static_cast<std::size_t>(Phase::kOptimizer)].busy_ns = constant(3 * kUs);
  net.profile.outside[static_cast<std::size_t>(Phase::kData)].busy_ns = constant(200 * kUs);

  Profile profile = std::move(net.profile);
  profile.steps[0].devices = {{0, 2'000'000, 8'000'000, 100'000}};
  profile.steps[1].devices = {{0, 3'000'000, 9'000'000, 300'000}};
  const auto use = [](int layer, Phase phase, std::uint64_t count, std::uint64_t ns) {
    return Kernel::Use{layer, phase, count, ns};
  };
  Kernel gemm{
      .name = "ampere_sgemm_128x64_tn",
      .short_name = "ampere_sgemm_128x64_tn",
      .kind = "kernel",
      .count = 8,
      .ns = 2'400'000,
      .min_ns = 100'000,
      .max_ns = 500'000,
      .grid = {8, 2, 1},
      .block = {128, 1, 1},
      .registers = 122,
      .shared_bytes = 16384,
      .occupancy = 0.25,
      .uses = {use(linear, Phase::kBackward, 4, 1'600'000),
               use(linear, Phase::kForward, 2, 500'000), use(head, Phase::kForward, 2, 300'000)}};
  Kernel relu{.name =
                  "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
                  "namespace)::launch_clamp_scalar(at::TensorIteratorBase&)>(int)",
              .short_name = "vectorized_elementwise_kernel<launch_clamp_scalar>",
              .kind = "kernel",
              .count = 10,
              .ns = 90'000,
              .min_ns = 8'000,
              .max_ns = 11'000,
              .grid = {64, 1, 1},
              .block = {512, 1, 1},
              .registers = 16,
              .occupancy = 1,
              .uses = {use(3, Phase::kForward, 2, 40'000), use(root, Phase::kForward, 2, 20'000),
                       use(body, Phase::kForward, 2, 15'000), use(head, Phase::kBackward, 2, 9'000),
                       use(-1, Phase::kOptimizer, 2, 6'000)}};
  Kernel copy{.name = "copy HtoD",
              .short_name = "copy HtoD",
              .kind = "copy",
              .count = 2,
              .ns = 400'000,
              .min_ns = 200'000,
              .max_ns = 200'000,
              .bytes = 2048,
              .uses = {use(-1, Phase::kData, 2, 400'000)}};
  Kernel set{.name = "set",
             .short_name = "set",
             .kind = "set",
             .count = 4,
             .ns = 8'000,
             .min_ns = 2'000,
             .max_ns = 2'000,
             .bytes = 400,
             .uses = {use(head, Phase::kBackward, 4, 8'000)}};
  // The head is smaller than the rest.
  for (Kernel* kernel : {&gemm, &relu}) {
    for (Kernel::Use& each : kernel->uses) {
      each.longest = {kernel->grid, kernel->block, kernel->registers, kernel->shared_bytes,
                      kernel->occupancy};
      if (each.layer == head) each.longest.grid = {2, 1, 1};
    }
  }
  profile.kernels = {gemm, relu, copy, set};
  std::swap(profile.kernels[1], profile.kernels[2]);
  profile.idle = {{linear, Phase::kBackward, IdleCause::kLaunch, 3.1 * kMs, 12},
                  {-1, Phase::kData, IdleCause::kData, 1.5 * kMs, 1},
                  {body, Phase::kForward, IdleCause::kSynchronisation, 0.9 * kMs, 2.5},
                  {linear, Phase::kForward, IdleCause::kCopy, 0.2 * kMs, 1}};
  profile.run.program = "train_net";
  profile.run.device = "some GPU";
  profile.health.gpu.source = "CUPTI 130200";
  profile.health.gpu.timing = "both";
  profile.health.gpu.cupti_version = 130200;
  profile.health.activities = 24;
  profile.health.activity_ns = 2'898'000;
  return profile;
}

// A net whose operators were counted, on a GPU with 100 TFLOP/s in bf16 and 1 TB/s: a linear layer
// whose forward runs again in the backward, and one without any product. One step of 1 ms.
inline Profile counted_net() {
  ProfileMaker net;
  const int root = net.root("Net", {200 * kUs, 300 * kUs, 1, 6});
  const int linear = net.layer(root, "fc", "Linear", {100 * kUs, 200 * kUs, 1, 4});
  net.layer(root, "act", "ReLU", {50 * kUs, 50 * kUs, 1, 2});
  constexpr std::size_t kBf16 = 4;
  const auto count = [&](Phase phase, double gflops, double busy_us) {
    Amounts amounts{.flops = gflops * 1e9,
                    .flops_causal = gflops * 1e9,
                    .bytes = gflops * 5e6,
                    .fvcore_flops = gflops * 5e8};
    if (phase == Phase::kForward) {
      amounts.aux_flops = 1e6;
      amounts.activations = 5e5;
    }
    amounts.flops_by_format[kBf16] = amounts.flops;
    for (const int layer : {root, linear}) {
      PhaseStats& stats = net[layer].phases[static_cast<std::size_t>(phase)];
      stats.amounts = amounts;
      stats.busy_ns = stats.activity_ns = constant(busy_us * kUs);
    }
    PhaseStats& own = net[linear].phases[static_cast<std::size_t>(phase)];
    own.self_amounts = amounts;
    own.self_activity_ns = constant(busy_us * kUs);
  };
  count(Phase::kForward, 4, 80);
  count(Phase::kBackward, 8, 160);
  count(Phase::kRecompute, 4, 80);
  net[linear].phases[0].memory = {.allocated = 2500, .freed = 500, .kept = 2000, .peak = 3000};
  net[linear].params = net[linear].self_params = 1'000'000;
  net[linear].params_trainable = 900'000;
  net[linear].param_bytes = 2'000'000;
  net[linear].parameters.emplace_back();
  Parameter& weight = net[linear].parameters.back();
  weight.name = "weight";
  weight.shape = {500, 2000};
  weight.dtype = "bfloat16";
  weight.elements = 1'000'000;
  weight.bytes = 2'000'000;
  weight.trainable = true;
  net[linear].kernel_size = "3 × 3";
  net[linear].shapes = {{"bfloat16[8, 1000]", "bfloat16[8, 500]", 1}};
  net.steps({1 * kMs});

  Profile profile = std::move(net.profile);
  profile.run.device = "some GPU";
  profile.device.name = "some GPU";
  profile.device.origin = "published";
  profile.device.flops_per_s[kBf16] = 100e12;
  profile.device.bytes_per_s = 1e12;
  profile.device.source = "its datasheet";
  profile.counted_share = 1;
  profile.operators.resize(2);
  Operator& mm = profile.operators[0];
  mm.name = "aten::mm";
  mm.calls = 4;
  mm.host_ns = 3000;
  mm.amounts = {.flops = 16e9, .flops_causal = 16e9, .bytes = 80e6, .activations = 5e5};
  Operator& custom = profile.operators[1];
  custom.name = "my::op";
  custom.calls = custom.uncounted = 2;
  custom.host_ns = 1000;
  roofline::fill_rates(profile);
  return profile;
}

// Twelve equal blocks, the eighth slower than the others, between an embedding and a head.
inline Profile transformer() {
  ProfileMaker net;
  const int root = net.root("GPT", {26.5 * kMs, 40 * kMs, 1, 400});
  net.layer(root, "embed", "Embedding", {500 * kUs, 500 * kUs, 1, 2});
  const int blocks = net.layer(root, "blocks", "ModuleList", {25 * kMs, 38 * kMs, 0, 390});
  for (int i = 0; i < 12; ++i) {
    const double extra_ns = i == 7 ? 1 * kMs : 0;
    const int block = net.layer(blocks, std::to_string(i), "Block",
                                {2 * kMs + extra_ns, 3 * kMs + extra_ns, 1, 32});
    net.layer(block, "attn", "Attention", {800 * kUs, 1 * kMs, 1, 12});
    const int mlp = net.layer(block, "mlp", "Sequential", {1 * kMs, 1.5 * kMs, 1, 18});
    net.layer(mlp, "0", "Linear", {600 * kUs, 900 * kUs, 1, 6});
    net.layer(mlp, "1", "GELU", {100 * kUs, 100 * kUs, 1, 6});
    net.layer(mlp, "2", "Linear", {300 * kUs, 500 * kUs, 1, 6});
  }
  net.layer(root, "head", "Linear", {1 * kMs, 1.5 * kMs, 1, 8});
  net.steps({80 * kMs});
  return std::move(net.profile);
}

}  // namespace layertrace::made
