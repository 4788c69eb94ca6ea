// The figures of one row of a report: a layer's means per step, reduced to what columns and sort
// keys ask for. Figures of several layers add up, which is what a row that stands for twelve blocks
// shows.
#pragma once

#include <layertrace/profile.h>

namespace layertrace::report {

struct Figures {
  double forward_ns = 0;
  double backward_ns = 0;
  double recompute_ns = 0;
  double total_ns = 0;  // the sum of those three
  double self_ns = 0;   // this and those below: all phases
  double activity_ns = 0;
  double busy_ns = 0;
  double activities = 0;
  double gpu_forward_ns = 0;
  double gpu_backward_ns = 0;
  double event_forward_ns = 0;
  double event_backward_ns = 0;
  double launches = 0;
  double idle_ns = 0;         // of the GPU, all phases
  double launch_idle_ns = 0;  // likewise, forward and backward
  double calls = 0;

  Figures& operator+=(const Figures& other);
};

Figures figures_of(const Layer& layer);

// Operators were recorded, or what a GPU did.
inline bool has_activities(const RunInfo& run) { return run.ops || !run.device.empty(); }

// What shares are shares of: the mean wall time of the recorded steps. Without any, the sum of all
// that was measured.
double share_base_ns(const Profile& profile);

}  // namespace layertrace::report
