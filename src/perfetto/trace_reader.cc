#include "perfetto/trace_reader.h"

#include <perfetto.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "perfetto/definition_events.h"
#include "perfetto/foreign.h"
#include "perfetto/format.h"

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

using protozero::ConstBytes;
using protozero::ConstChars;
using protozero::Field;
using protozero::ProtoDecoder;

constexpr std::uint8_t kNoCategory = 0xff;

std::string_view view(ConstChars chars) { return {chars.data, chars.size}; }
std::string_view view(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// Interned ids are dense and come in order, so a vector will do; one far beyond the others (a
// damaged file) is ignored.
template <typename T>
class Table {
 public:
  void set(std::uint64_t id, T value) {
    if (id > values_.size() + kMaxHole) return;
    if (id >= values_.size()) values_.resize(id + 1);
    values_[id] = std::move(value);
  }
  T* find(std::uint64_t id) { return id < values_.size() ? &values_[id] : nullptr; }

 private:
  static constexpr std::uint64_t kMaxHole = 64;
  std::vector<T> values_;
};

struct InternedName {
  std::string_view text;
  NameId id = kNoName;  // looked up when a span first needs it
};

struct InternedString {
  LayerId layer = kNoLayer;
  Cause cause = Cause::kNone;
};

struct SequenceState {
  bool started = false;
  std::uint64_t last_ns = 0;
  Table<InternedName> names;
  Table<std::uint8_t> categories;
  Table<InternedString> strings;
  Table<std::string_view> annotation_names;
};

// The fields of one track event that we know.
struct Event {
  std::uint64_t type = 0;
  std::uint64_t track = 0;
  std::uint64_t name_iid = 0;
  std::string_view name;
  std::uint64_t flow = 0;
  std::uint8_t category = kNoCategory;
  LayerId layer = kNoLayer;
  Cause cause = Cause::kNone;
  std::uint64_t sequence = 0;
  std::optional<std::uint64_t> window;
  std::optional<std::uint64_t> step;
  std::uint64_t dropped = 0;
  bool accumulates = false;
  bool region = false;
  bool partial = false;
  EndedBy ended_by = EndedBy::kExit;
  // Of what a device did.
  std::uint64_t launch_ns = 0;
  DeviceActivity what;
};

// "128x1x1".
std::array<std::uint32_t, 3> parse_extent(std::string_view text) {
  std::array<std::uint32_t, 3> size{};
  for (std::uint32_t& value : size) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) break;
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  }
  return size;
}

class Reader {
 public:
  Reader(Dictionary& dictionary, SpanSink& sink) : dictionary_(dictionary), sink_(sink) {}

  Result<ReadSummary> read(const std::string& path);

 private:
  void on_packet(ConstBytes bytes);
  void on_track_descriptor(ConstBytes bytes);
  void on_interned_data(SequenceState& sequence, ConstBytes bytes);
  void on_definition(std::uint64_t ns, ConstBytes bytes);
  void on_layer(const TrackEventReader& event);
  void on_header(std::uint64_t ns, const TrackEventReader& event);
  void on_event(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns,
                ConstBytes bytes);
  Event parse_event(SequenceState& sequence, ConstBytes bytes);
  void parse_annotation(SequenceState& sequence, ConstBytes bytes, Event& event);
  void begin(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns, const Event& event);
  void on_step_event(Lane lane, std::uint64_t ns, const Event& event);
  void on_device_packet(std::uint64_t track, std::uint64_t ns, ConstBytes interned,
                        ConstBytes event);
  void end_open_spans();
  NameId name_id(InternedName& name);

  struct LaneState {
    SequenceState scopes;
    SequenceState activities;
    std::uint32_t open_scopes = 0;
    std::uint32_t open_activities = 0;
  };

  // A track of what a device did, and what has begun there.
  struct DeviceTrack {
    std::uint32_t device;
    std::uint32_t stream;
    SequenceState sequence;
    std::optional<DeviceSpan> open;
  };

