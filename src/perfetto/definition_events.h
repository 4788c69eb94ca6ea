// What a trace says once: of the run at its start, of each layer at its first use, of the recording
// at its end. Each is an instant with annotations; its writing and its reading stand side by side
// here, so that neither knows a name that the other does not.
#pragma once

#include <perfetto.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include <layertrace/profile.h>

#include "record/definitions.h"

namespace layertrace {

using TrackEventWriter = perfetto::protos::pbzero::TrackEvent;
using TrackEventReader = perfetto::protos::pbzero::TrackEvent::Decoder;

void write_run(TrackEventWriter& event, const RunInfo& run);
void read_run(const TrackEventReader& event, RunInfo& run);
// Alone, so that a file of a newer version is not read any further. 0 where there is none.
std::uint64_t read_format_version(const TrackEventReader& event);

// `parent_path` is nullptr for a model.
void write_layer(TrackEventWriter& event, const LayerDef& layer, const std::string* parent_path);
struct ReadLayer {
  LayerDef layer;
  std::string_view path;  // in the file, as the next
  std::string_view parent_path;
  bool has_parent = false;
};
ReadLayer read_layer(const TrackEventReader& event);

void write_parameter(TrackEventWriter& event, const ParameterDef& parameter,
                     const std::string& layer_path);
struct ReadParameter {
  ParameterDef parameter;
  std::string_view layer_path;  // in the file
};
ReadParameter read_parameter(const TrackEventReader& event);

void write_metric(TrackEventWriter& event, const MetricValue& metric);
MetricValue read_metric(const TrackEventReader& event);

// What the spans cannot tell of a recording's health.
void write_closing(TrackEventWriter& event, const Health& health, std::uint64_t end_ns);
void read_closing(const TrackEventReader& event, Health& health);
// In the same record: what the device can do.
void write_device(TrackEventWriter& event, const DeviceInfo& device);
void read_device(const TrackEventReader& event, DeviceInfo& device);
// There too: what the optimizers' state takes.
void write_optimizers(TrackEventWriter& event, std::optional<double> state_bytes);
void read_optimizers(const TrackEventReader& event, std::optional<double>& state_bytes);

}  // namespace layertrace
