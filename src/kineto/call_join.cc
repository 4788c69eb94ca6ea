#include "kineto/call_join.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <unordered_map>
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
  const auto same = std::ranges::equal_range(calls, device.correlation, {}, &CallId::correlation);
  if (same.empty()) return kNoCall;
  const auto later = std::ranges::upper_bound(
      same, device.start_ns, {},
      [&trace](const CallId& call) { return trace.host[call.event].start_ns; });
  return later == same.begin() ? later->event : std::prev(later)->event;
}

// Asks a device for one thing that is told of.
bool asks_for_one(const Trace& trace, const HostEvent& call) {
  const std::string_view name = trace.names.text(NameId{call.name});
  const auto has = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  return (has("Launch") && !has("GraphLaunch")) || has("emcpy") || has("emset");
}

bool is_inside(const HostEvent& call, const HostEvent& outer) {
  return call.thread == outer.thread && call.end_ns <= outer.end_ns;
}

// Calls that share their id with another, in order of time, and how much each seems to have asked
// for. Of one that calls another by the same id only the inner one is there.
struct SharedCalls {
  struct Count {
    std::size_t activities = 0;
    bool is_doubtful = false;
  };
  std::vector<std::vector<std::uint32_t>> by_id;
  std::unordered_map<std::uint32_t, Count> counts;
};

SharedCalls find_shared(const std::vector<CallId>& calls, const Trace& trace) {
  SharedCalls shared;
  for (auto first = calls.begin(), end = first; first != calls.end(); first = end) {
    end = std::find_if(first, calls.end(),
                       [&](const CallId& call) { return call.correlation != first->correlation; });
    if (end - first < 2) continue;  // nearly all
    std::vector<std::uint32_t> events;
    for (auto call = first; call != end; ++call) {
      if (!events.empty() && is_inside(trace.host[call->event], trace.host[events.back()]))
        events.pop_back();
      events.push_back(call->event);
    }
    if (events.size() < 2) continue;
    for (const std::uint32_t event : events) shared.counts[event] = {};
    shared.by_id.push_back(std::move(events));
  }
  return shared;
}

// Of two calls with one id, each has what it asked for before the other begins; or else nothing
// tells which of them asked for what comes later.
void doubt_shared(const std::vector<CallId>& calls, Trace& trace) {
  SharedCalls shared = find_shared(calls, trace);
  if (shared.by_id.empty()) return;
  for (const DeviceEvent& device : trace.device) {
    const auto found = shared.counts.find(device.call);
    if (found != shared.counts.end()) ++found->second.activities;
  }
  for (const std::vector<std::uint32_t>& events : shared.by_id) {
    bool is_owed = false;  // an earlier one's
    for (const std::uint32_t event : events) {
      SharedCalls::Count& count = shared.counts[event];
      const bool is_single = asks_for_one(trace, trace.host[event]);
      is_owed |= is_single && count.activities > 1;
      count.is_doubtful = is_owed;
      is_owed |= is_single && count.activities == 0;
    }
  }
  for (DeviceEvent& device : trace.device) {
    const auto found = shared.counts.find(device.call);
    if (found == shared.counts.end() || !found->second.is_doubtful) continue;
    device.call = kNoCall;
    device.shares_correlation = true;
  }
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
  }
  doubt_shared(calls, trace);
  for (DeviceEvent& device : trace.device) {
    if (device.call != kNoCall) {
      device.order = device.call;
      continue;
    }
    if (device.has_correlation && !device.shares_correlation)
      device.flow = flow_of(trace, device.correlation);
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
