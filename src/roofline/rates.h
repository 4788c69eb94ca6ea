// What the layers of a Profile achieved, and how far that is from what its device can do: the
// arithmetic of roofline.h, over the figures of profile.h.
#pragma once

#include <layertrace/profile.h>

#include "roofline/device_peaks.h"
#include "roofline/roofline.h"

namespace layertrace::roofline {

DeviceInfo device_info(const DevicePeaks& peaks);

// By the name of the GPU that was recorded; with an empty origin where no table knows it.
DeviceInfo find_device_info(const RunInfo& run);

// The peak of a mixture, of one device. 0 if there are no FLOPs, or for one format no peak is
// known.
double mixed_peak(const Amounts& amounts, const DeviceInfo& device) noexcept;

// `busy_ns` of all devices together.
Placement place(const Amounts& amounts, double busy_ns, const DeviceInfo& device) noexcept;

// How long a device was busy with it: by its activities; where there are none, by CUDA events.
double busy_ns(const PhaseStats& stats) noexcept;

// What a step computed, layers and what is outside of them.
struct StepWork {
  Amounts model;      // forward, loss and backward
  Amounts recompute;  // again, in the backward
};
StepWork step_work(const Profile& profile) noexcept;

// Fills in the rates of all phases, and the step's utilisation, in a profile that has its amounts
// and its device.
void fill_rates(Profile& profile);

}  // namespace layertrace::roofline
