// One packet with the begin or the end of one slice, encoded in place.
//
// Nearly all packets of a trace are such, of ten to forty bytes. Protozero writes each field as a
// piece of a stream that may run on into the next buffer, and each message as an object of its own:
// right for what may be large, but for these packets most of the work. Here a packet is known to
// fit, so fields are stored one after the other; and since none of the messages in it reaches 128
// bytes, each one's length is one byte, filled in at its end.
#pragma once

#include <perfetto.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace layertrace {

class SliceEvent {
  using TracePacket = perfetto::protos::pbzero::TracePacket;
  using TrackEvent = perfetto::protos::pbzero::TrackEvent;
  using DebugAnnotation = perfetto::protos::pbzero::DebugAnnotation;

 public:
  // More than a packet takes: 21 bytes without its event; in that, 11 for type, category and name,
  // 10 for a flow, and four annotations of at most 15.
  static constexpr std::size_t kMaxBytes = 128;

  // Writes to `to`, where there is room for kMaxBytes.
  SliceEvent(std::uint8_t* to, std::uint64_t delta_ns, std::uint32_t sequence,
             TrackEvent::Type type)
      : at_(to), packet_(open(perfetto::protos::pbzero::Trace::kPacketFieldNumber)) {
    varint(TracePacket::kTimestampFieldNumber, delta_ns);
    varint(TracePacket::kTrustedPacketSequenceIdFieldNumber, sequence);
    event_ = open(TracePacket::kTrackEventFieldNumber);  // NOLINT(*-prefer-member-initializer): in
                                                         // order of writing
    varint(TrackEvent::kTypeFieldNumber, static_cast<std::uint64_t>(type));
  }

  void add_category_iid(std::uint32_t iid) { varint(TrackEvent::kCategoryIidsFieldNumber, iid); }
  void set_name_iid(std::uint32_t iid) { varint(TrackEvent::kNameIidFieldNumber, iid); }
  void add_flow_id(std::uint64_t id) {
    put(protozero::proto_utils::MakeTagFixed<std::uint64_t>(TrackEvent::kFlowIdsFieldNumber));
    std::memcpy(at_, &id, sizeof(id));
    at_ += sizeof(id);
  }

  void annotate_string(std::uint8_t name, std::uint32_t string_iid) {
    annotate(name, DebugAnnotation::kStringValueIidFieldNumber, string_iid);
  }
  void annotate_uint(std::uint8_t name, std::uint64_t value) {
    annotate(name, DebugAnnotation::kUintValueFieldNumber, value);
  }
  void annotate_true(std::uint8_t name) {
    annotate(name, DebugAnnotation::kBoolValueFieldNumber, 1);
  }

  // The end of what was written.
  const std::uint8_t* finish() {
    close(event_);
    close(packet_);
    return at_;
  }

 private:
  void put(std::uint64_t value) { at_ = protozero::proto_utils::WriteVarInt(value, at_); }
  void varint(std::uint32_t field, std::uint64_t value) {
    put(protozero::proto_utils::MakeTagVarInt(field));
    put(value);
  }
  std::uint8_t* open(std::uint32_t field) {
    put(protozero::proto_utils::MakeTagLengthDelimited(field));
    return at_++;
  }
  void close(std::uint8_t* length) { *length = static_cast<std::uint8_t>(at_ - length - 1); }
  void annotate(std::uint8_t name, std::uint32_t field, std::uint64_t value) {
    std::uint8_t* annotation = open(TrackEvent::kDebugAnnotationsFieldNumber);
    varint(DebugAnnotation::kNameIidFieldNumber, name);
    varint(field, value);
    close(annotation);
  }

  std::uint8_t* at_;
  std::uint8_t* packet_;
  std::uint8_t* event_;
};

}  // namespace layertrace
