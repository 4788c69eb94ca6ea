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
  double total_ns = 0;  // of all phases
  double self_ns = 0;   // this and those below: all phases
  double activity_ns = 0;
  double busy_ns = 0;
  double activities = 0;
  double gpu_forward_ns = 0;
  double gpu_backward_ns = 0;
  double event_forward_ns = 0;
  double event_backward_ns = 0;
  double gpu_total_ns = 0;    // of all phases
  double event_total_ns = 0;  // likewise
  double copies = 0;
  double launches = 0;
  double idle_ns = 0;         // of the GPU, all phases
  double launch_idle_ns = 0;  // likewise, forward and backward
  double calls = 0;
  // Of the parameters, and what operators computed where they were counted.
  double params = 0;
  double params_trainable = 0;
  double param_bytes = 0;
  double forward_flops = 0;
  double backward_flops = 0;
  double flops = 0;  // this and the next three: all phases
  double macs = 0;
  double aux_flops = 0;
  double bytes = 0;
  double activations = 0;  // of the forward
  double memory_peak = 0;  // the most of any phase and, of several layers, of any
  double memory_kept = 0;  // by the forward
  Amounts work;            // forward and backward
  double work_ns = 0;      // how long the device was busy with that

  Figures& operator+=(const Figures& other);
};

Figures figures_of(const Layer& layer);

// Operators were recorded, or what a GPU did.
inline bool has_activities(const RunInfo& run) { return run.ops || !run.device.empty(); }

// Something of the model ran.
bool was_called(const Profile& profile);

// An imported trace without modules' calls: phases and the operators in them stand for layers.
bool has_phases_for_layers(const Profile& profile);

// Operators were counted, and something came of it.
bool has_amounts(const Profile& profile);
// Were operators counted? They may be listed by their times alone.
bool has_counts(const Profile& profile);

// The GPU's times: of kernels, or by CUDA events where there is nothing else.
struct GpuTimes {
  double forward_ns = 0;
  double backward_ns = 0;
  double total_ns = 0;
};
GpuTimes gpu_times(const Profile& profile, const Figures& figures);

// What a layer took in all: of the GPU where one was recorded, else of the host.
double leading_ns(const Profile& profile, const Figures& figures);

// What shares are shares of: the mean wall time of the recorded steps. Without any, the sum of all
// that was measured.
double share_base_ns(const Profile& profile);

}  // namespace layertrace::report
