#include "report/device_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "report/numbers.h"

namespace layertrace::report {
namespace {

constexpr std::size_t kIdleShown = 3;

// The means of the steps that are in the list.
std::map<std::uint32_t, DeviceStep> sums_by_device(const Profile& profile) {
  std::map<std::uint32_t, DeviceStep> sums;
  for (const Step& step : profile.steps) {
    for (const DeviceStep& device : step.devices) {
      DeviceStep& sum = sums[device.device];
      sum.busy_ns += device.busy_ns;
      sum.idle_ns += device.idle_ns;
      sum.exposed_copy_ns += device.exposed_copy_ns;
      sum.exposed_communication_ns += device.exposed_communication_ns;
    }
  }
  return sums;
}

void add_devices(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  const auto steps = static_cast<double>(profile.steps.size());
  for (const auto& [number, sum] : sums_by_device(profile)) {
    const auto whole_ns = static_cast<double>(sum.busy_ns + sum.idle_ns);
    const auto time_and_share = [&](std::uint64_t ns) {
      const auto value = static_cast<double>(ns);
      return fmt::format("{} ({})", format_time(value / steps, glyphs),
                         format_share(whole_ns > 0 ? value / whole_ns : 0));
    };
    out.push_back({fmt::format(
        "Of a step GPU {} was busy for {} and idle for {}; copying while no kernel ran: {}.",
        number, time_and_share(sum.busy_ns), time_and_share(sum.idle_ns),
        time_and_share(sum.exposed_copy_ns))});
    if (sum.exposed_communication_ns != 0) {
      out.push_back({fmt::format("Communicating while no other kernel ran, GPU {}: {}.", number,
                                 time_and_share(sum.exposed_communication_ns))});
    }
  }
}

void add_idle(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  if (profile.idle.empty()) return;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(profile.idle.size(), kIdleShown); ++i) {
    const Idle& idle = profile.idle[i];
    parts.push_back(fmt::format("{} in {} {}", idle_cause_name(idle.cause),
                                place_name(profile, idle.layer, idle.phase, glyphs),
                                format_time(idle.ns, glyphs)));
  }
  out.push_back(
      {fmt::format("Idle longest, by cause and where the host was: {}.", fmt::join(parts, ", "))});
}

// How far the two ways to time a GPU differ, where nothing is around a layer's own work.
void add_difference(const Profile& profile, const Glyphs& glyphs, std::vector<Sentence>& out) {
  if (profile.health.gpu.timing != "both") return;
  double event_ns = 0;
  double busy_ns = 0;
  for (const Layer& layer : profile.layers) {
    if (!layer.children.empty()) continue;
    for (const PhaseStats& phase : layer.phases) {
      if (phase.event_ns.mean == 0) continue;
      event_ns += phase.event_ns.mean;
      busy_ns += phase.busy_ns.mean;
    }
  }
  if (event_ns == 0 || busy_ns == 0) return;
  out.push_back({fmt::format(
      "By CUDA events the innermost layers took {} of a step, by their kernels {}: {} {}.",
      format_time(event_ns, glyphs), format_time(busy_ns, glyphs),
      format_share(std::abs(event_ns - busy_ns) / busy_ns), event_ns < busy_ns ? "less" : "more")});
}

}  // namespace

std::string place_name(const Profile& profile, int layer, Phase phase, const Glyphs& glyphs) {
  if (layer < 0) return fmt::format("({})", phase_name(phase));
  const Layer& found = profile.layers[static_cast<std::size_t>(layer)];
  return fmt::format("{} {}", clean(found.path.empty() ? found.name : found.path, glyphs.ascii),
                     phase_name(phase));
}

std::vector<Sentence> device_sentences(const Profile& profile, const Glyphs& glyphs) {
  std::vector<Sentence> out;
  if (has_events_only(profile)) {
    out.push_back(
        {"The GPU's times are by CUDA events around each layer's work on its stream: there are no "
         "kernels without CUPTI."});
  }
  add_devices(profile, glyphs, out);
  add_idle(profile, glyphs, out);
  add_difference(profile, glyphs, out);
  return out;
}

}  // namespace layertrace::report
