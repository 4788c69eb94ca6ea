// A Profile as text, every field of it, numbers to the last bit: two are the same where their texts
// are.
#pragma once

#include <fmt/format.h>

#include <string>

#include <layertrace/profile.h>

namespace layertrace::test {

inline std::string stat_text(const Stat& stat) {
  return fmt::format("{:a} {:a} {:a} {:a} {:a}", stat.mean, stat.min, stat.max, stat.median,
                     stat.stdev);
}

inline std::string phases_text(const std::array<PhaseStats, kPhaseCount>& phases) {
  std::string text;
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    const PhaseStats& stats = phases[p];
    text += fmt::format("  {}\n", phase_name(static_cast<Phase>(p)));
    const std::pair<const char*, const Stat*> all[] = {
        {"calls", &stats.calls},
        {"host_ns", &stats.host_ns},
        {"self_host_ns", &stats.self_host_ns},
        {"activities", &stats.activities},
        {"activity_ns", &stats.activity_ns},
        {"self_activity_ns", &stats.self_activity_ns},
        {"busy_ns", &stats.busy_ns},
    };
    for (const auto& [name, stat] : all) text += fmt::format("    {} {}\n", name, stat_text(*stat));
  }
  return text;
}

inline std::string causes_text(const std::vector<Unattributed>& causes) {
  std::string text;
  for (const Unattributed& each : causes) {
    text += fmt::format("  '{}' {} {}\n", each.cause, each.count, each.ns);
    for (const auto& name : each.names) text += fmt::format("    '{}' {}\n", name.name, name.count);
  }
  return text;
}

inline std::string profile_text(const Profile& profile) {
  std::string text;
  for (const Layer& layer : profile.layers) {
    text +=
        fmt::format("layer '{}' '{}' '{}' parent {} calls {:a} ran {} registered {} shared '{}'\n",
                    layer.path, layer.name, layer.type, layer.parent, layer.calls, layer.ran,
                    layer.registered, layer.shared_with);
    for (const int child : layer.children) text += fmt::format("  child {}\n", child);
    text += phases_text(layer.phases);
  }
  for (const Step& step : profile.steps) {
    text += fmt::format("step {} {} {}", step.index, step.start_ns, step.wall_ns);
    for (const std::uint64_t ns : step.phase_ns) text += fmt::format(" {}", ns);
    text += "\n";
  }
  text += "outside\n" + phases_text(profile.outside);
  const Health& health = profile.health;
  text += fmt::format(
      "health {:a} {} {} nodes {} emitted {} recorded {} dropped {} cut {} {} thrown {}\n",
      health.attributed_share, health.activities, health.activity_ns, health.nodes, health.emitted,
      health.recorded, health.dropped, health.cut_scopes, health.cut, health.thrown_scopes);
  text += fmt::format("costs {:a} {:a} {} {:a}\n", health.scope_cost_ns, health.op_cost_ns,
                      health.writer_cpu_ns, health.tracing_share);
  text += "unattributed\n" + causes_text(health.unattributed);
  text += "unattributed nodes\n" + causes_text(health.unattributed_nodes);
  for (const std::string& note : health.notes) text += fmt::format("note '{}'\n", note);
  const RunInfo& run = profile.run;
  text += fmt::format(
      "run '{}' {} '{}' '{}' '{}' '{}' {} {} {} '{}' '{}' '{}' '{}' '{}' '{}' '{}' {} '{}'\n",
      run.layertrace_version, run.format_version, run.torch_version, run.host, run.os, run.cpu,
      run.cpu_count, run.memory_bytes, run.pid, run.program, run.name, run.command, run.commit,
      run.python_version, run.clock, run.created, run.ops, run.simulated);
  return text;
}

inline std::string amounts_text(const Amounts& amounts) {
  std::string text = fmt::format(
      "{:a} {:a} {:a} {:a} {:a} {:a} {:a}", amounts.flops, amounts.aux_flops, amounts.flops_causal,
      amounts.bytes, amounts.activations, amounts.fvcore_flops, amounts.fvcore_activations);
  for (const double flops : amounts.flops_by_format) text += fmt::format(" {:a}", flops);
  return text;
}

// What was counted.
inline std::string counted_text(const Profile& profile) {
  std::string text = fmt::format("counted {:a}\n", profile.counted_share);
  const auto add_phases = [&](const std::array<PhaseStats, kPhaseCount>& phases) {
    for (const PhaseStats& stats : phases) {
      text += fmt::format("  {} self {}\n", amounts_text(stats.amounts),
                          amounts_text(stats.self_amounts));
    }
  };
  for (const Layer& layer : profile.layers) {
    text += fmt::format("layer '{}'\n", layer.path);
    for (const CallShapes& each : layer.shapes)
      text += fmt::format("  '{}' to '{}' {:a}\n", each.input, each.output, each.calls);
    add_phases(layer.phases);
  }
  text += "outside\n";
  add_phases(profile.outside);
  for (const Operator& op : profile.operators) {
    text += fmt::format("operator '{}' {:a} {:a} {}\n", op.name, op.calls, op.uncounted,
                        amounts_text(op.amounts));
    for (const Operator::Use& use : op.uses) {
      text += fmt::format("  {} {} {:a} {}\n", use.layer, static_cast<int>(use.phase), use.calls,
                          amounts_text(use.amounts));
    }
  }
  return text;
}

}  // namespace layertrace::test
