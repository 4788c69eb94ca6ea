#include "kineto/call_join.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace layertrace::kineto {
namespace {

struct CallId {
  std::uint64_t correlation;
  std::uint32_t event;
};

// Of several with the same id, the last that began before it.
std::uint32_t call_of(const std::vector<CallId>& calls, const Trace& trace,
                      const DeviceEvent& device) {
  auto found = std::ranges::lower_bound(calls, device.correlation, {}, &CallId::correlation);
  if (found == calls.end() || found->correlation != device.correlation) return kNoCall;
  std::uint32_t call = found->event;
  for (++found; found != calls.end() && found->correlation == device.correlation; ++found) {
    if (trace.host[found->event].start_ns > device.start_ns) break;
    call = found->event;
  }
  return call;
}

std::uint32_t flow_of(const Trace& trace, std::uint64_t id) {
  const auto* found = std::ranges::lower_bound(trace.launch_flows, id, {}, &FlowEnd::id);
  if (found == trace.launch_flows.end() || found->id != id) return kNoCall;
  return static_cast<std::uint32_t>(found - trace.launch_flows.begin());
}

// The first event on the host that is not before.
std::uint32_t order_at(const Trace& trace, std::int64_t ns) {
  const auto* found = std::ranges::lower_bound(trace.host, ns, {}, &HostEvent::start_ns);
  return static_cast<std::uint32_t>(found - trace.host.begin());
}

// Where an activity says nothing of its shape or size, its call may.
void take_shapes_of_calls(Trace& trace) {
  if (trace.call_shapes.empty()) return;
  std::ranges::sort(trace.call_shapes, {}, &CallShape::correlation);
  for (DeviceEvent& device : trace.device) {
    const LaunchShape& shape = trace.shapes[device.shape];
    const bool is_known =
        device.kind == DeviceKind::kKernel ? shape.grid[0] != 0 : device.bytes != 0;
    if (is_known || !device.has_correlation) continue;
    const auto* found = std::ranges::lower_bound(trace.call_shapes, device.correlation, {},
                                                 &CallShape::correlation);
    if (found == trace.call_shapes.end() || found->correlation != device.correlation) continue;
    if (device.kind == DeviceKind::kKernel) {
      device.shape = found->shape;
    } else {
      device.bytes = found->bytes;
    }
  }
}

}  // namespace

JoinedCalls join_calls(Trace& trace) {
  take_shapes_of_calls(trace);
  JoinedCalls joined;
  std::vector<CallId> calls;
  for (std::size_t i = 0; i < trace.host.size(); ++i) {
    const HostEvent& event = trace.host[i];
    if (event.kind == HostKind::kCall && event.detail != 0)
      calls.push_back({event.detail, static_cast<std::uint32_t>(i)});
  }
  std::ranges::sort(calls, {},
                    [](const CallId& call) { return std::tuple(call.correlation, call.event); });
  std::ranges::sort(trace.launch_flows, {},
                    [](const FlowEnd& end) { return std::tuple(end.id, end.ns); });
  if (!calls.empty()) joined.first_correlation = calls.front().correlation;
  if (!trace.host.empty()) joined.first_ns = trace.host[0].start_ns;

  for (DeviceEvent& device : trace.device) {
    if (device.has_correlation) device.call = call_of(calls, trace, device);
    if (device.call != kNoCall) {
      device.order = device.call;
      continue;
    }
    if (device.has_correlation) device.flow = flow_of(trace, device.correlation);
    device.order = order_at(
        trace, device.flow != kNoCall ? trace.launch_flows[device.flow].ns : device.start_ns);
  }
  // Those without a call first: they may be of a moment before it.
  std::ranges::sort(trace.device, {}, [](const DeviceEvent& device) {
    return std::tuple(device.order, device.call != kNoCall, device.start_ns, device.end_ns,
                      device.device, device.stream, index(device.name));
  });
  return joined;
}

}  // namespace layertrace::kineto
