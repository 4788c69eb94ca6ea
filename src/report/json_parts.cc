#include "report/json_parts.h"

#include <cmath>
#include <cstdint>

namespace layertrace::report {

Json number(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53: whole doubles up to here are exact
  const bool whole = std::abs(value) <= kExact && value == std::trunc(value);
  if (whole) return static_cast<std::int64_t>(value);
  return value;  // NaN and infinities, which JSON lacks, are written as null
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json path_json(const Profile& profile, int layer) {
  if (layer < 0) return nullptr;
  return profile.layers[static_cast<std::size_t>(layer)].path;
}

Json kernel_json(const Profile& profile, const Kernel& kernel) {
  Json out = Json::object();
  out["name"] = kernel.name;
  out["short_name"] = kernel.short_name;
  out["kind"] = kernel.kind;
  out["count"] = kernel.count;
  out["ns"] = kernel.ns;
  out["min_ns"] = kernel.min_ns;
  out["max_ns"] = kernel.max_ns;
  out["bytes"] = kernel.bytes;
  out["grid"] = kernel.grid;
  out["block"] = kernel.block;
  out["registers"] = kernel.registers;
  out["shared_bytes"] = kernel.shared_bytes;
  out["occupancy"] = number(kernel.occupancy);
  const auto add_outside = [&profile](Json& to, const auto& of) {
    if (profile.run.imported_from.empty()) return;
    to["outside_count"] = of.outside_count;
    to["outside_ns"] = of.outside_ns;
  };
  Json& uses = out["uses"] = Json::array();
  for (const Kernel::Use& use : kernel.uses) {
    Json& added = uses.emplace_back(Json{{"path", path_json(profile, use.layer)},
                                         {"phase", phase_name(use.phase)},
                                         {"count", use.count},
                                         {"ns", use.ns}});
    add_outside(added, use);
  }
  add_outside(out, kernel);
  return out;
}

Json run_json(const RunInfo& run) {
  Json out = Json::object();
  out["layertrace_version"] = run.layertrace_version;
  out["format_version"] = run.format_version;
  out["torch_version"] = run.torch_version;
  out["host"] = run.host;
  out["os"] = run.os;
  out["cpu"] = run.cpu;
  out["cpu_count"] = run.cpu_count;
  out["memory_bytes"] = run.memory_bytes;
  out["pid"] = run.pid;
  out["program"] = run.program;
  out["name"] = run.name;
  out["command"] = run.command;
  out["commit"] = run.commit;
  out["python_version"] = run.python_version;
  out["clock"] = run.clock;
  out["created"] = run.created;
  out["ops"] = run.ops;
  if (run.summary) out["summary"] = true;
  out["device"] = run.device;
  out["simulated"] = run.simulated;
  if (!run.imported_from.empty()) out["imported_from"] = run.imported_from;
  if (run.rank >= 0) out["rank"] = run.rank;
  if (run.world_size > 0) out["world_size"] = run.world_size;
  return out;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace layertrace::report
