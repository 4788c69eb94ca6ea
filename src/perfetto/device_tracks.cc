#include "perfetto/device_tracks.h"

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "perfetto/format.h"
#include "perfetto/slice_strings.h"

namespace layertrace {
namespace {

// "128x1x1".
class Extent {
 public:
  explicit Extent(const std::array<std::uint32_t, 3>& size) {
    for (std::size_t i = 0; i < size.size(); ++i) {
      if (i != 0) *end_++ = 'x';
      end_ = std::to_chars(end_, text_.data() + text_.size(), size[i]).ptr;
    }
  }
  std::string_view text() const { return {text_.data(), end_}; }

 private:
  std::array<char, 32> text_;  // three numbers of ten digits
  char* end_ = text_.data();
};

void describe_what(WideSliceEvent& event, const DeviceActivity& what) {
  const auto number = [&event](annotation::Id name, std::uint64_t value) {
    if (value != 0) event.annotate_uint(name, value);
  };
  if (what.kind == DeviceKind::kKernel) {
    event.annotate_text(annotation::kGrid, Extent(what.grid).text());
    event.annotate_text(annotation::kBlock, Extent(what.block).text());
    event.annotate_uint(annotation::kRegisters, what.registers);
    number(annotation::kSharedBytes, what.shared_bytes);
    if (what.occupancy != 0)
      event.annotate_double(annotation::kOccupancy, format::to_percent(what.occupancy));
  } else {
    event.annotate_text(annotation::kKind, format::kind_name(what.kind));
    event.annotate_uint(annotation::kBytes, what.bytes);
  }
  event.annotate_uint(annotation::kCorrelation, what.correlation);
  number(annotation::kContext, what.context);
  number(annotation::kGraphNode, what.graph_node);
}

}  // namespace

void DeviceTracks::device(const DeviceSpan& span) {
  const DeviceActivity& what = span.what;
  const std::uint64_t first = format::stream_track(what.device, what.stream, 0);
  Sequence& sequence =
      activities_.track(first, span.start_ns, span.end_ns, [&](std::uint32_t sibling) {
        const std::uint64_t uuid = format::stream_track(what.device, what.stream, sibling);
        const std::string name = "stream " + std::to_string(what.stream);
        packets_.describe_track(uuid, groups_.track(what.device),
                                sibling == 0 ? name : name + ", overlapping");
        return uuid;
      });
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = strings.name(what.name);
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, span.cause);

  WideSliceEvent event = activities_.begin(sequence, span.start_ns, category, name);
  if (span.launch_ns != 0) event.add_flow_id(format::kCorrelationFlows | what.correlation);
  if (span.call != 0) event.add_flow_id(span.call);
  owner.annotate(event);
  describe_what(event, what);
  if (span.launch_ns != 0) event.annotate_uint(annotation::kLaunch, span.launch_ns);
  if (span.launch_tid != 0) event.annotate_uint(annotation::kLaunchThread, span.launch_tid);
  if (span.start_ns < span.launch_ns) event.annotate_true(annotation::kEarly);
  activities_.end(sequence, event, span.end_ns);
  counters_.activity(span);
}

// Below its thread, if that has a track.
void DeviceTracks::describe_calls(std::uint64_t track, std::uint32_t tid) {
  const auto thread = thread_tracks_.find(tid);
  if (thread != thread_tracks_.end()) {
    packets_.describe_track(track, thread->second, "CUDA calls");
  } else {
    packets_.describe_track(track, format::kProcessTrack,
                            "CUDA calls of thread " + std::to_string(tid));
  }
}

void DeviceTracks::launch(const LaunchSpan& span) {
  Sequence& sequence = calls_.track(format::call_track(span.tid, 0), span.start_ns, span.end_ns,
                                    [&](std::uint32_t sibling) {
                                      const auto uuid = format::call_track(span.tid, sibling);
                                      describe_calls(uuid, span.tid);
                                      return uuid;
                                    });
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = span.name != kNoName ? strings.name(span.name) : 0;
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, Cause::kNone);

  WideSliceEvent event = calls_.begin(sequence, span.start_ns, category, name);
  event.add_flow_id(format::kCorrelationFlows | span.correlation);
  owner.annotate(event);
  event.annotate_uint(annotation::kCorrelation, span.correlation);
  event.annotate_text(annotation::kKind, format::kind_name(span.kind));
  calls_.end(sequence, event, span.end_ns);
}

void DeviceTracks::event_pair(const EventSpan& span) {
  const auto track = [&span](std::uint32_t sibling) {
    return format::layer_track(span.device, span.stream, span.depth, sibling);
  };
  Sequence& sequence =
      layers_.track(track(0), span.start_ns, span.end_ns, [&](std::uint32_t sibling) {
        std::string name = "stream " + std::to_string(span.stream) + " layers";
        if (span.depth != 0) name += ", depth " + std::to_string(span.depth);
        if (sibling != 0) name += ", overlapping";
        packets_.describe_track(track(sibling), groups_.track(span.device), name);
        return track(sibling);
      });
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = span.layer != kNoLayer ? strings.name(span.layer) : 0;
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, Cause::kNone);

  WideSliceEvent event = layers_.begin(sequence, span.start_ns, category, name);
  owner.annotate(event);
  event.annotate_uint(annotation::kHost, span.host_ns);
  event.annotate_uint(annotation::kDepth, span.depth);
  layers_.end(sequence, event, span.end_ns);
}

}  // namespace layertrace
