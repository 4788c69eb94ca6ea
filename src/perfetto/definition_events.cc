#include "perfetto/definition_events.h"

#include <charconv>
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
  if (!run.name.empty()) text(event, "name", run.name);
  if (!run.command.empty()) text(event, "command", run.command);
  if (!run.commit.empty()) text(event, "commit", run.commit);
  if (!run.python_version.empty()) text(event, "python_version", run.python_version);
  text(event, "clock", run.clock);
  text(event, "created", run.created);
  number(event, "ops", run.ops ? 1 : 0);
  if (run.summary) number(event, "summary", 1);
  if (!run.device.empty()) text(event, "device", run.device);
  if (!run.simulated.empty()) text(event, "simulated", run.simulated);
  if (!run.imported_from.empty()) text(event, "imported_from", run.imported_from);
  if (run.rank >= 0) number(event, "rank", static_cast<std::uint64_t>(run.rank));
  if (run.world_size > 0) number(event, "world_size", static_cast<std::uint64_t>(run.world_size));
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
    if (a.name == "name") run.name = a.text;
    if (a.name == "command") run.command = a.text;
    if (a.name == "commit") run.commit = a.text;
    if (a.name == "python_version") run.python_version = a.text;
    if (a.name == "clock") run.clock = a.text;
    if (a.name == "created") run.created = a.text;
    if (a.name == "ops") run.ops = a.number != 0;
    if (a.name == "summary") run.summary = a.number != 0;
    if (a.name == "device") run.device = a.text;
    if (a.name == "simulated") run.simulated = a.text;
    if (a.name == "imported_from") run.imported_from = a.text;
    if (a.name == "rank") run.rank = static_cast<std::int64_t>(a.number);
    if (a.name == "world_size") run.world_size = static_cast<std::int64_t>(a.number);
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
  if (!layer.kernel_size.empty()) text(event, "kernel_size", layer.kernel_size);
}

ReadLayer read_layer(const TrackEventReader& event) {
  ReadLayer read;
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "path") read.path = a.text;
    if (a.name == "type") read.layer.type = a.text;
    if (a.name == "name") read.layer.name = a.text;
    if (a.name == "registered") read.layer.registered = a.text != "no";
    if (a.name == "shared_with") read.layer.shared_with = a.text;
    if (a.name == "kernel_size") read.layer.kernel_size = a.text;
    if (a.name == "parent") {
      read.parent_path = a.text;
      read.has_parent = true;
    }
  });
  read.layer.path = read.path;
  return read;
}

// ---- A parameter or buffer ----

namespace {

// "[64, 3, 7, 7]".
std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::vector<std::int64_t> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string_view::npos;) {
    std::int64_t size = 0;
    const auto end = std::from_chars(text.data() + at, text.data() + text.size(), size).ptr;
    shape.push_back(size);
    at = static_cast<std::size_t>(end - text.data());
  }
  return shape;
}

}  // namespace

void write_parameter(TrackEventWriter& event, const ParameterDef& parameter,
                     const std::string& layer_path) {
  text(event, "path", layer_path);
  text(event, "name", parameter.name);
  text(event, "shape", shape_text(parameter.shape));
  text(event, "dtype", parameter.dtype);
  number(event, "elements", parameter.elements);
  number(event, "bytes", parameter.bytes);
  number(event, "trainable", parameter.trainable ? 1 : 0);
  number(event, "buffer", parameter.buffer ? 1 : 0);
  number(event, "tensor", parameter.address);
}

ReadParameter read_parameter(const TrackEventReader& event) {
  ReadParameter read;
  ParameterDef& parameter = read.parameter;
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "path") read.layer_path = a.text;
    if (a.name == "name") parameter.name = a.text;
    if (a.name == "shape") parameter.shape = parse_shape(a.text);
    if (a.name == "dtype") parameter.dtype = a.text;
    if (a.name == "elements") parameter.elements = a.number;
    if (a.name == "bytes") parameter.bytes = a.number;
    if (a.name == "trainable") parameter.trainable = a.number != 0;
    if (a.name == "buffer") parameter.buffer = a.number != 0;
    if (a.name == "tensor") parameter.address = a.number;
  });
  return read;
}

// ---- A metric of the user's ----

namespace {

// A scale's name is in the annotation's.
constexpr std::string_view kScalePrefix = "scale: ";

template <typename Enum, typename Name>
Enum named(std::string_view text, Enum last, Name name_of) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name_of(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  return Enum{};  // of a newer layertrace
}

}  // namespace

