// The recorded steps; of very many every second, every fourth…
#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

// Of one device, or of all that there are.
TableValue of_devices(const Step& step, std::uint64_t DeviceStep::*figure, int device = -1) {
  bool found = false;
  std::uint64_t sum = 0;
  for (const DeviceStep& each : step.devices) {
    if (device >= 0 && std::cmp_not_equal(each.device, device)) continue;
    found = true;
    sum += each.*figure;
  }
  return found ? cell(sum) : TableValue();
}

void add_devices(Sheet<Step>& sheet, const std::string& prefix, int device) {
  const auto add = [&](const char* name, std::uint64_t DeviceStep::*figure) {
    sheet.integer(fmt::format("{}_{}_ns", prefix, name), "ns",
                  [=](const Step& step) { return of_devices(step, figure, device); });
  };
  add("busy", &DeviceStep::busy_ns);
  add("idle", &DeviceStep::idle_ns);
  add("exposed_copy", &DeviceStep::exposed_copy_ns);
}

}  // namespace

Table steps_table(const Profile& profile, const TableOptions& /*options*/) {
  Sheet<Step> sheet("steps", profile.steps);
  sheet.integer("index", "", [](const Step& step) { return step.index; })
      .integer("start_ns", "ns", [](const Step& step) { return step.start_ns; })
      .detail()
      .integer("wall_ns", "ns", [](const Step& step) { return step.wall_ns; });
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    sheet.integer(fmt::format("{}_ns", phase_name(static_cast<Phase>(i))), "ns",
                  [=](const Step& step) { return step.phase_ns[i]; });
  }
  add_devices(sheet, "gpu", -1);
  std::set<std::uint32_t> devices;
  for (const Step& step : profile.steps) {
    for (const DeviceStep& device : step.devices) devices.insert(device.device);
  }
  if (devices.size() > 1) {
    for (const std::uint32_t device : devices)
      add_devices(sheet, fmt::format("gpu{}", device), static_cast<int>(device));
  }
  return sheet.take();
}

}  // namespace layertrace::tables
