#include "report/figures.h"

#include <algorithm>

#include "report/device_sentences.h"
#include "roofline/rates.h"

namespace layertrace::report {

Figures& Figures::operator+=(const Figures& other) {
  forward_ns += other.forward_ns;
  backward_ns += other.backward_ns;
  recompute_ns += other.recompute_ns;
  total_ns += other.total_ns;
  self_ns += other.self_ns;
  activity_ns += other.activity_ns;
  busy_ns += other.busy_ns;
  activities += other.activities;
  gpu_forward_ns += other.gpu_forward_ns;
  gpu_backward_ns += other.gpu_backward_ns;
  event_forward_ns += other.event_forward_ns;
  event_backward_ns += other.event_backward_ns;
  gpu_total_ns += other.gpu_total_ns;
  event_total_ns += other.event_total_ns;
  copies += other.copies;
  launches += other.launches;
  idle_ns += other.idle_ns;
  launch_idle_ns += other.launch_idle_ns;
  calls += other.calls;
  params += other.params;
  params_trainable += other.params_trainable;
  param_bytes += other.param_bytes;
  forward_flops += other.forward_flops;
  backward_flops += other.backward_flops;
  flops += other.flops;
  macs += other.macs;
  aux_flops += other.aux_flops;
  bytes += other.bytes;
  activations += other.activations;
  memory_peak = std::max(memory_peak, other.memory_peak);
  memory_kept += other.memory_kept;
  work += other.work;
  work_ns += other.work_ns;
  return *this;
}

namespace {

void add_amounts(Figures& figures, const Layer& layer) {
  figures.params = static_cast<double>(layer.params);
  figures.params_trainable = static_cast<double>(layer.params_trainable);
  figures.param_bytes = static_cast<double>(layer.param_bytes);
  for (const Phase p : {Phase::kForward, Phase::kLoss, Phase::kBackward}) {
    const PhaseStats& phase = layer.phase(p);
    const bool is_backward = p == Phase::kBackward;
    (is_backward ? figures.backward_flops : figures.forward_flops) += phase.amounts.flops;
    figures.activations += is_backward ? 0 : phase.amounts.activations;
    figures.memory_kept += is_backward ? 0 : phase.memory.kept;
    figures.work += phase.amounts;
    figures.work_ns += roofline::busy_ns(phase);
  }
  for (const PhaseStats& phase : layer.phases) {
    figures.flops += phase.amounts.flops;
    figures.macs += phase.amounts.macs();
    figures.aux_flops += phase.amounts.aux_flops;
    figures.bytes += phase.amounts.bytes;
    figures.memory_peak = std::max(figures.memory_peak, phase.memory.peak);
  }
}

}  // namespace

Figures figures_of(const Layer& layer) {
  Figures figures;
  // A loss function's module runs in the loss, but its call is its forward all the same.
  const auto forward = [&](Stat PhaseStats::*figure) {
    return (layer.phase(Phase::kForward).*figure).mean + (layer.phase(Phase::kLoss).*figure).mean;
  };
  const PhaseStats& backward = layer.phase(Phase::kBackward);
  figures.forward_ns = forward(&PhaseStats::host_ns);
  figures.backward_ns = backward.host_ns.mean;
  figures.recompute_ns = layer.phase(Phase::kRecompute).host_ns.mean;
  figures.gpu_forward_ns = forward(&PhaseStats::busy_ns);
  figures.gpu_backward_ns = backward.busy_ns.mean;
  figures.event_forward_ns = forward(&PhaseStats::event_ns);
  figures.event_backward_ns = backward.event_ns.mean;
  figures.launch_idle_ns = forward(&PhaseStats::idle_ns) + backward.idle_ns.mean;
  figures.calls = layer.calls;
  for (const PhaseStats& phase : layer.phases) {
    figures.total_ns += phase.host_ns.mean;
    figures.gpu_total_ns += phase.busy_ns.mean;
    figures.event_total_ns += phase.event_ns.mean;
    figures.self_ns += phase.self_host_ns.mean;
    figures.activity_ns += phase.activity_ns.mean;
    figures.busy_ns += phase.busy_ns.mean;
    figures.activities += phase.activities.mean;
    figures.copies += phase.copies.mean;
    figures.launches += phase.launches.mean;
    figures.idle_ns += phase.idle_ns.mean;
  }
  add_amounts(figures, layer);
  return figures;
}

bool was_called(const Profile& profile) { return std::ranges::any_of(profile.layers, &Layer::ran); }

bool has_phases_for_layers(const Profile& profile) {
  return !profile.run.imported_from.empty() &&
         std::ranges::any_of(profile.layers,
                             [](const Layer& layer) { return layer.type == "phase"; });
}

bool has_counts(const Profile& profile) {
  return std::ranges::any_of(profile.operators, &Operator::counted);
}

bool has_amounts(const Profile& profile) {
  const auto is_counted = [](const PhaseStats& phase) { return !phase.amounts.empty(); };
  return std::ranges::any_of(profile.outside, is_counted) ||
         std::ranges::any_of(profile.layers, [&](const Layer& layer) {
           return std::ranges::any_of(layer.phases, is_counted);
         });
}

GpuTimes gpu_times(const Profile& profile, const Figures& figures) {
  if (has_events_only(profile))
    return {figures.event_forward_ns, figures.event_backward_ns, figures.event_total_ns};
  return {figures.gpu_forward_ns, figures.gpu_backward_ns, figures.gpu_total_ns};
}

double leading_ns(const Profile& profile, const Figures& figures) {
  return profile.run.device.empty() ? figures.total_ns : gpu_times(profile, figures).total_ns;
}

double share_base_ns(const Profile& profile) {
  if (profile.step_count != 0) return profile.step_ns.mean;
  double sum_ns = 0;
  for (const Layer& layer : profile.layers) {
    if (layer.parent < 0) sum_ns += figures_of(layer).total_ns;
  }
  for (const PhaseStats& phase : profile.outside) sum_ns += phase.host_ns.mean;
  return sum_ns;
}

}  // namespace layertrace::report
