#include "report/figures.h"

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
  launches += other.launches;
  idle_ns += other.idle_ns;
  launch_idle_ns += other.launch_idle_ns;
  calls += other.calls;
  return *this;
}

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
  figures.total_ns = figures.forward_ns + figures.backward_ns + figures.recompute_ns;
  figures.gpu_forward_ns = forward(&PhaseStats::busy_ns);
  figures.gpu_backward_ns = backward.busy_ns.mean;
  figures.event_forward_ns = forward(&PhaseStats::event_ns);
  figures.event_backward_ns = backward.event_ns.mean;
  figures.launch_idle_ns = forward(&PhaseStats::idle_ns) + backward.idle_ns.mean;
  figures.calls = layer.calls;
  for (const PhaseStats& phase : layer.phases) {
    figures.self_ns += phase.self_host_ns.mean;
    figures.activity_ns += phase.activity_ns.mean;
    figures.busy_ns += phase.busy_ns.mean;
    figures.activities += phase.activities.mean;
    figures.launches += phase.launches.mean;
    figures.idle_ns += phase.idle_ns.mean;
  }
  return figures;
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
