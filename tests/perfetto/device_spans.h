// What devices did, made up: written as a trace, read back, and taken apart as Perfetto would.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/trace.h>

#include "attribute/span.h"
#include "perfetto/proto.h"
#include "perfetto/trace_writer.h"
#include "perfetto/traces.h"

namespace layertrace::test {

// A model with two layers, and the names of kernels and calls.
inline Dictionary a_dictionary() {
  Dictionary dictionary;
  dictionary.layers = {{.path = "", .type = "Net"},
                       {.path = "a", .name = "a", .type = "Linear", .parent = LayerId{0}},
                       {.path = "a.b", .name = "b", .type = "ReLU", .parent = LayerId{1}}};
  dictionary.names = {"gemm", "relu", "memcpy HtoD", "cudaLaunchKernel", "cudaStreamSynchronize"};
  return dictionary;
}

// Every call that comes of devices, as a line with all of its fields, in the order they came.
class DeviceLog final : public SpanSink {
 public:
  explicit DeviceLog(const Dictionary& dictionary) : dictionary_(dictionary) {}

  void open_lane(Lane, std::uint64_t, const std::string&) override {}
  void begin(Lane, const SpanBegin&) override {}
  void end(Lane, Track, std::uint64_t, EndedBy) override {}
  void window(Lane, std::uint64_t, bool, std::uint64_t) override {}
  void step(Lane, std::uint64_t, std::uint64_t) override {}
  void gap(Lane, std::uint64_t, std::uint64_t) override {}
  void device(const DeviceSpan& span) override {
    const DeviceActivity& what = span.what;
    lines.push_back(fmt::format(
        "device {} {} launch {} {} phase {} cause {} layer {} call {} bytes {} node {} "
        "correlation {} '{}' on {} {} {} kind {} registers {} occupancy {:a} shared {} "
        "grid {} {} {} block {} {} {}",
        span.start_ns, span.end_ns, span.launch_ns, span.launch_tid, static_cast<int>(span.phase),
        static_cast<int>(span.cause), path(span.layer), span.call, what.bytes, what.graph_node,
        what.correlation, name(what.name), what.device, what.context, what.stream,
        static_cast<int>(what.kind), what.registers, what.occupancy, what.shared_bytes,
        what.grid[0], what.grid[1], what.grid[2], what.block[0], what.block[1], what.block[2]));
  }

  void launch(const LaunchSpan& span) override {
    lines.push_back(fmt::format("launch {} {} thread {} correlation {} '{}' {} phase {} layer {}",
                                span.start_ns, span.end_ns, span.tid, span.correlation,
                                name(span.name), static_cast<int>(span.kind),
                                static_cast<int>(span.phase), path(span.layer)));
  }
  void event_pair(const EventSpan& span) override {
    lines.push_back(fmt::format("pair {} {} host {} phase {} layer {} on {} {} depth {}",
                                span.start_ns, span.end_ns, span.host_ns,
                                static_cast<int>(span.phase), path(span.layer), span.device,
                                span.stream, span.depth));
  }

  void counter(const CounterSpan& sample) override {
    lines.push_back(fmt::format("counter {} {} = {} on {}", sample.ns,
                                static_cast<int>(sample.counter), sample.value, sample.device));
  }

  std::vector<std::string> lines;

 private:
  std::string path(LayerId layer) const {
    return layer == kNoLayer ? "none" : "'" + dictionary_.layers.at(index(layer)).path + "'";
  }
  std::string name(NameId name) const {
    return name == kNoName ? "none" : dictionary_.names.at(index(name));
  }

