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
  line(out, "created", info.run.created);
  line(out, "torch", info.run.torch_version);
  line(out, "host", fmt::format("{}, {}", info.run.host, info.run.os));
  line(out, "processor",
       fmt::format("{} ({} cores, {})", info.run.cpu, info.run.cpu_count,
                   bytes(info.run.memory_bytes)));
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
  for (const TraceInfo::Thread& thread : info.threads) {
    line(out, "thread",
         fmt::format("{} ({}): {} module calls, {} activities", thread.tid, thread.name,
                     thread.scopes, thread.activities));
  }
  return out;
}

}  // namespace layertrace::tools