  Dictionary& dictionary_;
  SpanSink& sink_;
  std::vector<DeviceTrack> device_tracks_;
  ReadSummary summary_;
  std::vector<LaneState> lanes_;
  std::unordered_map<std::string_view, LayerId> layers_;  // by path; views into the file
  std::unordered_map<std::string_view, NameId> names_;
  std::unordered_map<std::string_view, Cause> causes_;
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
  for (std::size_t i = 1; i < kCauseCount; ++i)
    causes_.emplace(cause_text(static_cast<Cause>(i)), static_cast<Cause>(i));

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
  if (sequence_id >= format::kFirstDeviceSequence)
    return on_device_packet(sequence_id - format::kFirstDeviceSequence, timestamp, interned, event);
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
  if (interned.data != nullptr) on_interned_data(sequence, interned);
  if (event.data == nullptr) return;
  sequence.last_ns += timestamp;
  summary_.end_ns = std::max(summary_.end_ns, sequence.last_ns);
  on_event(static_cast<Lane>(lane), which, sequence, sequence.last_ns, event);
}

void Reader::on_track_descriptor(ConstBytes bytes) {
  pb::TrackDescriptor::Decoder track(bytes);
  if (format::is_device_track(track.uuid())) {
    device_tracks_.push_back({format::device_of_track(track.uuid()),
                              format::stream_of_track(track.uuid()),
                              {},
                              std::nullopt});
    return;
  }
  if (!track.has_thread() || track.uuid() < format::kFirstLaneTrack) return;
  const std::uint64_t lane = (track.uuid() - format::kFirstLaneTrack) / 2;
  if (lane != lanes_.size()) return;
  lanes_.emplace_back();
  pb::ThreadDescriptor::Decoder thread(track.thread());
  sink_.open_lane(static_cast<Lane>(lane), static_cast<std::uint64_t>(thread.tid()),
                  std::string(view(thread.thread_name())));
}

void Reader::on_interned_data(SequenceState& sequence, ConstBytes bytes) {
  pb::InternedData::Decoder data(bytes);
  for (auto it = data.event_names(); it; ++it) {
    pb::EventName::Decoder name(*it);
    sequence.names.set(name.iid(), {view(name.name()), kNoName});
  }
  for (auto it = data.event_categories(); it; ++it) {
    pb::EventCategory::Decoder category(*it);
    const std::string_view text = view(category.name());
    std::uint8_t value = text == format::kStep ? format::kStepCategory : kNoCategory;
    for (std::uint8_t p = 0; p < kPhaseCount; ++p) {
      if (text == phase_name(static_cast<Phase>(p))) value = p;
    }
    sequence.categories.set(category.iid(), value);
  }
  for (auto it = data.debug_annotation_names(); it; ++it) {
    pb::DebugAnnotationName::Decoder name(*it);
    sequence.annotation_names.set(name.iid(), view(name.name()));
  }
  for (auto it = data.debug_annotation_string_values(); it; ++it) {
    pb::InternedString::Decoder string(*it);
    const std::string_view text = view(string.str());
    InternedString value;
    if (const auto layer = layers_.find(text); layer != layers_.end()) value.layer = layer->second;
    if (const auto cause = causes_.find(text); cause != causes_.end()) value.cause = cause->second;
    sequence.strings.set(string.iid(), value);
  }
}

// ---- Definitions ----

void Reader::on_definition(std::uint64_t ns, ConstBytes bytes) {
  pb::TrackEvent::Decoder event(bytes);
  if (event.track_uuid() == format::kLayerTrack) {
    on_layer(event);
  } else if (view(event.name()) == format::kHeader) {
    on_header(ns, event);
  } else if (view(event.name()) == format::kFooter) {
    has_footer_ = true;
    summary_.end_ns = ns;
    read_closing(event, summary_.health);
  }
}

void Reader::on_layer(const TrackEventReader& event) {
  ReadLayer read = read_layer(event);
  if (const auto parent = layers_.find(read.parent_path);
      read.has_parent && parent != layers_.end()) {
    read.layer.parent = parent->second;
  }
  layers_.emplace(read.path, LayerId{static_cast<std::uint32_t>(dictionary_.layers.size())});
  dictionary_.layers.push_back(std::move(read.layer));
}

