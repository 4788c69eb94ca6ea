// layers_json(): a Profile for programs. Every key is described in docs/json.md.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/json.h"
#include "report/json_amounts.h"
#include "report/json_parts.h"
#include "report/text.h"

namespace layertrace {
namespace {

using report::dump;
using report::dump_lines;
using report::Json;
using report::number;
using report::text_or_null;

// The figures of a phase, each as one of its statistics.
void put_figures(Json& out, const PhaseStats& stats, double Stat::*field) {
  out["calls"] = number(stats.calls.*field);
  out["host_ns"] = number(stats.host_ns.*field);
  out["self_host_ns"] = number(stats.self_host_ns.*field);
  out["activities"] = number(stats.activities.*field);
  out["activity_ns"] = number(stats.activity_ns.*field);
  out["self_activity_ns"] = number(stats.self_activity_ns.*field);
  out["busy_ns"] = number(stats.busy_ns.*field);
  out["copies"] = number(stats.copies.*field);
  out["launches"] = number(stats.launches.*field);
  out["event_ns"] = number(stats.event_ns.*field);
  out["idle_ns"] = number(stats.idle_ns.*field);
}

Json phase_json(const PhaseStats& stats) {
  Json out = Json::object();
  put_figures(out, stats, &Stat::mean);
  put_figures(out["min"], stats, &Stat::min);
  put_figures(out["max"], stats, &Stat::max);
  put_figures(out["median"], stats, &Stat::median);
  put_figures(out["stdev"], stats, &Stat::stdev);
  report::put_amounts(out, stats);
  return out;
}

void put_phases(Json& out, const std::array<PhaseStats, kPhaseCount>& phases, bool always_both) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    const bool always = always_both && (phase == Phase::kForward || phase == Phase::kBackward);
    if (always || !phases[i].empty()) out[std::string(phase_name(phase))] = phase_json(phases[i]);
  }
}

Json layer_json(const Profile& profile, const Layer& layer) {
  Json out = Json::object();
  out["path"] = layer.path;
  out["name"] = layer.name;
  out["type"] = layer.type;
  out["parent"] = layer.parent < 0 ? Json(nullptr) : Json(profile.layers[layer.parent].path);
  out["calls"] = number(layer.calls);
  out["ran"] = layer.ran;
  out["registered"] = layer.registered;
  out["shared_with"] = text_or_null(layer.shared_with);
  put_phases(out, layer.phases, true);
  report::put_facts(out, profile, layer);
  return out;
}

Json step_json(const Step& step) {
  Json phases = Json::object();
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    phases[std::string(phase_name(static_cast<Phase>(i)))] = step.phase_ns[i];
  }
  Json devices = Json::array();
  for (const DeviceStep& device : step.devices) {
    devices.push_back({{"device", device.device},
                       {"busy_ns", device.busy_ns},
                       {"idle_ns", device.idle_ns},
                       {"exposed_copy_ns", device.exposed_copy_ns},
                       {"exposed_communication_ns", device.exposed_communication_ns}});
  }
  return {{"index", step.index},
          {"start_ns", step.start_ns},
          {"wall_ns", step.wall_ns},
          {"phases", std::move(phases)},
          {"devices", std::move(devices)}};
}

// Names and causes are keys here. Two that differ only in bytes that are not UTF-8 become one key,
// with their sum.
void add_to(Json& object, const std::string& key, std::uint64_t count) {
  Json& value = object[key];
  value = count + (value.is_null() ? 0 : value.get<std::uint64_t>());
}

Json unattributed_json(const std::vector<Unattributed>& groups) {
  Json out = Json::object();
  for (const Unattributed& group : groups) {
    Json& cause = out[report::replace_invalid_utf8(group.cause)];
    add_to(cause, "count", group.count);
    add_to(cause, "ns", group.ns);
    Json& names = cause["names"];
    if (names.is_null()) names = Json::object();
    for (const auto& name : group.names)
      add_to(names, report::replace_invalid_utf8(name.name), name.count);
  }
  return out;
}

Json gpu_json(const GpuHealth& gpu) {
  return {{"source", gpu.source},
          {"records", gpu.records},
          {"dropped", gpu.dropped},
          {"buffers_lost", gpu.buffers_lost},
          {"no_buffer", gpu.no_buffer},
          {"unknown", gpu.unknown},
          {"untimed", gpu.untimed},
          {"reversed", gpu.reversed},
          {"clock_set", gpu.clock_set},
          {"early", gpu.early},
          {"outside_steps", gpu.outside_steps},
          {"event_pairs", gpu.event_pairs},
          {"events_missed", gpu.events_missed},
          {"events_capturing", gpu.events_capturing},
          {"earlier_graphs", gpu.earlier_graphs}};
}

