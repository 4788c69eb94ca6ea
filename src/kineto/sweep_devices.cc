// The part of the sweep that is about devices: calls, what they asked for, and what stands for
// layers where there are no modules.
#include "kineto/sweep.h"

namespace layertrace::kineto {

void Sweep::add_call(const HostEvent& event, std::size_t number) {
  Lane& lane = lanes_[event.thread];
  close_until(event.thread, lane, event);
  const NameMeaning& meaning = trace_.names.meaning(NameId{event.name});
  const bool asked =
      next_device_ < trace_.device.size() && trace_.device[next_device_].call == number;
  if (!asked && meaning.call != CallKind::kWait) {
    accounts_.move_to(Reason::kIdleCall);
    return;
  }
  // What only waits, or asks for what is in no layer, needs none to be made up.
  const bool makes_layer = asked && !trace_.device[next_device_].is_collective;
  const Place place = makes_layer ? launch_place(lane) : place_of(lane);
  sink_.launch({.start_ns = ns_of(event.start_ns),
                .end_ns = ns_of(event.end_ns),
                .tid = static_cast<std::uint32_t>(trace_.threads[event.thread].tid),
                .correlation = static_cast<std::uint32_t>(event.detail),
                .name = NameId{event.name},
                .kind = meaning.call,
                .phase = place.phase,
                .layer = place.layer});
  for (; next_device_ < trace_.device.size() && trace_.device[next_device_].call == number;
       ++next_device_) {
    hand_on(trace_.device[next_device_]);
  }
}

// Those that no call asked for, up to this event.
void Sweep::hand_on_until(std::size_t order) {
  while (next_device_ < trace_.device.size() && trace_.device[next_device_].order <= order &&
         trace_.device[next_device_].call == kNoCall) {
    hand_on(trace_.device[next_device_++]);
  }
}

void Sweep::hand_on(const DeviceEvent& device) {
  DeviceSpan span{.start_ns = ns_of(device.start_ns), .end_ns = ns_of(device.end_ns), .what = {}};
  std::uint32_t thread = kNoCall;
  bool is_graph = false;
  if (device.call != kNoCall) {
    const HostEvent& call = trace_.host[device.call];
    thread = call.thread;
    span.launch_ns = ns_of(call.start_ns);
    is_graph = trace_.names.meaning(NameId{call.name}).launches_graph;
  } else if (device.flow != kNoCall) {
    const FlowEnd& flow = trace_.launch_flows[device.flow];
    thread = flow.thread;
    span.launch_ns = ns_of(flow.ns);
    close_until(flow.thread, lanes_[thread],
                {.start_ns = flow.ns, .end_ns = flow.ns, .kind = HostKind::kCall});
  }
  if (thread != kNoCall) {
    const Lane& lane = lanes_[thread];
    const Place place = device.is_collective ? place_of(lane) : launch_place(lane);
    span.launch_tid = static_cast<std::uint32_t>(trace_.threads[thread].tid);
    span.phase = place.phase;
    span.layer = place.layer;
    span.call = place.call;
    span.cause = is_graph                  ? Cause::kEarlierGraph
                 : place.layer == kNoLayer ? place.cause
                                           : Cause::kNone;
  } else {
    const bool is_early =
        device.correlation < joined_.first_correlation || device.start_ns < joined_.first_ns;
    span.cause = !device.has_correlation     ? Cause::kNoCorrelation
                 : device.shares_correlation ? Cause::kSharedCorrelation
                 : is_early                  ? Cause::kBeforeWindow
                                             : Cause::kNoLaunch;
  }
  if (device.is_collective) {
    span.phase = Phase::kCommunication;
    span.cause = Cause::kNone;
    span.layer = kNoLayer;
  }
  const LaunchShape& shape = trace_.shapes[device.shape];
  span.what.bytes = device.bytes;
  span.what.graph_node = device.graph_node;
  span.what.correlation = static_cast<std::uint32_t>(device.correlation);
  span.what.name = device.name;
  span.what.device = device.device;
  span.what.context = device.context;
  span.what.stream = device.stream;
  span.what.kind = device.kind;
  span.what.registers = static_cast<std::uint16_t>(shape.registers);
  span.what.occupancy = shape.occupancy;
  span.what.shared_bytes = shape.shared_bytes;
  span.what.grid = shape.grid;
  span.what.block = shape.block;
  sink_.device(span);
}

// ---- Without modules ----

bool Sweep::stands_for_layer(const Lane& lane) const {
  const bool in_node = !lane.frames.empty() && lane.frames.back().in_node;
  return !structure_.has_modules && lane.operators.empty() && !in_node;
}

// Does the outermost operator of a node run a part of the forward again? With modules their calls
// tell.
bool Sweep::is_recomputed(const HostEvent& op, const Lane& lane) const {
  if (structure_.has_modules || !structure_.recomputes || lane.frames.empty()) return false;
  return lane.frames.back().kind == SpanKind::kNode && lane.operators.empty() &&
         sequence_of(op) != 0 && forward_thread_of(op) == 0;
}

Place Sweep::open_layer(const HostEvent& event, Lane& lane, LayerId layer, Phase phase) {
  const Place place{layer, phase, Cause::kNone, 0};
  push_frame(event.thread, lane,
             {.start_ns = event.start_ns, .end_ns = event.end_ns, .place = place},
             {.start_ns = ns_of(event.start_ns), .phase = phase, .layer = layer});
  return place;
}

// Where a call belongs that asks for something now. Without modules, in no operator, an annotation
// stands for one.
Place Sweep::launch_place(const Lane& lane) {
  Place place = place_of(lane);
  if (structure_.has_modules || place.phase == Phase::kOther) return place;
  const std::size_t running = run_begin(lane);
  const bool in_region = running != 0 && lane.frames[running - 1].kind == SpanKind::kRegion;
  if (in_region && lane.operators.empty() && lane.frames[running - 1].name != kNoName) {
    place.layer = operator_layers_.operator_in(place.phase, lane.frames[running - 1].name);
  } else if (place.layer == kNoLayer) {
    place.layer = operator_layers_.phase(place.phase);
  }
  place.cause = Cause::kNone;
  return place;
}

}  // namespace layertrace::kineto