void Reader::on_header(std::uint64_t ns, const TrackEventReader& event) {
  has_second_header_ = has_header_;
  if (has_second_header_) return;
  has_header_ = true;
  summary_.start_ns = ns;
  summary_.end_ns = std::max(summary_.end_ns, ns);
  read_run(event, summary_.run);
  if (!summary_.run.device.empty()) sink_.use_device(summary_.run.device);
  if (const std::uint64_t version = read_format_version(event); version > format::kVersion)
    newer_version_ = version;
}

// ---- Events ----

Event Reader::parse_event(SequenceState& sequence, ConstBytes bytes) {
  Event event;
  ProtoDecoder decoder(bytes);
  for (Field field = decoder.ReadField(); field.valid(); field = decoder.ReadField()) {
    switch (field.id()) {
      case pb::TrackEvent::kTypeFieldNumber:
        event.type = field.as_uint64();
        break;
      case pb::TrackEvent::kTrackUuidFieldNumber:
        event.track = field.as_uint64();
        break;
      case pb::TrackEvent::kNameIidFieldNumber:
        event.name_iid = field.as_uint64();
        break;
      case pb::TrackEvent::kNameFieldNumber:
        event.name = view(field.as_string());
        break;
      case pb::TrackEvent::kFlowIdsFieldNumber:
        event.flow = field.as_uint64();
        break;
      case pb::TrackEvent::kCategoryIidsFieldNumber:
        if (const std::uint8_t* category = sequence.categories.find(field.as_uint64()))
          event.category = *category;
        break;
      case pb::TrackEvent::kDebugAnnotationsFieldNumber:
        parse_annotation(sequence, field.as_bytes(), event);
        break;
      default:
        break;
    }
  }
  return event;
}

void Reader::parse_annotation(SequenceState& sequence, ConstBytes bytes, Event& event) {
  std::string_view name;
  std::string_view text;
  std::uint64_t number = 0;
  std::uint64_t string_iid = 0;
  ProtoDecoder decoder(bytes);
  for (Field field = decoder.ReadField(); field.valid(); field = decoder.ReadField()) {
    switch (field.id()) {
      case pb::DebugAnnotation::kNameIidFieldNumber:
        if (const std::string_view* known = sequence.annotation_names.find(field.as_uint64()))
          name = *known;
        break;
      case pb::DebugAnnotation::kNameFieldNumber:
        name = view(field.as_string());
        break;
      case pb::DebugAnnotation::kStringValueIidFieldNumber:
        string_iid = field.as_uint64();
        break;
      case pb::DebugAnnotation::kStringValueFieldNumber:
        text = view(field.as_string());
        break;
      case pb::DebugAnnotation::kUintValueFieldNumber:
      case pb::DebugAnnotation::kBoolValueFieldNumber:
        number = field.as_uint64();
        break;
      default:
        break;
    }
  }
  if (name == format::kPath) {
    if (const InternedString* string = sequence.strings.find(string_iid))
      event.layer = string->layer;
  } else if (name == format::kUnattributed || name == format::kInferred) {
    if (const InternedString* string = sequence.strings.find(string_iid))
      event.cause = string->cause;
  } else if (name == format::kSequence) {
    event.sequence = number + 1;
  } else if (name == format::kAccumulates) {
    event.accumulates = true;
  } else if (name == format::kRegion) {
    event.region = true;
  } else if (name == format::kEndedBy) {
    event.ended_by = text == "exception" ? EndedBy::kException : EndedBy::kCut;
  } else if (name == format::kWindow) {
    event.window = number;
  } else if (name == format::kPartial) {
    event.partial = true;
  } else if (name == format::kDropped) {
    event.dropped = number;
  } else if (name == format::kStep) {
    event.step = number;
  } else if (name == format::kKind) {
    event.what.kind = text == "copy" ? DeviceKind::kCopy : DeviceKind::kSet;
  } else if (name == format::kGrid) {
    event.what.grid = parse_extent(text);
  } else if (name == format::kBlock) {
    event.what.block = parse_extent(text);
  } else if (name == format::kRegisters) {
    event.what.registers = static_cast<std::uint16_t>(number);
  } else if (name == format::kSharedBytes) {
    event.what.shared_bytes = static_cast<std::uint32_t>(number);
  } else if (name == format::kBytes) {
    event.what.bytes = number;
  } else if (name == format::kCorrelation) {
    event.what.correlation = static_cast<std::uint32_t>(number);
  } else if (name == format::kLaunch) {
    event.launch_ns = number;
  } else if (name == format::kGraphNode) {
    event.what.graph_node = number;
  }
}

