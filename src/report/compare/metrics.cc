#include "report/compare/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "report/figures.h"

namespace layertrace::comparison {
namespace {

constexpr double kMsPerNs = 1e-6;

Stat constant(double value) {
  return {.mean = value, .min = value, .max = value, .median = value, .stdev = 0};
}

// ---- Of a layer ----

Stat sum(const Layer& layer, Stat PhaseStats::*figure, const std::vector<Phase>& phases) {
  Stat all;
  for (const Phase phase : phases) all = all + layer.phase(phase).*figure;
  return all;
}

// Where phases stand for layers, each is of one of them, and some are of the optimizer.
const std::vector<Phase>& total_phases(bool phases_for_layers) {
  static const auto* const kOfModules =
      new std::vector<Phase>{Phase::kForward, Phase::kLoss, Phase::kBackward, Phase::kRecompute};
  static const auto* const kAll = [] {
    auto* all = new std::vector<Phase>;
    for (std::size_t i = 0; i < kPhaseCount; ++i) all->push_back(static_cast<Phase>(i));
    return all;
  }();
  return phases_for_layers ? *kAll : *kOfModules;
}

// A loss function's module runs in the loss, and its call is its forward all the same.
Stat forward(const Layer& layer, Stat PhaseStats::*figure) {
  return sum(layer, figure, {Phase::kForward, Phase::kLoss});
}

Figure layer_forward(const Layer& layer, const Known& known) {
  return {forward(layer, &PhaseStats::host_ns) * kMsPerNs, known.times};
}
Figure layer_backward(const Layer& layer, const Known& known) {
  return {layer.phase(Phase::kBackward).host_ns * kMsPerNs, known.times};
}
Figure layer_total(const Layer& layer, const Known& known) {
  const Stat all = sum(layer, &PhaseStats::host_ns, total_phases(known.phases_for_layers));
  return {all * kMsPerNs, known.times};
}
Figure layer_gpu_forward(const Layer& layer, const Known& known) {
  const auto figure = known.events ? &PhaseStats::event_ns : &PhaseStats::busy_ns;
  return {forward(layer, figure) * kMsPerNs, known.gpu || known.events};
}
Figure layer_gpu_backward(const Layer& layer, const Known& known) {
  const auto figure = known.events ? &PhaseStats::event_ns : &PhaseStats::busy_ns;
  return {layer.phase(Phase::kBackward).*figure * kMsPerNs, known.gpu || known.events};
}
Figure layer_kernels(const Layer& layer, const Known& known) {
  return {constant(report::figures_of(layer).activities), known.gpu};
}
Figure layer_flops(const Layer& layer, const Known& known) {
  return {constant(report::figures_of(layer).flops), known.counted};
}
Figure layer_params(const Layer& layer, const Known& known) {
  return {constant(static_cast<double>(layer.params)), known.params};
}
Figure layer_memory(const Layer& layer, const Known& known) {
  return {constant(report::figures_of(layer).memory_peak), known.memory};
}

// ---- Of a run ----

template <Figure (*kOfLayer)(const Layer&, const Known&)>
Figure of_roots(const Profile& profile, const Known& known) {
  Figure all;
  for (const Layer& layer : profile.layers) {
    if (layer.parent >= 0) continue;
    const Figure root = kOfLayer(layer, known);
    all = {all.stat + root.stat, root.known};
  }
  return all;
}

Figure run_step(const Profile& profile, const Known& known) {
  return {profile.step_ns * kMsPerNs, known.times && profile.steps_marked};
}
Figure run_optimizer(const Profile& profile, const Known& known) {
  Stat host = profile.outside[static_cast<std::size_t>(Phase::kOptimizer)].host_ns;
  for (const Layer& layer : profile.layers) {
    if (known.phases_for_layers && layer.parent < 0)
      host = host + layer.phase(Phase::kOptimizer).host_ns;
  }
  return {host * kMsPerNs, known.times && host.max > 0};
}

Stat stat_over(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  Stat stat{.min = values.front(), .max = values.back()};
  stat.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  const std::size_t middle = values.size() / 2;
  stat.median = values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  double squares = 0;
  for (const double value : values) squares += (value - stat.mean) * (value - stat.mean);
  stat.stdev = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return stat;
}

// Over the steps that are kept, all devices together.
Figure run_gpu(const Profile& profile, const Known& known) {
  if (!known.gpu || profile.steps.empty()) return {};
  std::vector<double> busy;
  for (const Step& step : profile.steps) {
    double ns = 0;
    for (const DeviceStep& device : step.devices) ns += static_cast<double>(device.busy_ns);
    busy.push_back(ns);
  }
  return {stat_over(std::move(busy)) * kMsPerNs, true};
}
Figure run_kernels(const Profile& profile, const Known& known) {
  Figure all = of_roots<layer_kernels>(profile, known);
  for (const PhaseStats& phase : profile.outside)
    all.stat = all.stat + constant(phase.activities.mean);
  return {all.stat, known.gpu};
}
Figure run_flops(const Profile& profile, const Known& known) {
  Figure all = of_roots<layer_flops>(profile, known);
  for (const PhaseStats& phase : profile.outside)
    all.stat = all.stat + constant(phase.amounts.flops);
  return {all.stat, known.counted};
}
// Of all GPUs where any was in use, else of the host.
Figure run_memory(const Profile& profile, const Known& known) {
  if (!known.memory) return {};
  double of_gpus = 0;
  double of_host = 0;
  for (const DeviceMemory& each : profile.device_memory)
    (each.device < 0 ? of_host : of_gpus) += each.peak;
  return {constant(of_gpus > 0 ? of_gpus : of_host), true};
}

}  // namespace

Known known_of(const Profile& profile) {
  const bool has_steps = profile.step_count != 0 && !profile.run.summary;
  return {.times = has_steps,
          .gpu = has_steps && !profile.run.device.empty() && profile.health.gpu.timing != "events",
          .events = has_steps && profile.health.gpu.timing == "events",
          .counted = report::has_amounts(profile),
          .memory = !profile.device_memory.empty(),
          .params = std::ranges::any_of(profile.layers,
                                        [](const Layer& layer) { return layer.params != 0; }),
          .phases_for_layers = report::has_phases_for_layers(profile)};
}

const std::vector<Metric>& metrics() {
  using enum MetricKind;
  static const auto* const kAll = new std::vector<Metric>{
      {"step_ms", "ms", kTime, false, nullptr, &run_step},
      {"total_ms", "ms", kTime, false, &layer_total, nullptr,
       total_phases(/*phases_for_layers=*/false)},
      {"forward_ms",
       "ms",
       kTime,
       false,
       &layer_forward,
       &of_roots<&layer_forward>,
       {Phase::kForward, Phase::kLoss}},
      {"backward_ms",
       "ms",
       kTime,
       false,
       &layer_backward,
       &of_roots<&layer_backward>,
       {Phase::kBackward}},
      {"optimizer_ms", "ms", kTime, false, nullptr, &run_optimizer},
      {"gpu_ms", "ms", kTime, true, nullptr, &run_gpu},
      {"gpu_forward_ms",
       "ms",
       kTime,
       true,
       &layer_gpu_forward,
       &of_roots<&layer_gpu_forward>,
       {Phase::kForward, Phase::kLoss}},
      {"gpu_backward_ms",
       "ms",
       kTime,
       true,
       &layer_gpu_backward,
       &of_roots<&layer_gpu_backward>,
       {Phase::kBackward}},
      {"kernels", "per step", kCounted, true, &layer_kernels, &run_kernels},
      {"flops", "FLOP", kCounted, false, &layer_flops, &run_flops},
      {"params", "elements", kCounted, false, &layer_params, &of_roots<&layer_params>},
      {"memory_bytes", "bytes", kMemory, false, &layer_memory, &run_memory},
  };
  return *kAll;
}

const std::vector<Phase>& phases_of(const Metric& metric, const Known& known) {
  return metric.of_layer == &layer_total ? total_phases(known.phases_for_layers) : metric.phases;
}

}  // namespace layertrace::comparison
