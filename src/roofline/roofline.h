// How far is a layer from what the device can do?
//
// What ran took `busy_ns`. It could not have taken less than its FLOPs at the device's peak, nor
// less than its bytes at the memory's bandwidth: the longer of the two is the roof that it is
// under. The share of the busy time that this explains says how near to the roof it ran; the rest
// is what no roof explains (launch gaps inside, waiting, poor kernels, a tail of idle
// multiprocessors).
//
//   const Placement at = place({.flops = 4e9, .bytes = 6e6, .busy_ns = 25'000},
//                              {.flops_per_s = 312e12, .bytes_per_s = 2039e9});
//   at.roof == Roof::kCompute; at.share == 0.51; at.unexplained_ns == 12'179
//
// A share above 1 is told as it is: a peak that can be passed is wrong, and hiding that would hide
// it for every other layer, too.
#pragma once

#include <algorithm>
#include <array>

#include <layertrace/profile.h>

#include "roofline/device_peaks.h"

namespace layertrace::roofline {

struct Work {
  double flops = 0;
  double bytes = 0;    // read and written
  double busy_ns = 0;  // the union of the kernels' intervals, not their sum
};

// 0 for what is not known.
struct Roofs {
  double flops_per_s = 0;
  double bytes_per_s = 0;

  // FLOP per byte from which on the peak is the limit and not the memory; 0 where one of the two is
  // not known.
  constexpr double ridge() const noexcept {
    return bytes_per_s > 0 ? flops_per_s / bytes_per_s : 0;
  }
};

inline Roofs roofs_of(const DevicePeaks& peaks, Dtype dtype) noexcept {
  return {.flops_per_s = peaks.peak(dtype), .bytes_per_s = peaks.bytes_per_s};
}

using layertrace::Roof;
using layertrace::roof_name;

struct Placement {
  double flops_per_s = 0;  // achieved
  double bytes_per_s = 0;  // achieved
  double intensity = 0;    // FLOP per byte; 0 without bytes
  double ridge = 0;
  Roof roof = Roof::kNone;
  double attainable_flops_per_s = 0;  // at this intensity, under the roofs that are known
  double least_ns = 0;                // what the roof allows
  double share = 0;                   // of the roof: least_ns / busy_ns. Above 1: a peak is wrong
  double unexplained_ns = 0;          // busy time that neither roof explains
  double compute_share = 0;           // of the peak, whatever the roof; 0 where it is not known
};

constexpr Placement place(const Work& work, const Roofs& roofs) noexcept {
  constexpr double kNsPerS = 1e9;
  const auto over = [](double value, double by) { return by > 0 ? value / by : 0; };
  const double compute_ns = over(work.flops, roofs.flops_per_s) * kNsPerS;
  const double memory_ns = over(work.bytes, roofs.bytes_per_s) * kNsPerS;

  Placement at;
  at.flops_per_s = over(work.flops, work.busy_ns) * kNsPerS;
  at.bytes_per_s = over(work.bytes, work.busy_ns) * kNsPerS;
  at.intensity = over(work.flops, work.bytes);
  at.ridge = roofs.ridge();
  at.least_ns = std::max(compute_ns, memory_ns);
  at.attainable_flops_per_s = over(work.flops, at.least_ns) * kNsPerS;
  at.share = over(at.least_ns, work.busy_ns);
  at.unexplained_ns = std::max(work.busy_ns - at.least_ns, 0.0);
  at.compute_share = over(compute_ns, work.busy_ns);
  if (at.share > 0) at.roof = compute_ns >= memory_ns ? Roof::kCompute : Roof::kMemory;
  return at;
}

// FLOPs by the format that they were done in.
using FlopsByDtype = std::array<double, kDtypeCount>;

// The peak of a mixture: all FLOPs over the least time that they can take one format after the
// other. 0 if there are none, or for one of them no peak is known.
double mixed_peak(const FlopsByDtype& flops, const DevicePeaks& peaks) noexcept;

// How much of the device's peak a training step used.
struct Utilization {
  double mfu = 0;  // by the model's own FLOPs: what the step was for
  double hfu = 0;  // by all that were done: what was computed again in the backward counts too
};

// `model_flops` are forward and backward without recomputation. 0 where peak or time is.
constexpr Utilization utilization(double model_flops, double recompute_flops,
                                  double peak_flops_per_s, double step_ns) noexcept {
  const double possible = peak_flops_per_s * step_ns / 1e9;
  if (!(possible > 0)) return {};
  return {.mfu = model_flops / possible, .hfu = (model_flops + recompute_flops) / possible};
}

}  // namespace layertrace::roofline
