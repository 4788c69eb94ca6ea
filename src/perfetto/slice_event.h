// One packet with the begin or the end of one slice, or an instant, encoded in place.
//
// Nearly all packets of a trace are such, of ten to forty bytes; those of a device's activities
// have some hundred. Protozero writes each field as a piece of a stream that may run on into the
// next buffer, and each message as an object of its own: right for what may be large, but for these
// packets most of the work. Here a packet is known to fit, so fields are stored one after the
// other; and since it is known how large its messages can be, each one's length has a fixed number
// of bytes, filled in at its end.
#pragma once

#include <perfetto.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace layertrace {

// The lengths of the packet and of its event have so many bytes; an annotation's has one.
template <std::size_t kLengthBytes>
class BasicSliceEvent {
  using TracePacket = perfetto::protos::pbzero::TracePacket;
  using TrackEvent = perfetto::protos::pbzero::TrackEvent;
  using DebugAnnotation = perfetto::protos::pbzero::DebugAnnotation;

 public:
  // More than a packet takes. With lengths of one byte: 21 bytes without its event; in that, 11 for
  // type, category and name, 10 for a flow, and four annotations of at most 15. With two: a flow
  // more, and two annotations of at most 40 and fifteen of at most 15.
  static constexpr std::size_t kMaxBytes = kLengthBytes == 1 ? 128 : 384;

  // Writes to `to`, where there is room for kMaxBytes.
  BasicSliceEvent(std::uint8_t* to, std::uint64_t timestamp, std::uint32_t sequence,
                  TrackEvent::Type type)
      : at_(to), packet_(open<kLengthBytes>(perfetto::protos::pbzero::Trace::kPacketFieldNumber)) {
    varint(TracePacket::kTimestampFieldNumber, timestamp);
    varint(TracePacket::kTrustedPacketSequenceIdFieldNumber, sequence);
    // In order of writing: NOLINTNEXTLINE(*-prefer-member-initializer)
    event_ = open<kLengthBytes>(TracePacket::kTrackEventFieldNumber);
    varint(TrackEvent::kTypeFieldNumber, static_cast<std::uint64_t>(type));
  }

  void add_category_iid(std::uint32_t iid) { varint(TrackEvent::kCategoryIidsFieldNumber, iid); }
  void set_name_iid(std::uint32_t iid) { varint(TrackEvent::kNameIidFieldNumber, iid); }
  void set_track_uuid(std::uint64_t uuid) { varint(TrackEvent::kTrackUuidFieldNumber, uuid); }
  void add_flow_id(std::uint64_t id) { fixed(TrackEvent::kFlowIdsFieldNumber, id); }

  void annotate_string(std::uint8_t name, std::uint32_t string_iid) {
    annotate(name, DebugAnnotation::kStringValueIidFieldNumber, string_iid);
  }
  void annotate_uint(std::uint8_t name, std::uint64_t value) {
    annotate(name, DebugAnnotation::kUintValueFieldNumber, value);
  }
  void annotate_true(std::uint8_t name) {
    annotate(name, DebugAnnotation::kBoolValueFieldNumber, 1);
  }

  void annotate_double(std::uint8_t name, double value) {
    std::uint8_t* annotation = annotate(name);
    fixed(DebugAnnotation::kDoubleValueFieldNumber, value);
    close<1>(annotation);
  }
  // Of at most 32 bytes.
  void annotate_text(std::uint8_t name, std::string_view text) {
    std::uint8_t* annotation = annotate(name);
    std::uint8_t* length = open<1>(DebugAnnotation::kStringValueFieldNumber);
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    close<1>(length);
    close<1>(annotation);
  }

  // The end of what was written.
  const std::uint8_t* finish() {
    close<kLengthBytes>(event_);
    close<kLengthBytes>(packet_);
    return at_;
  }

 private:
  void put(std::uint64_t value) { at_ = protozero::proto_utils::WriteVarInt(value, at_); }
  void varint(std::uint32_t field, std::uint64_t value) {
    put(protozero::proto_utils::MakeTagVarInt(field));
    put(value);
  }
  template <typename Value>
  void fixed(std::uint32_t field, Value value) {
    put(protozero::proto_utils::MakeTagFixed<Value>(field));
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }
  // A message, of which the length comes first: where that will be.
  template <std::size_t kBytes>
  std::uint8_t* open(std::uint32_t field) {
    put(protozero::proto_utils::MakeTagLengthDelimited(field));
    std::uint8_t* length = at_;
    at_ += kBytes;
    return length;
  }
  template <std::size_t kBytes>
  void close(std::uint8_t* length) {
    const auto size = static_cast<std::size_t>(at_ - length) - kBytes;
    if constexpr (kBytes == 1) {
      *length = static_cast<std::uint8_t>(size);
    } else {
      static_assert(kBytes == 2);
      length[0] = static_cast<std::uint8_t>(size | 0x80U);
      length[1] = static_cast<std::uint8_t>(size >> 7U);
    }
  }
  std::uint8_t* annotate(std::uint8_t name) {
    std::uint8_t* annotation = open<1>(TrackEvent::kDebugAnnotationsFieldNumber);
    varint(DebugAnnotation::kNameIidFieldNumber, name);
    return annotation;
  }
  void annotate(std::uint8_t name, std::uint32_t field, std::uint64_t value) {
    std::uint8_t* annotation = annotate(name);
    varint(field, value);
    close<1>(annotation);
  }

  std::uint8_t* at_;
  std::uint8_t* packet_;
  std::uint8_t* event_;
};

using SliceEvent = BasicSliceEvent<1>;
using WideSliceEvent = BasicSliceEvent<2>;

}  // namespace layertrace
