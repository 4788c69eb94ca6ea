#include "roofline/rates.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace layertrace {

std::string_view format_name(std::size_t format) noexcept {
  if (format >= roofline::kDtypeCount) return "other";
  return roofline::dtype_name(static_cast<roofline::Dtype>(format));
}

namespace roofline {
namespace {

// Of several devices in one process each has its part of the work.
std::uint64_t devices_in_use(const Profile& profile) {
  std::set<std::uint32_t> numbers;
  for (const Step& step : profile.steps) {
    for (const DeviceStep& device : step.devices) {
      if (device.busy_ns != 0) numbers.insert(device.device);
    }
  }
  return std::max<std::uint64_t>(1, numbers.size());
}

Rates rates_of(const PhaseStats& stats, const DeviceInfo& device) noexcept {
  if (stats.amounts.empty()) return {};
  const Placement at = place(stats.amounts, busy_ns(stats), device);
  return {.flops_per_s = at.flops_per_s,
          .bytes_per_s = at.bytes_per_s,
          .intensity = at.intensity,
          .roof = at.roof,
          .roof_share = at.share,
          .unexplained_ns = at.roof == Roof::kNone ? 0 : at.unexplained_ns};
}

void add_work(StepWork& work, const std::array<PhaseStats, kPhaseCount>& phases) noexcept {
  const auto amounts = [&](Phase phase) -> const Amounts& {
    return phases[static_cast<std::size_t>(phase)].amounts;
  };
  work.model += amounts(Phase::kForward);
  work.model += amounts(Phase::kLoss);
  work.model += amounts(Phase::kBackward);
  work.recompute += amounts(Phase::kRecompute);
}

}  // namespace

DeviceInfo device_info(const DevicePeaks& peaks) {
  DeviceInfo info;
  info.name = peaks.name;
  info.origin = origin_name(peaks.origin);
  for (std::size_t i = 0; i < kDtypeCount; ++i)
    info.flops_per_s[i] = peaks.peak(static_cast<Dtype>(i));
  info.bytes_per_s = peaks.bytes_per_s;
  info.source = peaks.source;
  return info;
}

DeviceInfo find_device_info(const RunInfo& run) {
  if (run.device.empty()) return {};
  if (const auto peaks = find_device_peaks(run.device)) return device_info(*peaks);
  DeviceInfo unknown;
  unknown.name = run.device;
  return unknown;
}

double mixed_peak(const Amounts& amounts, const DeviceInfo& device) noexcept {
  if (amounts.flops_by_format.back() > 0) return 0;  // of no format that a device has a peak for
  DevicePeaks peaks;
  FlopsByDtype flops{};
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    peaks.flops_per_s[i].matrix = device.flops_per_s[i];
    flops[i] = amounts.flops_by_format[i];
  }
  return mixed_peak(flops, peaks);
}

Placement place(const Amounts& amounts, double busy_ns, const DeviceInfo& device) noexcept {
  const auto count = static_cast<double>(device.count);
  return place({.flops = amounts.flops, .bytes = amounts.bytes, .busy_ns = busy_ns},
               {.flops_per_s = mixed_peak(amounts, device) * count,
                .bytes_per_s = device.bytes_per_s * count});
}

double busy_ns(const PhaseStats& stats) noexcept {
  return stats.busy_ns.mean > 0 ? stats.busy_ns.mean : stats.event_ns.mean;
}

StepWork step_work(const Profile& profile) noexcept {
  StepWork work;
  for (const Layer& layer : profile.layers) {
    if (layer.parent < 0) add_work(work, layer.phases);
  }
  add_work(work, profile.outside);
  return work;
}

void fill_rates(Profile& profile) {
  profile.device.count = devices_in_use(profile);
  for (Layer& layer : profile.layers) {
    for (PhaseStats& phase : layer.phases) phase.rates = rates_of(phase, profile.device);
  }
  for (PhaseStats& phase : profile.outside) phase.rates = rates_of(phase, profile.device);
  const StepWork work = step_work(profile);
  const double peak =
      mixed_peak(work.model, profile.device) * static_cast<double>(profile.device.count);
  const Utilization used =
      utilization(work.model.flops, work.recompute.flops, peak, profile.step_ns.mean);
  profile.mfu = used.mfu;
  profile.hfu = used.hfu;
}

}  // namespace roofline
}  // namespace layertrace
