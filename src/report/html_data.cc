#include "report/html_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/trace.h>

#include "report/cards/units.h"
#include "report/device_sentences.h"
#include "report/figures.h"
#include "report/layer_times.h"
#include "report/ledger.h"
#include "report/numbers.h"
#include "report/text.h"
#include "roofline/rates.h"

namespace layertrace::report {
namespace {

constexpr std::size_t kNamesTold = 8;  // of what has no layer

std::string shown(std::string_view text) { return clean(text, false); }

// Times in whole nanoseconds and rates to six digits: a page of 5,000 layers is to open at once.
Json rounded(double value) { return number(std::round(value)); }

// ---- The head of the page ----

std::string title_of(const Profile& profile, const ReportOptions& options) {
  if (!options.title.empty()) return shown(options.title);
  std::string types;
  for (const Layer& layer : profile.layers) {
    if (layer.parent >= 0 || !layer.registered) continue;
    types += fmt::format("{}{}", types.empty() ? "" : ", ", shown(layer.type));
  }
  if (!types.empty()) return types;
  return profile.run.program.empty() ? "layertrace report" : shown(profile.run.program);
}

std::string device_text(const Profile& profile) {
  const RunInfo& run = profile.run;
  if (!run.simulated.empty()) return shown(run.simulated);
  if (!run.device.empty()) return shown(run.device);
  return "none recorded: times are the host's";
}

std::string simulated_text(const RunInfo& run) {
  if (!run.simulated.empty()) return "yes: its times say nothing about how fast a real GPU is";
  return run.device.empty() ? "no: measured on this processor" : "no: measured on this GPU";
}

Json facts_json(const Profile& profile, const ReportOptions& options) {
  const RunInfo& run = profile.run;
  Json facts = Json::array();
  const auto add = [&facts](std::string_view name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  };
  add("Run", shown(run.name));
  add("Program", shown(run.program));
  add("Command", shown(run.command));
  add("Commit", shown(run.commit));
  add("Trace", shown(options.trace_file));
  add("Recorded", shown(run.created));
  add("GPU", device_text(profile));
  add("Simulated", simulated_text(run));
  std::string cpu = shown(run.cpu);
  if (run.cpu_count > 0)
    cpu += fmt::format("{}{}", cpu.empty() ? "" : ", ", quantity(run.cpu_count, "core", "cores"));
  add("Processor", cpu);
  if (run.memory_bytes > 0) add("Memory", format_bytes(run.memory_bytes));
  add("Host", shown(run.host));
  add("System", shown(run.os));
  add("PyTorch", shown(run.torch_version));
  add("Python", shown(run.python_version));
  add("Clock", shown(run.clock));
  if (profile.health.gpu.cupti_version > 0)
    add("CUPTI", std::to_string(profile.health.gpu.cupti_version));
  add("layertrace", shown(run.layertrace_version.empty() ? kVersion : run.layertrace_version));
  return facts;
}

Json sentences_json(const std::vector<Sentence>& sentences) {
  Json out = Json::array();
  for (const Sentence& sentence : sentences) {
    std::string_view tone;
    if (sentence.tone == Tone::kHot) tone = "hot";
    if (sentence.tone == Tone::kWarm) tone = "warm";
    out.push_back({sentence.text, tone});
  }
  return out;
}

// ---- Layers, as columns ----

Json layers_columns(const Profile& profile) {
  Json out = Json::object();
  for (const char* key : {"path",      "name",      "type",     "parent",    "ran",  "note",
                          "calls",     "forward",   "backward", "recompute", "self", "kernels",
                          "params",    "flops",     "bytes",    "peak",      "kept", "rate",
                          "bandwidth", "intensity", "roof",     "roof_share"})
    out[key] = Json::array();
  const bool gpu = has_gpu(profile);
  if (gpu) {
    for (const char* key : {"gpu_forward", "gpu_backward", "gpu_recompute"})
      out[key] = Json::array();
  }
  for (const Layer& layer : profile.layers) {
    const Figures figures = figures_of(layer);
    const LayerTimes host = host_times(layer);
    out["path"].push_back(shown(layer.path));
    out["name"].push_back(shown(layer.name));
    out["type"].push_back(shown(layer.type));
    out["parent"].push_back(layer.parent);
    out["ran"].push_back(layer.ran ? 1 : 0);
    std::string note;
    if (!layer.shared_with.empty()) {
      note = "= " + shown(layer.shared_with);
    } else if (!layer.ran && !profile.run.summary) {
      note = "not run";
    }
    if (!layer.registered) note += note.empty() ? "unregistered" : ", unregistered";
    out["note"].push_back(note);
    out["calls"].push_back(number(layer.calls));
    out["forward"].push_back(rounded(host.forward_ns));
    out["backward"].push_back(rounded(host.backward_ns));
    out["recompute"].push_back(rounded(host.recompute_ns));
    out["self"].push_back(rounded(figures.self_ns));
    out["kernels"].push_back(number(figures.activities));
    out["params"].push_back(number(figures.params));
    out["flops"].push_back(rounded(figures.flops));
    out["bytes"].push_back(rounded(figures.bytes));
    out["peak"].push_back(rounded(figures.memory_peak));
    out["kept"].push_back(rounded(figures.memory_kept));
    const roofline::Placement at = roofline::place(figures.work, figures.work_ns, profile.device);
    out["rate"].push_back(rounded(at.flops_per_s));
    out["bandwidth"].push_back(rounded(at.bytes_per_s));
    out["intensity"].push_back(number(at.intensity));
    out["roof"].push_back(at.roof == Roof::kNone ? "" : roof_name(at.roof));
    out["roof_share"].push_back(number(at.share));
    if (gpu) {
      const LayerTimes times = gpu_times(profile, layer);
      out["gpu_forward"].push_back(rounded(times.forward_ns));
      out["gpu_backward"].push_back(rounded(times.backward_ns));
      out["gpu_recompute"].push_back(rounded(times.recompute_ns));
    }
  }
  return out;
}

// ---- What layers compute themselves ----

// Of each layer, whether any below it was called.
std::vector<bool> called_below(const Profile& profile) {
  std::vector<bool> below(profile.layers.size());
  for (std::size_t i = profile.layers.size(); i-- > 0;) {  // children come after their parents
    const Layer& layer = profile.layers[i];
    if (layer.parent >= 0 && (layer.calls > 0 || below[i]))
      below[static_cast<std::size_t>(layer.parent)] = true;
  }
  return below;
}

// A layer above others that computes something of its own, as attention does between its
// projections.
Json own_work(const Profile& profile) {
  Json out = Json::array();
  const std::vector<bool> is_above_calls = called_below(profile);
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const Layer& layer = profile.layers[i];
    Amounts work;
    double ns = 0;
    for (const Phase phase : {Phase::kForward, Phase::kLoss, Phase::kBackward}) {
      work += layer.phase(phase).self_amounts;
      ns += layer.phase(phase).self_activity_ns.mean;
    }
    if (work.flops <= 0 || work.bytes <= 0 || ns <= 0 || !is_above_calls[i]) continue;
    const roofline::Placement at = roofline::place(work, ns, profile.device);
    out.push_back({{"layer", i},
                   {"ns", rounded(ns)},
                   {"rate", rounded(at.flops_per_s)},
                   {"bandwidth", rounded(at.bytes_per_s)},
                   {"intensity", number(at.intensity)},
                   {"roof", at.roof == Roof::kNone ? "" : roof_name(at.roof)},
                   {"roof_share", number(at.share)}});
  }
  return out;
}

// ---- Device, memory, steps ----

// The roofs over what the model computed: peaks of the formats that it used.
Json roofs_json(const Profile& profile) {
  const DeviceInfo& device = profile.device;
  if (device.origin.empty()) return nullptr;
  Amounts all;
  const roofline::StepWork work = roofline::step_work(profile);
  all += work.model;
  all += work.recompute;
  Json peaks = Json::array();
  for (std::size_t i = 0; i < device.flops_per_s.size(); ++i) {
    if (device.flops_per_s[i] > 0 && all.flops_by_format[i] > 0)
      peaks.push_back({format_name(i), rounded(device.flops_per_s[i])});
  }
  return {{"name", shown(device.name)},
          {"origin", device.origin},
          {"source", shown(device.source)},
          {"peaks", std::move(peaks)},
          {"bytes_per_s", rounded(device.bytes_per_s)}};
}

Json memory_timelines(const Profile& profile) {
  Json out = Json::array();
  for (const DeviceMemory& memory : profile.device_memory) {
    if (memory.timeline.empty()) continue;
    Json points = {{"ns", Json::array()},
                   {"bytes", Json::array()},
                   {"layer", Json::array()},
                   {"phase", Json::array()}};
    for (const MemoryPoint& point : memory.timeline) {
      points["ns"].push_back(rounded(point.ns));
      points["bytes"].push_back(rounded(point.bytes));
      points["layer"].push_back(point.layer);
      points["phase"].push_back(static_cast<int>(point.phase));
    }
    points["device"] = memory.device < 0 ? "host" : fmt::format("GPU {}", memory.device);
    points["peak"] = rounded(memory.peak);
    points["peak_ns"] = rounded(memory.peak_ns);
    points["peak_layer"] = memory.peak_layer;
    points["peak_phase"] = static_cast<int>(memory.peak_phase);
    points["allocated"] = rounded(memory.allocated);
    out.push_back(std::move(points));
  }
  return out;
}

Json steps_json(const Profile& profile) {
  Json out = Json::array();
  for (const Step& step : profile.steps) {
    Json phases = Json::array();
    for (const std::uint64_t ns : step.phase_ns) phases.push_back(ns);
    Json row = {{"index", step.index}, {"wall", step.wall_ns}, {"phases", std::move(phases)}};
    std::uint64_t busy_ns = 0;
    for (const DeviceStep& device : step.devices) busy_ns += device.busy_ns;
    if (!step.devices.empty())
      row["busy"] = static_cast<double>(busy_ns) / static_cast<double>(step.devices.size());
    out.push_back(std::move(row));
  }
  return out;
}

// ---- The ledger ----

Json causes_json(const std::vector<Unattributed>& groups) {
  Json out = Json::array();
  for (const Unattributed& group : groups) {
    Json names = Json::array();
    for (std::size_t i = 0; i < std::min(group.names.size(), kNamesTold); ++i)
      names.push_back({shown(without_arguments(group.names[i].name, "…")), group.names[i].count});
    out.push_back({{"cause", shown(group.cause)},
                   {"count", group.count},
                   {"ns", group.ns},
                   {"names", std::move(names)}});
  }
  return out;
}

// That users gave to the run.
Json metrics_json(const Profile& profile) {
  Json out = Json::array();
  for (const MetricValue& metric : profile.metrics) {
    const MetricInfo& info = metric.info;
    const MetricUnit unit = shown_unit(info, metric.value.value_or(0));
    out.push_back({{"name", shown(cards::name_of(info))},
                   {"value", metric.value ? cards::figure(*metric.value / unit.size) : "–"},
                   {"unit", shown(unit.name)},
                   {"description", shown(info.description)}});
  }
  return out;
}

Json ledger_json(const Profile& profile, const Glyphs& glyphs) {
  const Health& health = profile.health;
  Json notes = Json::array();
  for (const std::string& note : health.notes) notes.push_back(shown(note));
  return {{"has_activities", has_activities(profile.run) && health.activities > 0},
          {"attributed_share", number(health.attributed_share)},
          {"activities", health.activities},
          {"activity_ns", health.activity_ns},
          {"causes", causes_json(health.unattributed)},
          {"nodes", health.nodes},
          {"node_causes", causes_json(health.unattributed_nodes)},
          {"dropped", health.dropped},
          {"emitted", health.emitted},
          {"notes", std::move(notes)},
          {"sentences", sentences_json(ledger(profile, glyphs))}};
}

}  // namespace