void write_metric(TrackEventWriter& event, const MetricValue& metric) {
  const MetricInfo& info = metric.info;
  text(event, "key", info.key);
  if (metric.value) real(event, "value", *metric.value);
  if (!info.name.empty()) text(event, "name", info.name);
  if (!info.description.empty()) text(event, "description", info.description);
  if (!info.unit.empty()) text(event, "unit", info.unit);
  if (!info.shown_in.empty()) text(event, "shown_in", info.shown_in);
  for (const MetricUnit& scale : info.scales)
    real(event, std::string(kScalePrefix) + scale.name, scale.size);
  text(event, "comparison", std::string(metric_comparison_name(info.comparison)));
  if (info.better != Better::kAsCompared)
    text(event, "better", std::string(better_name(info.better)));
}

MetricValue read_metric(const TrackEventReader& event) {
  MetricValue metric;
  MetricInfo& info = metric.info;
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "key") info.key = a.text;
    if (a.name == "value") metric.value = a.real;
    if (a.name == "name") info.name = a.text;
    if (a.name == "description") info.description = a.text;
    if (a.name == "unit") info.unit = a.text;
    if (a.name == "shown_in") info.shown_in = a.text;
    if (a.name.starts_with(kScalePrefix))
      info.scales.push_back({std::string(a.name.substr(kScalePrefix.size())), a.real});
    if (a.name == "comparison")
      info.comparison = named(a.text, MetricComparison::kDifference, metric_comparison_name);
    if (a.name == "better") info.better = named(a.text, Better::kLow, better_name);
  });
  return metric;
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
    {"gpu_clock_set", &GpuHealth::clock_set},
    {"gpu_cupti_version", &GpuHealth::cupti_version},
    {"gpu_events_missed", &GpuHealth::events_missed},
    {"gpu_events_capturing", &GpuHealth::events_capturing},
};

// A count by reason: the one is in the annotation's name.
constexpr std::string_view kLeftOutPrefix = "left_out: ";
constexpr std::string_view kRejectedPrefix = "rejected: ";

void write_counts(TrackEventWriter& event, std::string_view prefix,
                  const std::vector<Unattributed>& groups) {
  for (const Unattributed& group : groups)
    number(event, std::string(prefix) + group.cause, group.count);
}

bool read_count(const Annotation& a, std::string_view prefix, std::vector<Unattributed>& groups) {
  if (!a.name.starts_with(prefix)) return false;
  groups.push_back({std::string(a.name.substr(prefix.size())), a.number, 0, {}});
  return true;
}

void write_source(TrackEventWriter& event, const Health& health) {
  if (health.source.events == 0) return;
  number(event, "source_events", health.source.events);
  number(event, "source_kept", health.source.kept);
  number(event, "source_merged", health.source.merged);
  write_counts(event, kLeftOutPrefix, health.source.left_out);
  write_counts(event, kRejectedPrefix, health.rejected);
}

void read_source(const Annotation& a, Health& health) {
  if (a.name == "source_events") health.source.events = a.number;
  if (a.name == "source_kept") health.source.kept = a.number;
  if (a.name == "source_merged") health.source.merged = a.number;
  read_count(a, kLeftOutPrefix, health.source.left_out);
  read_count(a, kRejectedPrefix, health.rejected);
}

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
  write_source(event, health);
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
    read_source(a, health);
    if (a.name == "note") health.notes.emplace_back(a.text);
  });
}

namespace {

constexpr std::string_view kPeakPrefix = "device_flops_per_s_";

}  // namespace

void write_device(TrackEventWriter& event, const DeviceInfo& device) {
  if (device.origin.empty()) return;
  text(event, "device_name", device.name);
  text(event, "device_origin", device.origin);
  text(event, "device_source", device.source);
  real(event, "device_bytes_per_s", device.bytes_per_s);
  for (std::size_t i = 0; i < device.flops_per_s.size(); ++i) {
    const std::string name = std::string(kPeakPrefix) + std::string(format_name(i));
    if (device.flops_per_s[i] > 0) real(event, name, device.flops_per_s[i]);
  }
}

void read_device(const TrackEventReader& event, DeviceInfo& device) {
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "device_name") device.name = a.text;
    if (a.name == "device_origin") device.origin = a.text;
    if (a.name == "device_source") device.source = a.text;
    if (a.name == "device_bytes_per_s") device.bytes_per_s = a.real;
    if (!a.name.starts_with(kPeakPrefix)) return;
    for (std::size_t i = 0; i < device.flops_per_s.size(); ++i) {
      if (a.name.substr(kPeakPrefix.size()) == format_name(i)) device.flops_per_s[i] = a.real;
    }
  });
}

void write_optimizers(TrackEventWriter& event, std::optional<double> state_bytes) {
  if (state_bytes) real(event, "optimizer_state_bytes", *state_bytes);
}

void read_optimizers(const TrackEventReader& event, std::optional<double>& state_bytes) {
  for_each_annotation(event, [&](const Annotation& a) {
    if (a.name == "optimizer_state_bytes") state_bytes = a.real;
  });
}

}  // namespace layertrace
