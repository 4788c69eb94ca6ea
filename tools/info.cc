#include "info.h"

#include <fmt/format.h>

#include <string_view>

namespace layertrace::tools {
namespace {

std::string bytes(std::uint64_t count) {
  constexpr double kKilo = 1024;
  auto value = static_cast<double>(count);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < kKilo) break;
    value /= kKilo;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", value, *unit == 'B' ? 0 : 1, unit);
}

void line(std::string& out, std::string_view key, const std::string& value) {
  if (!value.empty()) out += fmt::format("{:<12}{}\n", key, value);
}

// What the device can do at most, by whom that is said.
std::string peaks(const DeviceInfo& device) {
  if (device.origin.empty()) return "not known";
  std::string out;
  for (std::size_t i = 0; i < device.flops_per_s.size(); ++i) {
    if (device.flops_per_s[i] <= 0) continue;
    out += fmt::format("{} {:.4g} TFLOP/s, ", format_name(i), device.flops_per_s[i] / 1e12);
  }
  if (device.bytes_per_s > 0) out += fmt::format("memory {:.4g} GB/s, ", device.bytes_per_s / 1e9);
  return fmt::format("{}{} ({})", out, device.origin, device.name);
}

std::string counted(const TraceInfo& info) {
  if (info.counted_operators == 0) return "no step: neither FLOPs nor shapes nor memory";
  const std::string missing = info.uncounted_operators == 0 ? ""
                                                            : fmt::format(" ({} without a formula)",
                                                                          info.uncounted_operators);
  return fmt::format("{} of {} steps: {} operators{}, {:.4g} GFLOPs, {} blocks of memory",
                     info.counted_steps, info.steps, info.counted_operators, missing,
                     info.flops / 1e9, info.memory_events);
}

}  // namespace

std::string describe(const TraceInfo& info) {
  std::string out;
  if (info.cut) {
    out +=
        "This trace was cut off: the program ended before the session did. It holds what was "
        "written.\n\n";
  }
  line(out, "made by",
       fmt::format("layertrace {}, format {}", info.run.layertrace_version,
                   info.run.format_version));
  line(out, "program", fmt::format("{} (pid {})", info.run.program, info.run.pid));
  line(out, "name", info.run.name);
  line(out, "command", info.run.command);
  line(out, "commit", info.run.commit);
  line(out, "created", info.run.created);
  line(out, "torch", info.run.torch_version);
  line(out, "python", info.run.python_version);
  if (!info.run.host.empty()) line(out, "host", fmt::format("{}, {}", info.run.host, info.run.os));
  if (!info.run.cpu.empty()) {
    line(out, "processor",
         fmt::format("{} ({} cores, {})", info.run.cpu, info.run.cpu_count,
                     bytes(info.run.memory_bytes)));
  }
  line(out, "clock", info.run.clock);
  if (!info.run.simulated.empty()) {
    line(out, "simulated",
         fmt::format("ran on a {} (simgpu): no time is a real GPU's", info.run.simulated));
  }
  line(out, "size", fmt::format("{} in {} packets", bytes(info.file_bytes), info.packets));
  line(out, "length",
       fmt::format("{:.3f} s", static_cast<double>(info.end_ns - info.start_ns) / 1e9));
  line(out, "steps", std::to_string(info.steps));
  line(out, "layers", std::to_string(info.layers));
  line(out, "scopes",
       fmt::format("{} module calls, {} backward spans, {} autograd nodes", info.scopes,
                   info.backward_spans, info.nodes));
  line(out, "activities",
       info.run.ops ? fmt::format("{} operators", info.activities) : "operators were not recorded");
  const bool has_gpu = !info.run.device.empty() || info.kernels + info.copies != 0;
  line(out, "GPU",
       has_gpu ? fmt::format("{}: {} kernels, {} copies and sets, asked for by {} calls",
                             info.run.device.empty() ? "unnamed" : info.run.device, info.kernels,
                             info.copies, info.launches)
               : "none was recorded");
  line(out, "peaks", peaks(info.device));
  line(out, "counted", counted(info));
  for (const MetricValue& metric : info.metrics) {
    const MetricUnit unit = shown_unit(metric.info, metric.value.value_or(0));
    line(
        out, "metric",
        fmt::format("{}: {:.6g}{}{}", metric.info.name.empty() ? metric.info.key : metric.info.name,
                    metric.value.value_or(0) / unit.size, unit.name.empty() ? "" : " ", unit.name));
  }
  for (const TraceInfo::Thread& thread : info.threads) {
    line(out, "thread",
         fmt::format("{} ({}): {} module calls, {} activities", thread.tid, thread.name,
                     thread.scopes, thread.activities));
  }
  return out;
}

}  // namespace layertrace::tools