Json idle_json(const Profile& profile, const Idle& idle) {
  return {{"path", report::path_json(profile, idle.layer)},
          {"phase", phase_name(idle.phase)},
          {"cause", idle_cause_name(idle.cause)},
          {"ns", number(idle.ns)},
          {"gaps", number(idle.gaps)}};
}

// Of an imported trace; null for others.
Json source_json(const SourceEvents& source) {
  if (source.events == 0) return nullptr;
  Json left_out = Json::object();
  for (const Unattributed& group : source.left_out)
    add_to(left_out, report::replace_invalid_utf8(group.cause), group.count);
  return {{"events", source.events},
          {"kept", source.kept},
          {"merged", source.merged},
          {"left_out", std::move(left_out)}};
}

Json health_json(const Profile& profile) {
  const Health& health = profile.health;
  Json out = Json::object();
  out["attributed_share"] = number(health.attributed_share);
  out["activities"] = health.activities;
  out["activity_ns"] = health.activity_ns;
  out["unattributed"] = unattributed_json(health.unattributed);
  out["inferred"] = health.inferred;
  out["inferred_ns"] = health.inferred_ns;
  out["nodes"] = health.nodes;
  out["unattributed_nodes"] = unattributed_json(health.unattributed_nodes);
  out["emitted"] = health.emitted;
  out["recorded"] = health.recorded;
  out["dropped"] = health.dropped;
  out["cut"] = health.cut;
  out["cut_scopes"] = health.cut_scopes;
  out["thrown_scopes"] = health.thrown_scopes;
  out["scope_cost_ns"] = number(health.scope_cost_ns);
  out["op_cost_ns"] = number(health.op_cost_ns);
  out["writer_cpu_ns"] = health.writer_cpu_ns;
  out["tracing_share"] = number(health.tracing_share);
  out["gpu"] = gpu_json(health.gpu);
  out["steps"] = profile.step_count;
  out["steps_marked"] = profile.steps_marked;
  out["notes"] = health.notes;
  out["device"] = profile.run.device;
  out["cupti_version"] = health.gpu.cupti_version;
  out["timing"] = health.gpu.timing;
  out["simulated"] = profile.run.simulated;
  out["rejected"] = unattributed_json(health.rejected);
  out["source"] = source_json(health.source);
  return out;
}

}  // namespace

std::string layers_json(const Profile& profile) {
  Json outside = Json::object();
  put_phases(outside, profile.outside, false);
  std::vector<const Operator*> uncounted;
  for (const Operator& op : profile.operators) {
    if (op.uncounted > 0) uncounted.push_back(&op);
  }
  std::string out = "{\"layers\":";
  out += dump_lines(profile.layers, [&](const Layer& layer) { return layer_json(profile, layer); });
  out += ",\n\"steps\":" + dump_lines(profile.steps, step_json);
  out += ",\n\"health\":" + dump(health_json(profile));
  out += ",\n\"phases\":" + dump(outside);
  out += ",\n\"run\":" + dump(report::run_json(profile.run));
  out += ",\n\"kernels\":" + dump_lines(profile.kernels, [&](const Kernel& kernel) {
           return report::kernel_json(profile, kernel);
         });
  out += ",\n\"idle\":" +
         dump_lines(profile.idle, [&](const Idle& idle) { return idle_json(profile, idle); });
  out += ",\n\"device\":" + dump(report::device_json(profile.device));
  out += ",\n\"mfu\":" + dump(report::known(profile.mfu));
  out += ",\n\"hfu\":" + dump(report::known(profile.hfu));
  out += ",\n\"counted_share\":" + dump(number(profile.counted_share));
  out += ",\n\"memory\":" + dump(report::memory_json(profile));
  out += ",\n\"uncounted\":" + dump_lines(uncounted, [&](const Operator* op) {
           return report::uncounted_json(profile, *op);
         });
  out += ",\n\"operators\":" + dump_lines(profile.operators, report::operator_json);
  out += ",\n\"metrics\":" + dump_lines(profile.metrics, [](const MetricValue& metric) {
           return report::metric_json(metric.info, metric.value);
         });
  return out + "}\n";
}

}  // namespace layertrace