Json page_data(const Profile& profile, const ReportOptions& options) {
  const Glyphs& glyphs = glyphs_for(false);
  std::vector<Sentence> warnings = opening(profile, glyphs);
  warnings.pop_back();  // the title, which the page has in larger letters
  const std::vector<Sentence> head = heading(profile, glyphs);
  Json phases = Json::array();
  for (std::size_t i = 0; i < kPhaseCount; ++i) phases.push_back(phase_name(static_cast<Phase>(i)));
  return {{"title", title_of(profile, options)},
          {"trace_file", shown(options.trace_file)},
          {"facts", facts_json(profile, options)},
          {"warnings", sentences_json(warnings)},
          {"steps_sentence", head.back().text},
          {"summary", profile.run.summary},
          {"has_gpu", has_gpu(profile)},
          {"gpu_by_events", has_events_only(profile)},
          {"base_ns", number(share_base_ns(profile))},
          {"step",
           {{"count", profile.step_count},
            {"mean", rounded(profile.step_ns.mean)},
            {"min", rounded(profile.step_ns.min)},
            {"max", rounded(profile.step_ns.max)}}},
          {"mfu", number(profile.mfu)},
          {"counted_share", number(profile.counted_share)},
          {"phases", std::move(phases)},
          {"metrics", metrics_json(profile)},
          {"layers", layers_columns(profile)},
          {"own", own_work(profile)},
          {"roofs", roofs_json(profile)},
          {"memory", memory_timelines(profile)},
          {"steps", steps_json(profile)},
          {"ledger", ledger_json(profile, glyphs)}};
}

}  // namespace layertrace::report
