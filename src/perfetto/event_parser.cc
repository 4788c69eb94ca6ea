#include "perfetto/event_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

using protozero::ConstBytes;
using protozero::Field;
using protozero::ProtoDecoder;

annotation::Id annotation_id(std::string_view name) {
  const auto* found = std::find(std::begin(kAnnotationNames), std::end(kAnnotationNames), name);
  if (found == std::end(kAnnotationNames)) return annotation::kUnknown;
  return static_cast<annotation::Id>(found - std::begin(kAnnotationNames) + 1);
}

std::uint8_t category_number(std::string_view name) {
  for (std::uint8_t p = 0; p < kPhaseCount; ++p) {
    if (name == phase_name(static_cast<Phase>(p))) return p;
  }
  return name == format::kStep ? format::kStepCategory : kNoCategory;
}

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

struct SliceAnnotation {
  annotation::Id id = annotation::kUnknown;
  std::string_view text;
  std::uint64_t number = 0;
  double real = 0;
  InternedString string;
};

SliceAnnotation parse_annotation(SequenceState& sequence, ConstBytes bytes) {
  SliceAnnotation result;
  ProtoDecoder decoder(bytes);
  for (Field field = decoder.ReadField(); field.valid(); field = decoder.ReadField()) {
    switch (field.id()) {
      case pb::DebugAnnotation::kNameIidFieldNumber:
        if (const annotation::Id* known = sequence.annotations.find(field.as_uint64()))
          result.id = *known;
        break;
      case pb::DebugAnnotation::kNameFieldNumber:
        result.id = annotation_id(view(field.as_string()));
        break;
      case pb::DebugAnnotation::kStringValueIidFieldNumber:
        if (const InternedString* known = sequence.strings.find(field.as_uint64()))
          result.string = *known;
        break;
      case pb::DebugAnnotation::kStringValueFieldNumber:
        result.text = view(field.as_string());
        break;
      case pb::DebugAnnotation::kUintValueFieldNumber:
      case pb::DebugAnnotation::kBoolValueFieldNumber:
        result.number = field.as_uint64();
        break;
      case pb::DebugAnnotation::kDoubleValueFieldNumber:
        result.real = field.as_double();
        break;
      default:
        break;
    }
  }
  return result;
}

void take_annotation(const SliceAnnotation& annotation, Event& event) {
  switch (annotation.id) {
    case annotation::kUnknown:
      break;
    case annotation::kPath:
      event.layer = annotation.string.layer;
      break;
    case annotation::kUnattributed:
    case annotation::kInferred:
      event.cause = annotation.string.cause;
      break;
    case annotation::kSequence:
      event.sequence = annotation.number + 1;
      break;
    case annotation::kAccumulates:
      event.accumulates = true;
      break;
    case annotation::kRegion:
      event.region = true;
      break;
    case annotation::kEndedBy:
      event.ended_by = annotation.text == "exception" ? EndedBy::kException : EndedBy::kCut;
      break;
    case annotation::kWindow:
      event.window = annotation.number;
      break;
    case annotation::kPartial:
      event.partial = true;
      break;
    case annotation::kDropped:
      event.dropped = annotation.number;
      break;
    case annotation::kStep:
      event.step = annotation.number;
      break;
    case annotation::kFlops:
      event.flops = annotation.number;
      break;
    case annotation::kAuxFlops:
      event.amounts.aux_flops = annotation.number;
      break;
    case annotation::kFlopsCausal:
      event.flops_causal = annotation.number;
      break;
    case annotation::kActivations:
      event.amounts.activations = annotation.number;
      break;
    case annotation::kFvcoreFlops:
      event.amounts.fvcore_flops = annotation.number;
      break;
    case annotation::kFvcoreActivations:
      event.amounts.fvcore_activations = annotation.number;
      break;
    case annotation::kMacs:  // follows from the flops
      break;
    case annotation::kFormat:
      event.amounts.format = format::number_format(annotation.text);
      break;
    case annotation::kUncounted:
      event.amounts.is_uncounted = true;
      break;
    case annotation::kInput:
      event.input = annotation.string.text;
      break;
    case annotation::kOutput:
      event.output = annotation.string.text;
      break;
    case annotation::kKey:
      event.key = annotation.number;
      break;
    case annotation::kCounted:
      event.counted = true;
      break;
    case annotation::kAddress:
      event.address = annotation.number;
      break;
    case annotation::kFreed:
      event.freed = true;
      break;
    case annotation::kDevice:
      event.device = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kKind:
      event.kind = annotation.text;
      break;
    case annotation::kGrid:
      event.what.grid = parse_extent(annotation.text);
      break;
    case annotation::kBlock:
      event.what.block = parse_extent(annotation.text);
      break;
    case annotation::kRegisters:
      event.what.registers = static_cast<std::uint16_t>(annotation.number);
      break;
    case annotation::kSharedBytes:
      event.what.shared_bytes = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kBytes:
      event.what.bytes = annotation.number;
      break;
    case annotation::kCorrelation:
      event.what.correlation = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kLaunch:
      event.launch_ns = annotation.number;
      break;
    case annotation::kLaunchThread:
      event.launch_tid = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kGraphNode:
      event.what.graph_node = annotation.number;
      break;
    case annotation::kOccupancy:
      event.what.occupancy = format::from_percent(annotation.real);
      break;
    case annotation::kContext:
      event.what.context = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kHost:
      event.host_ns = annotation.number;
      break;
    case annotation::kDepth:
      event.depth = static_cast<std::uint32_t>(annotation.number);
      break;
    case annotation::kEarly:  // follows from the times
      break;
  }
}

}  // namespace