// Begin and end of what a device did follow each other.
void Reader::on_device_packet(std::uint64_t track, std::uint64_t ns, ConstBytes interned,
                              ConstBytes bytes) {
  if (track >= device_tracks_.size()) return;
  DeviceTrack& state = device_tracks_[track];
  if (interned.data != nullptr) on_interned_data(state.sequence, interned);
  if (bytes.data == nullptr) return;
  summary_.end_ns = std::max(summary_.end_ns, ns);
  const Event event = parse_event(state.sequence, bytes);
  if (event.type == pb::TrackEvent::TYPE_SLICE_END) {
    if (!state.open) return;
    state.open->end_ns = ns;
    sink_.device(*state.open);
    state.open.reset();
    return;
  }
  DeviceSpan span{
      .start_ns = ns,
      .launch_ns = event.launch_ns,
      .phase = event.category < kPhaseCount ? static_cast<Phase>(event.category) : Phase::kOther,
      .cause = event.cause,
      .layer = event.layer,
      .call = event.flow,
      .what = event.what};
  span.what.device = state.device;
  span.what.stream = state.stream;
  span.what.name = NameId{0};
  if (InternedName* name = state.sequence.names.find(event.name_iid))
    span.what.name = name_id(*name);
  state.open = span;
}

void Reader::on_event(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns,
                      ConstBytes bytes) {
  const Event event = parse_event(sequence, bytes);
  LaneState& state = lanes_[lane];
  std::uint32_t& open = track == Track::kScopes ? state.open_scopes : state.open_activities;
  if (event.track == format::kStepTrack) return on_step_event(lane, ns, event);
  if (event.type == pb::TrackEvent::TYPE_SLICE_BEGIN) {
    ++open;
    begin(lane, track, sequence, ns, event);
  } else if (event.type == pb::TrackEvent::TYPE_SLICE_END) {
    if (open == 0) return;
    --open;
    sink_.end(lane, track, ns, event.ended_by);
  } else if (event.dropped != 0) {
    sink_.gap(lane, ns, event.dropped);
  }
}

void Reader::begin(Lane lane, Track track, SequenceState& sequence, std::uint64_t ns,
                   const Event& event) {
  SpanBegin span;
  span.start_ns = ns;
  span.phase = event.category < kPhaseCount ? static_cast<Phase>(event.category) : Phase::kOther;
  span.cause = event.cause;
  span.accumulates = event.accumulates;
  span.layer = event.layer;
  span.call = event.flow;
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
  if (named) {
    if (InternedName* name = sequence.names.find(event.name_iid)) span.name = name_id(*name);
  }
  sink_.begin(lane, span);
}

NameId Reader::name_id(InternedName& name) {
  if (name.id == kNoName) {
    const auto [found, fresh] =
        names_.try_emplace(name.text, NameId{static_cast<std::uint32_t>(dictionary_.names.size())});
    if (fresh) dictionary_.names.emplace_back(name.text);
    name.id = found->second;
  }
  return name.id;
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
    for (; state.open_activities != 0; --state.open_activities) {
      sink_.end(lane, Track::kActivities, summary_.end_ns, EndedBy::kCut);
    }
    for (; state.open_scopes != 0; --state.open_scopes) {
      sink_.end(lane, Track::kScopes, summary_.end_ns, EndedBy::kCut);
    }
  }
}

}  // namespace

Result<ReadSummary> read_trace(const std::string& path, Dictionary& dictionary, SpanSink& sink) {
  return Reader(dictionary, sink).read(path);
}

}  // namespace layertrace
