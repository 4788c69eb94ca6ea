// How long a layer took by one clock: the host's, or the GPU's. Pictures show one of the two.
#pragma once

#include <layertrace/profile.h>

#include "report/device_sentences.h"

namespace layertrace::report {

struct LayerTimes {
  double forward_ns = 0;
  double backward_ns = 0;
  double recompute_ns = 0;

  double total_ns() const { return forward_ns + backward_ns + recompute_ns; }
  LayerTimes& operator+=(const LayerTimes& other) {
    forward_ns += other.forward_ns;
    backward_ns += other.backward_ns;
    recompute_ns += other.recompute_ns;
    return *this;
  }
};

inline LayerTimes times_by(const Layer& layer, Stat PhaseStats::*clock) {
  const auto mean = [&](Phase phase) { return (layer.phase(phase).*clock).mean; };
  // A loss function's module runs in the loss, but its call is its forward all the same.
  return {mean(Phase::kForward) + mean(Phase::kLoss), mean(Phase::kBackward),
          mean(Phase::kRecompute)};
}

inline bool has_gpu(const Profile& profile) { return !profile.run.device.empty(); }

inline LayerTimes host_times(const Layer& layer) { return times_by(layer, &PhaseStats::host_ns); }

// How long it was busy; by CUDA events where kernels were not recorded.
inline LayerTimes gpu_times(const Profile& profile, const Layer& layer) {
  return times_by(layer, has_events_only(profile) ? &PhaseStats::event_ns : &PhaseStats::busy_ns);
}

}  // namespace layertrace::report
