#include "perfetto/trace_reader.h"

#include <perfetto.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "attribute/metric_list.h"
#include "base/mapped_file.h"
#include "perfetto/counted_events.h"
#include "perfetto/definition_events.h"
#include "perfetto/device_events.h"
#include "perfetto/event_parser.h"
#include "perfetto/foreign.h"
#include "perfetto/format.h"

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

using protozero::ConstBytes;
using protozero::Field;
using protozero::ProtoDecoder;

class Reader {
 public:
  Reader(Dictionary& dictionary, SpanSink& sink)
      : sink_(sink),
        dictionary_(dictionary),
        parser_(dictionary),
        counted_(parser_, sink),
        devices_(parser_, sink) {}

  Result<ReadSummary> read(const std::string& path);

 private:
  void on_packet(ConstBytes bytes);
  bool on_loose_packet(std::uint32_t sequence_id, std::uint64_t ns, ConstBytes interned,
                       ConstBytes event);
  void on_track_descriptor(ConstBytes bytes);
  void on_definition(std::uint64_t ns, ConstBytes bytes);
  void on_layer(const TrackEventReader& event);
  void on_parameter(const TrackEventReader& event);
  void on_header(std::uint64_t ns, const TrackEventReader& event);
  void on_event(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns,
                ConstBytes bytes);
  SpanBegin begin(Track track, SequenceState& sequence, std::uint64_t ns, const Event& event);
  void on_step_event(Lane lane, std::uint64_t ns, const Event& event);
  void end_open_spans();

  struct LaneState {
    SequenceState scopes;
    SequenceState activities;
    std::vector<SpanBegin> open_scopes;
    std::vector<SpanBegin> open_activities;
  };

  SpanSink& sink_;
  Dictionary& dictionary_;
  EventParser parser_;
  CountedEvents counted_;
  DeviceEvents devices_;
  ReadSummary summary_;
  std::vector<LaneState> lanes_;
  bool has_header_ = false;
  bool has_second_header_ = false;
  bool has_footer_ = false;
  std::optional<std::uint64_t> newer_version_;
};

Result<ReadSummary> Reader::read(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  summary_.file_bytes = bytes.size();

  // Without its first packet this is not a trace at all, however the rest may look.
  constexpr int kPacketsBeforeHeader = 16;
  ProtoDecoder decoder(bytes.data(), bytes.size());
  for (Field field = decoder.ReadField(); field.valid(); field = decoder.ReadField()) {
    if (field.id() != pb::Trace::kPacketFieldNumber ||
        field.type() != protozero::proto_utils::ProtoWireType::kLengthDelimited) {
      break;
    }
    on_packet(field.as_bytes());
    ++summary_.packets;
    if (has_second_header_) break;
    if (newer_version_ || (!has_header_ && summary_.packets >= kPacketsBeforeHeader)) break;
  }
  if (newer_version_) {
    return Error{"cannot read " + path,
                 "it has format version " + std::to_string(*newer_version_) +
                     ", and this layertrace reads up to version " +
                     std::to_string(format::kVersion),
                 "Update layertrace to read it"};
  }
  if (!has_header_) {
    const bool is_perfetto = summary_.packets > 1;
    return Error{"cannot read " + path,
                 is_perfetto ? "it is a Perfetto trace, but not one that layertrace wrote"
                             : describe_foreign(bytes),
                 is_perfetto ? "Open it in Perfetto UI" : "Name a .pftrace that layertrace wrote"};
  }
  if (has_second_header_ && !has_footer_) {
    return Error{"cannot read " + path, "it holds more than one recording",
                 "Give each recording a file of its own"};
  }
  if (has_second_header_)
    summary_.health.notes.emplace_back("another recording follows in the file; it was not read");
  summary_.health.cut = !has_footer_;
  end_open_spans();
  return std::move(summary_);
}

