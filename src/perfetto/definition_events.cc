#include "perfetto/definition_events.h"

#include <string>
#include <utility>

#include "perfetto/format.h"

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

pb::DebugAnnotation* annotate(TrackEventWriter& event, std::string_view name) {
  auto* annotation = event.add_debug_annotations();
  annotation->set_name(name.data(), name.size());
  return annotation;
}
void text(TrackEventWriter& event, std::string_view name, const std::string& value) {
  annotate(event, name)->set_string_value(value);
}
void number(TrackEventWriter& event, std::string_view name, std::uint64_t value) {
  annotate(event, name)->set_uint_value(value);
}
void real(TrackEventWriter& event, std::string_view name, double value) {
  annotate(event, name)->set_double_value(value);
}

struct Annotation {
  std::string_view name;
  std::string_view text;
  std::uint64_t number;
  double real;
};

template <typename Visit>
void for_each_annotation(const TrackEventReader& event, Visit visit) {
  for (auto it = event.debug_annotations(); it; ++it) {
    const pb::DebugAnnotation::Decoder annotation(*it);
    const auto name = annotation.name();
    const auto value = annotation.string_value();
    visit(Annotation{{name.data, name.size},
                     {value.data, value.size},
                     annotation.uint_value(),
                     annotation.double_value()});
  }
}

constexpr std::string_view kFormatVersionName = "format_version";

}  // namespace

// ---- The run ----

void write_run(TrackEventWriter& event, const RunInfo& run) {
  number(event, kFormatVersionName, static_cast<std::uint64_t>(format::kVersion));
  text(event, "layertrace_version", run.layertrace_version);
  text(event, "torch_version", run.torch_version);
  text(event, "host", run.host);
  text(event, "os", run.os);
  text(event, "cpu", run.cpu);
  number(event, "cpu_count", run.cpu_count);
  number(event, "memory_bytes", run.memory_bytes);
  number(event, "pid", run.pid);
  text(event, "program", run.program);
  text(event, "clock", run.clock);
  text(event, "created", run.created);
  number(event, "ops", run.ops ? 1 : 0);
  if (!run.device.empty()) text(event, "device", run.device);
  if (!run.simulated.empty()) text(event, "simulated", run.simulated);
}

void read_run(const TrackEventReader& event, RunInfo& run) {
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == kFormatVersionName) run.format_version = static_cast<int>(a.number);
    if (a.name == "layertrace_version") run.layertrace_version = a.text;
    if (a.name == "torch_version") run.torch_version = a.text;
    if (a.name == "host") run.host = a.text;
    if (a.name == "os") run.os = a.text;
    if (a.name == "cpu") run.cpu = a.text;
    if (a.name == "cpu_count") run.cpu_count = a.number;
    if (a.name == "memory_bytes") run.memory_bytes = a.number;
    if (a.name == "pid") run.pid = a.number;
    if (a.name == "program") run.program = a.text;
    if (a.name == "clock") run.clock = a.text;
    if (a.name == "created") run.created = a.text;
    if (a.name == "ops") run.ops = a.number != 0;
    if (a.name == "device") run.device = a.text;
    if (a.name == "simulated") run.simulated = a.text;
  });
}

std::uint64_t read_format_version(const TrackEventReader& event) {
  std::uint64_t version = 0;
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == kFormatVersionName) version = a.number;
  });
  return version;
}

// ---- A layer ----

void write_layer(TrackEventWriter& event, const LayerDef& layer, const std::string* parent_path) {
  text(event, "path", layer.path);
  text(event, "type", layer.type);
  text(event, "name", layer.name);
  if (parent_path != nullptr) text(event, "parent", *parent_path);
  if (!layer.registered) text(event, "registered", "no");
  if (!layer.shared_with.empty()) text(event, "shared_with", layer.shared_with);
}

ReadLayer read_layer(const TrackEventReader& event) {
  ReadLayer read;
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "path") read.path = a.text;
    if (a.name == "type") read.layer.type = a.text;
    if (a.name == "name") read.layer.name = a.text;
    if (a.name == "registered") read.layer.registered = a.text != "no";
    if (a.name == "shared_with") read.layer.shared_with = a.text;
    if (a.name == "parent") {
      read.parent_path = a.text;
      read.has_parent = true;
    }
  });
  read.layer.path = read.path;
  return read;
}

// ---- The end ----

namespace {

constexpr std::pair<std::string_view, std::uint64_t GpuHealth::*> kGpuCounts[] = {
    {"gpu_records", &GpuHealth::records},
    {"gpu_dropped", &GpuHealth::dropped},
    {"gpu_buffers_lost", &GpuHealth::buffers_lost},
    {"gpu_no_buffer", &GpuHealth::no_buffer},
    {"gpu_unknown", &GpuHealth::unknown},
    {"gpu_untimed", &GpuHealth::untimed},
    {"gpu_reversed", &GpuHealth::reversed},
    {"gpu_cupti_version", &GpuHealth::cupti_version},
    {"gpu_events_missed", &GpuHealth::events_missed},
    {"gpu_events_capturing", &GpuHealth::events_capturing},
};

}  // namespace

void write_closing(TrackEventWriter& event, const Health& health, std::uint64_t end_ns) {
  number(event, "emitted", health.emitted);
  number(event, "recorded", health.recorded);
  number(event, "dropped", health.dropped);
  number(event, "writer_cpu_ns", health.writer_cpu_ns);
  real(event, "scope_cost_ns", health.scope_cost_ns);
  real(event, "op_cost_ns", health.op_cost_ns);
  real(event, "tracing_share", health.tracing_share);
  number(event, "end_ns", end_ns);
  if (!health.gpu.source.empty() || !health.gpu.timing.empty()) {
    text(event, "gpu_source", health.gpu.source);
    text(event, "gpu_timing", health.gpu.timing);
    for (const auto& [name, value] : kGpuCounts) number(event, name, health.gpu.*value);
  }
  for (const std::string& note : health.notes) text(event, "note", note);
}

void read_closing(const TrackEventReader& event, Health& health) {
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "emitted") health.emitted = a.number;
    if (a.name == "recorded") health.recorded = a.number;
    if (a.name == "dropped") health.dropped = a.number;
    if (a.name == "writer_cpu_ns") health.writer_cpu_ns = a.number;
    if (a.name == "scope_cost_ns") health.scope_cost_ns = a.real;
    if (a.name == "op_cost_ns") health.op_cost_ns = a.real;
    if (a.name == "tracing_share") health.tracing_share = a.real;
    if (a.name == "gpu_source") health.gpu.source = a.text;
    if (a.name == "gpu_timing") health.gpu.timing = a.text;
    for (const auto& [name, value] : kGpuCounts) {
      if (a.name == name) health.gpu.*value = a.number;
    }
    if (a.name == "note") health.notes.emplace_back(a.text);
  });
}

}  // namespace layertrace