  const Dictionary& dictionary_;
};

inline DeviceSpan kernel(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t stream = 7) {
  DeviceSpan span;
  span.start_ns = start_ns;
  span.end_ns = end_ns;
  span.what.name = NameId{0};
  span.what.stream = stream;
  span.what.grid = {1, 1, 1};
  span.what.block = {128, 1, 1};
  return span;
}

// The trace in which `tell` has told the writer of spans.
template <typename Tell>
Bytes write_devices(const Dictionary& dictionary, const Tell& tell) {
  Memory out;
  const auto writer = TraceWriter::make(dictionary, out, a_run());
  tell(*writer);
  writer->close(a_health(), kEnd);
  return out.bytes;
}

inline std::vector<std::string> read_devices(const Bytes& bytes) {
  const File file(bytes);
  Dictionary dictionary;
  DeviceLog log(dictionary);
  const auto summary = read_trace(file.path(), dictionary, log);
  EXPECT_TRUE(summary) << (summary ? "" : summary.error().message());
  return log.lines;
}

// ---- As Perfetto has it ----

struct TrackSlices {
  std::string name;
  std::uint64_t parent = 0;
  struct Edge {
    std::uint64_t ns;
    bool begins;
    std::vector<std::uint64_t> flows;
    std::set<std::string> annotations;  // their names
  };
  std::vector<Edge> edges;  // in the order of time; of one time, in the order of the file
};

// Tracks whose events come without a track of their own, in no order.
inline std::map<std::uint64_t, TrackSlices> loose_tracks(const Bytes& bytes) {
  std::map<std::uint64_t, TrackSlices> tracks;
  std::map<std::uint64_t, std::uint64_t> track_of_sequence;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> annotation_names;
  for (const ProtoField& field :
       fields({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    const auto packet = fields(field.bytes);
    if (const ProtoField* track = find(packet, proto_id::kTrack)) {
      const auto parts = fields(track->bytes);
      TrackSlices& described = tracks[find(parts, proto_id::kUuid)->number];
      if (const auto* name = find(parts, proto_id::kTrackName)) described.name = name->bytes;
      if (const auto* uuid = find(parts, proto_id::kParentUuid)) described.parent = uuid->number;
      continue;
    }
    const std::uint64_t sequence = find(packet, proto_id::kSequence)->number;
    if (sequence < 1U << 24) continue;
    if (const ProtoField* defaults = find(packet, proto_id::kDefaults)) {
      const auto event = fields(find(fields(defaults->bytes), proto_id::kEventDefaults)->bytes);
      track_of_sequence[sequence] = find(event, proto_id::kDefaultTrack)->number;
    }
    if (const ProtoField* interned = find(packet, proto_id::kInternedData)) {
      for (const ProtoField& each : fields(interned->bytes)) {
        if (each.id != proto_id::kAnnotationNames) continue;
        const auto entry = fields(each.bytes);
        annotation_names[{sequence, find(entry, proto_id::kIid)->number}] =
            find(entry, proto_id::kName)->bytes;
      }
    }
    const ProtoField* event = find(packet, proto_id::kTrackEvent);
    if (event == nullptr || !track_of_sequence.contains(sequence)) continue;
    const auto parts = fields(event->bytes);
    TrackSlices::Edge edge{find(packet, proto_id::kTimestamp)->number,
                           find(parts, proto_id::kType)->number == proto_id::kSliceBegin,
                           {},
                           {}};
    for (const ProtoField& part : parts) {
      if (part.id == proto_id::kFlowIds) edge.flows.push_back(part.number);
      if (part.id == proto_id::kAnnotations) {
        const std::uint64_t iid = find(fields(part.bytes), proto_id::kAnnotationName)->number;
        edge.annotations.insert(annotation_names.at({sequence, iid}));
      }
    }
    tracks[track_of_sequence[sequence]].edges.push_back(edge);
  }
  for (auto& [uuid, track] : tracks) {
    std::stable_sort(track.edges.begin(), track.edges.end(),
                     [](const auto& a, const auto& b) { return a.ns < b.ns; });
  }
  return tracks;
}

// Each slice has ended when the next one begins.
inline void expect_no_overlap(const std::map<std::uint64_t, TrackSlices>& tracks) {
  for (const auto& [uuid, track] : tracks) {
    bool begins = true;
    for (const auto& edge : track.edges) {
      ASSERT_EQ(edge.begins, begins) << "on " << track.name << " at " << edge.ns;
      begins = !begins;
    }
    EXPECT_TRUE(begins) << track.name;
  }
}

inline std::size_t tracks_named(const std::map<std::uint64_t, TrackSlices>& tracks,
                                std::string_view beginning) {
  return static_cast<std::size_t>(
      std::count_if(tracks.begin(), tracks.end(),
                    [&](const auto& each) { return each.second.name.starts_with(beginning); }));
}

}  // namespace layertrace::test