void Reader::on_packet(ConstBytes bytes) {
  std::uint64_t timestamp = 0;
  std::uint64_t sequence_id = 0;
  ConstBytes event{};
  ConstBytes interned{};
  ConstBytes track{};
  ConstBytes snapshot{};
  ProtoDecoder decoder(bytes);
  for (Field field = decoder.ReadField(); field.valid(); field = decoder.ReadField()) {
    switch (field.id()) {
      case pb::TracePacket::kTimestampFieldNumber:
        timestamp = field.as_uint64();
        break;
      case pb::TracePacket::kTrustedPacketSequenceIdFieldNumber:
        sequence_id = field.as_uint64();
        break;
      case pb::TracePacket::kTrackEventFieldNumber:
        event = field.as_bytes();
        break;
      case pb::TracePacket::kInternedDataFieldNumber:
        interned = field.as_bytes();
        break;
      case pb::TracePacket::kTrackDescriptorFieldNumber:
        track = field.as_bytes();
        break;
      case pb::TracePacket::kClockSnapshotFieldNumber:
        snapshot = field.as_bytes();
        break;
      default:
        break;
    }
  }
  if (track.data != nullptr) return on_track_descriptor(track);
  if (sequence_id == format::kDefinitionSequence) {
    if (event.data != nullptr) on_definition(timestamp, event);
    return;
  }
  if (sequence_id >= format::kFirstLooseSequence) {
    if (on_loose_packet(static_cast<std::uint32_t>(sequence_id), timestamp, interned, event))
      summary_.end_ns = std::max(summary_.end_ns, timestamp);
    return;
  }
  if (sequence_id < format::kFirstLaneSequence) return;
  const std::uint64_t lane = (sequence_id - format::kFirstLaneSequence) / 2;
  if (lane >= lanes_.size()) return;
  const Track which =
      (sequence_id - format::kFirstLaneSequence) % 2 == 0 ? Track::kScopes : Track::kActivities;
  SequenceState& sequence = which == Track::kScopes ? lanes_[lane].scopes : lanes_[lane].activities;
  if (snapshot.data != nullptr) {
    pb::ClockSnapshot::Decoder clocks(snapshot);
    if (auto clock = clocks.clocks())
      sequence.last_ns = pb::ClockSnapshot::Clock::Decoder(*clock).timestamp();
    sequence.started = true;
    return;
  }
  if (!sequence.started) return;
  if (interned.data != nullptr) parser_.on_interned_data(sequence, interned);
  if (event.data == nullptr) return;
  sequence.last_ns += timestamp;
  summary_.end_ns = std::max(summary_.end_ns, sequence.last_ns);
  on_event(static_cast<Lane>(lane), which, sequence, sequence.last_ns, event);
}

// Returns whether it had an event.
bool Reader::on_loose_packet(std::uint32_t sequence_id, std::uint64_t ns, ConstBytes interned,
                             ConstBytes event) {
  if (format::kind_of_sequence(sequence_id) != format::TrackKind::kCounted)
    return devices_.on_packet(sequence_id, ns, interned, event);
  const std::uint32_t lane = format::number_of_sequence(sequence_id);
  return lane < lanes_.size() && counted_.on_packet(static_cast<Lane>(lane), ns, interned, event);
}

void Reader::on_track_descriptor(ConstBytes bytes) {
  pb::TrackDescriptor::Decoder track(bytes);
  if (devices_.on_track(track.uuid())) return;
  if (!track.has_thread() || track.uuid() < format::kFirstLaneTrack) return;
  const std::uint64_t lane = (track.uuid() - format::kFirstLaneTrack) / 2;
  if (lane != lanes_.size()) return;
  lanes_.emplace_back();
  pb::ThreadDescriptor::Decoder thread(track.thread());
  sink_.open_lane(static_cast<Lane>(lane), static_cast<std::uint64_t>(thread.tid()),
                  std::string(view(thread.thread_name())));
}

// ---- Definitions ----

void Reader::on_definition(std::uint64_t ns, ConstBytes bytes) {
  pb::TrackEvent::Decoder event(bytes);
  if (event.track_uuid() == format::kLayerTrack) {
    on_layer(event);
  } else if (event.track_uuid() == format::kParameterTrack) {
    on_parameter(event);
  } else if (event.track_uuid() == format::kMetricTrack) {
    if (MetricValue metric = read_metric(event); metric.value && !metric.info.key.empty())
      put_metric(summary_.metrics, std::move(metric));
  } else if (view(event.name()) == format::kHeader) {
    on_header(ns, event);
  } else if (view(event.name()) == format::kFooter) {
    has_footer_ = true;
    summary_.end_ns = ns;
    read_closing(event, summary_.health);
    read_device(event, summary_.device);
    read_optimizers(event, summary_.optimizer_state_bytes);
  }
}