EventParser::EventParser(Dictionary& dictionary) : dictionary_(dictionary) {
  for (std::size_t i = 1; i < kCauseCount; ++i)
    causes_.emplace(cause_text(static_cast<Cause>(i)), static_cast<Cause>(i));
}

void EventParser::add_layer(std::string_view path, LayerDef layer) {
  layers_.emplace(path, LayerId{static_cast<std::uint32_t>(dictionary_.layers.size())});
  dictionary_.layers.push_back(std::move(layer));
}

std::optional<LayerId> EventParser::find_layer(std::string_view path) const {
  const auto found = layers_.find(path);
  return found != layers_.end() ? std::optional(found->second) : std::nullopt;
}

void EventParser::on_interned_data(SequenceState& sequence, ConstBytes bytes) {
  pb::InternedData::Decoder data(bytes);
  for (auto it = data.event_names(); it; ++it) {
    pb::EventName::Decoder name(*it);
    sequence.names.set(name.iid(), {view(name.name()), kNoName});
  }
  for (auto it = data.event_categories(); it; ++it) {
    pb::EventCategory::Decoder category(*it);
    sequence.categories.set(category.iid(), category_number(view(category.name())));
  }
  for (auto it = data.debug_annotation_names(); it; ++it) {
    pb::DebugAnnotationName::Decoder name(*it);
    sequence.annotations.set(name.iid(), annotation_id(view(name.name())));
  }
  for (auto it = data.debug_annotation_string_values(); it; ++it) {
    pb::InternedString::Decoder string(*it);
    const std::string_view text(reinterpret_cast<const char*>(string.str().data),
                                string.str().size);
    InternedString value{.text = text};
    if (const auto layer = find_layer(text)) value.layer = *layer;
    if (const auto cause = causes_.find(text); cause != causes_.end()) value.cause = cause->second;
    sequence.strings.set(string.iid(), value);
  }
}

Event EventParser::parse(SequenceState& sequence, ConstBytes bytes) const {
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
      case pb::TrackEvent::kFlowIdsFieldNumber:
        if ((field.as_uint64() & format::kCorrelationFlows) == 0) event.call = field.as_uint64();
        break;
      case pb::TrackEvent::kCounterValueFieldNumber:
        event.counter_value = field.as_uint64();
        break;
      case pb::TrackEvent::kCategoryIidsFieldNumber:
        if (const std::uint8_t* category = sequence.categories.find(field.as_uint64()))
          event.category = *category;
        break;
      case pb::TrackEvent::kDebugAnnotationsFieldNumber:
        take_annotation(parse_annotation(sequence, field.as_bytes()), event);
        break;
      default:
        break;
    }
  }
  return event;
}

NameId EventParser::name(std::string_view text) {
  const auto [found, fresh] =
      names_.try_emplace(text, NameId{static_cast<std::uint32_t>(dictionary_.names.size())});
  if (fresh) dictionary_.names.emplace_back(text);
  return found->second;
}

NameId EventParser::name(SequenceState& sequence, std::uint64_t iid) {
  InternedName* known = sequence.names.find(iid);
  if (known == nullptr) return kNoName;
  if (known->id == kNoName) known->id = name(known->text);
  return known->id;
}

}  // namespace layertrace
