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

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace layertrace::report