void Reader::on_layer(const TrackEventReader& event) {
  ReadLayer read = read_layer(event);
  if (read.has_parent) read.layer.parent = parser_.find_layer(read.parent_path).value_or(kNoLayer);
  parser_.add_layer(read.path, std::move(read.layer));
}

void Reader::on_parameter(const TrackEventReader& event) {
  ReadParameter read = read_parameter(event);
  const auto owner = parser_.find_layer(read.layer_path);
  if (!owner) return;
  read.parameter.owner = *owner;
  dictionary_.parameters.push_back(std::move(read.parameter));
}

void Reader::on_header(std::uint64_t ns, const TrackEventReader& event) {
  has_second_header_ = has_header_;
  if (has_second_header_) return;
  has_header_ = true;
  summary_.start_ns = ns;
  summary_.end_ns = std::max(summary_.end_ns, ns);
  read_run(event, summary_.run);
  if (!summary_.run.device.empty()) sink_.use_device(summary_.run.device);
  if (!summary_.run.imported_from.empty()) sink_.count_outside_steps();
  if (const std::uint64_t version = read_format_version(event); version > format::kVersion)
    newer_version_ = version;
}

// ---- Events ----

void Reader::on_event(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns,
                      ConstBytes bytes) {
  const Event event = parser_.parse(sequence, bytes);
  LaneState& state = lanes_[lane];
  auto& open = track == Track::kScopes ? state.open_scopes : state.open_activities;
  if (event.track == format::kStepTrack) return on_step_event(lane, ns, event);
  if (event.type == pb::TrackEvent::TYPE_SLICE_BEGIN) {
    open.push_back(begin(track, sequence, ns, event));
    sink_.begin(lane, open.back());
  } else if (event.type == pb::TrackEvent::TYPE_SLICE_END) {
    if (open.empty()) return;
    counted_.on_end(lane, open.back(), ns, event);
    open.pop_back();
    sink_.end(lane, track, ns, event.ended_by);
  } else if (event.dropped != 0) {
    sink_.gap(lane, ns, event.dropped);
  }
}

SpanBegin Reader::begin(Track track, SequenceState& sequence, std::uint64_t ns,
                        const Event& event) {
  SpanBegin span;
  span.start_ns = ns;
  span.phase = event.phase();
  span.cause = event.cause;
  span.accumulates = event.accumulates;
  span.layer = event.layer;
  span.call = event.call;
  span.sequence = event.sequence;
  if (track == Track::kActivities) {
    span.kind = SpanKind::kActivity;
  } else if (event.sequence != 0 || event.accumulates) {
    span.kind = SpanKind::kNode;
  } else if (event.region) {
    span.kind = SpanKind::kRegion;
  } else {
    span.kind = span.phase == Phase::kBackward ? SpanKind::kBackward : SpanKind::kScope;
  }
  const bool named = span.kind != SpanKind::kScope && span.kind != SpanKind::kBackward;
  if (named) span.name = parser_.name(sequence, event.name_iid);
  return span;
}

void Reader::on_step_event(Lane lane, std::uint64_t ns, const Event& event) {
  switch (event.type) {
    case pb::TrackEvent::TYPE_SLICE_BEGIN:
      if (event.window) sink_.window(lane, ns, true, *event.window);
      break;
    case pb::TrackEvent::TYPE_SLICE_END:
      if (event.step) sink_.step(lane, ns, *event.step);
      break;
    case pb::TrackEvent::TYPE_INSTANT:
      sink_.window(lane, ns, false, event.window.value_or(0));
      break;
    default:
      break;
  }
}

void Reader::end_open_spans() {
  for (Lane lane = 0; lane < lanes_.size(); ++lane) {
    LaneState& state = lanes_[lane];
    for (; !state.open_activities.empty(); state.open_activities.pop_back()) {
      sink_.end(lane, Track::kActivities, summary_.end_ns, EndedBy::kCut);
    }
    for (; !state.open_scopes.empty(); state.open_scopes.pop_back()) {
      sink_.end(lane, Track::kScopes, summary_.end_ns, EndedBy::kCut);
    }
  }
}

}  // namespace

Result<ReadSummary> read_trace(const std::string& path, Dictionary& dictionary, SpanSink& sink) {
  return Reader(dictionary, sink).read(path);
}

}  // namespace layertrace
