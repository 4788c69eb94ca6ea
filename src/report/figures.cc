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
  calls += other.calls;
  return *this;
}

Figures figures_of(const Layer& layer) {
  Figures figures;
  // A loss function's module runs in the loss, but its call is its forward all the same.
  figures.forward_ns =
      layer.phase(Phase::kForward).host_ns.mean + layer.phase(Phase::kLoss).host_ns.mean;
  figures.backward_ns = layer.phase(Phase::kBackward).host_ns.mean;
  figures.recompute_ns = layer.phase(Phase::kRecompute).host_ns.mean;
  figures.total_ns = figures.forward_ns + figures.backward_ns + figures.recompute_ns;
  figures.gpu_forward_ns =
      layer.phase(Phase::kForward).busy_ns.mean + layer.phase(Phase::kLoss).busy_ns.mean;
  figures.gpu_backward_ns = layer.phase(Phase::kBackward).busy_ns.mean;
  figures.calls = layer.calls;
  for (const PhaseStats& phase : layer.phases) {
    figures.self_ns += phase.self_host_ns.mean;
    figures.activity_ns += phase.activity_ns.mean;
    figures.busy_ns += phase.busy_ns.mean;
    figures.activities += phase.activities.mean;
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
