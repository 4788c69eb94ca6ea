// Just enough of the protobuf encoding to take a trace apart and to put packets together, without
// the library under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace layertrace::test {

struct ProtoField {
  std::uint32_t id = 0;
  std::uint64_t number = 0;  // of a varint or a fixed one
  std::string_view bytes;    // of a length-delimited one
};

inline std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return {};
}

// The fields of a message, up to the first that is not whole.
inline std::vector<ProtoField> fields(std::string_view bytes) {
  std::vector<ProtoField> result;
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    if (!tag) break;
    ProtoField field;
    field.id = static_cast<std::uint32_t>(*tag >> 3);
    const std::uint64_t type = *tag & 7;
    if (type == 0) {
      const auto value = take_varint(bytes);
      if (!value) break;
      field.number = *value;
    } else if (type == 2) {
      const auto size = take_varint(bytes);
      if (!size || *size > bytes.size()) break;
      field.bytes = bytes.substr(0, *size);
      bytes.remove_prefix(*size);
    } else {
      const std::size_t size = type == 1 ? 8 : 4;
      if (bytes.size() < size) break;
      std::memcpy(&field.number, bytes.data(), size);
      bytes.remove_prefix(size);
    }
    result.push_back(field);
  }
  return result;
}

inline const ProtoField* find(const std::vector<ProtoField>& all, std::uint32_t id) {
  for (const ProtoField& field : all) {
    if (field.id == id) return &field;
  }
  return nullptr;
}

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number_field(std::uint32_t id, std::uint64_t value) {
  return varint(std::uint64_t{id} << 3) + varint(value);
}
inline std::string bytes_field(std::uint32_t id, std::string_view bytes) {
  return varint(std::uint64_t{id} << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

// Numbers of the fields of Perfetto's messages that the tests name.
namespace proto_id {
inline constexpr std::uint32_t kPacket = 1;           // Trace
inline constexpr std::uint32_t kTimestamp = 8;        // TracePacket
inline constexpr std::uint32_t kSequence = 10;        // TracePacket
inline constexpr std::uint32_t kTrackEvent = 11;      // TracePacket
inline constexpr std::uint32_t kInternedData = 12;    // TracePacket
inline constexpr std::uint32_t kClockSnapshot = 6;    // TracePacket
inline constexpr std::uint32_t kClocks = 1;           // ClockSnapshot
inline constexpr std::uint32_t kClockId = 1;          // ClockSnapshot.Clock
inline constexpr std::uint32_t kClockTime = 2;        // ClockSnapshot.Clock
inline constexpr std::uint32_t kDefaults = 59;        // TracePacket
inline constexpr std::uint32_t kTrack = 60;           // TracePacket
inline constexpr std::uint32_t kEventDefaults = 11;   // TracePacketDefaults
inline constexpr std::uint32_t kDefaultTrack = 11;    // TrackEventDefaults
inline constexpr std::uint32_t kUuid = 1;             // TrackDescriptor
inline constexpr std::uint32_t kTrackName = 2;        // TrackDescriptor
inline constexpr std::uint32_t kParentUuid = 5;       // TrackDescriptor
inline constexpr std::uint32_t kEventNames = 2;       // InternedData
inline constexpr std::uint32_t kIid = 1;              // EventName
inline constexpr std::uint32_t kName = 2;             // EventName
inline constexpr std::uint32_t kType = 9;             // TrackEvent
inline constexpr std::uint32_t kNameIid = 10;         // TrackEvent
inline constexpr std::uint32_t kTrackUuid = 11;       // TrackEvent
inline constexpr std::uint32_t kAnnotations = 4;      // TrackEvent
inline constexpr std::uint32_t kAnnotationName = 1;   // DebugAnnotation
inline constexpr std::uint32_t kAnnotationNames = 3;  // InternedData
inline constexpr std::uint32_t kFlowIds = 47;         // TrackEvent
inline constexpr std::uint64_t kSliceBegin = 1;       // TrackEvent.Type
inline constexpr std::uint64_t kSliceEnd = 2;         // TrackEvent.Type
}  // namespace proto_id

// The packets of a trace, each with its tag and length.
inline std::vector<std::string> packets(std::string_view trace) {
  std::vector<std::string> result;
  for (const ProtoField& field : fields(trace)) {
    if (field.id == proto_id::kPacket)
      result.push_back(bytes_field(proto_id::kPacket, field.bytes));
  }
  return result;
}

}  // namespace layertrace::test
