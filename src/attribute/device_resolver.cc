#include "attribute/device_resolver.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace layertrace {
namespace {

bool is_collective(std::string_view kernel) noexcept { return kernel.starts_with("nccl"); }

}  // namespace

// Nothing until its own record has come.
DeviceResolver::Call* DeviceResolver::find_call(std::uint32_t correlation) {
  Call* call = calls_.find(correlation);
  return call != nullptr && call->launched ? call : nullptr;
}

void DeviceResolver::tag(const DeviceTag& tag) {
  if (session_of_frame(tag.scope) == session_) make_call(tag.correlation).scope = tag.scope;
}

// None of those that came at once may push out another before it is looked for.
DeviceResolver::Call& DeviceResolver::make_call(std::uint32_t correlation) {
  if (Call* known = calls_.find(correlation)) return *known;
  const bool is_tight = ++new_calls_ > calls_.most() / 2 || calls_.would_lose();
  if (is_tight && calls_.most() < kMostCalls) calls_.grow();
  return calls_.of(correlation);
}

void DeviceResolver::launch(const DeviceLaunch& launch) {
  Call& known = make_call(launch.correlation);
  known.launch = launch;
  known.launched = true;
  if (launch.kind == CallKind::kWait) waits_.push_back(launch.correlation);
}

void DeviceResolver::activity(const DeviceActivity& activity) { waiting_.push_back(activity); }

void DeviceResolver::event_pair(const DeviceEventPair& pair) { pairs_.push_back(pair); }

void DeviceResolver::graph_node(const DeviceGraphNode& node) {
  if (graph_nodes_.size() >= kMostGraphNodes) return;
  graph_nodes_[node.node] = {node.frame, std::nullopt};
  unplaced_nodes_.push_back(node.node);
}

void DeviceResolver::sample(const DeviceSample& sample) {
  sink_.counter({scale_.to_ns(sample.ticks), sample.value, sample.device, sample.counter});
}

void DeviceResolver::settle(std::uint64_t horizon_ticks, bool last) {
  new_calls_ = 0;
  // A node's scope is looked for as soon as it can be: a replay comes when it is long forgotten.
  std::erase_if(unplaced_nodes_, [&](std::uint64_t id) {
    GraphNode& node = graph_nodes_[id];
    node.place = resolver_.place_of_frame(node.frame);
    return node.place.has_value();
  });
  std::erase_if(waits_, [&](std::uint32_t id) { return place_wait(id, horizon_ticks, last); });
  // What has waited for long waits in vain: a record was dropped.
  constexpr double kLongNs = 2e9;
  const auto long_ticks = static_cast<std::uint64_t>(kLongNs / scale_.ns_per_tick());
  std::erase_if(waiting_, [&](const DeviceActivity& activity) {
    const bool in_vain =
        horizon_ticks > long_ticks && activity.end_ticks < horizon_ticks - long_ticks;
    return place(activity, horizon_ticks, last || in_vain);
  });
  std::erase_if(pairs_, [&](const DeviceEventPair& pair) { return place_pair(pair, last); });
}

void DeviceResolver::finish() { settle(std::numeric_limits<std::uint64_t>::max(), /*last=*/true); }

bool DeviceResolver::awaits_kernels(std::uint64_t from_ticks, std::uint64_t until_ticks) const {
  return calls_.any([=](const Call& call) {
    return call.launched && !call.served && call.launch.kind == CallKind::kAsk &&
           !call.launch.asks_for_many && call.launch.start_ticks >= from_ticks &&
           call.launch.start_ticks < until_ticks;
  });
}

std::optional<Resolver::Place> DeviceResolver::place_of_call(const Call& call,
                                                             std::uint64_t horizon_ticks,
                                                             bool last) const {
  if (call.launch.start_ticks >= horizon_ticks) return std::nullopt;
  if (call.scope != 0) {
    const auto in_frame = resolver_.place_of_frame(call.scope);
    if (in_frame && in_frame->cause != Cause::kOldScope) return in_frame;
    if (!in_frame && !last) return std::nullopt;
  }
  // A thread without any scope, a scope that began very long ago, or its record was lost: the
  // moment tells.
  return resolver_.place_at(call.launch.tid, scale_.to_ns(call.launch.start_ticks));
}

std::optional<Resolver::Place> DeviceResolver::place_of_node(std::uint64_t node,
                                                             const Resolver::Place& launched,
                                                             bool last) {
  const auto known = graph_nodes_.find(node);
  if (known == graph_nodes_.end()) {
    Resolver::Place place = launched;
    place.cause = Cause::kEarlierGraph;
    return place;
  }
  if (!known->second.place && last) return launched;
  return known->second.place;
}

// Of a graph's node it is known where it was captured, whoever launched the graph.
Resolver::Place DeviceResolver::place_without_call(const DeviceActivity& activity) const {
  const Resolver::Place nowhere{.cause = Cause::kNoLaunch};
  const auto known = graph_nodes_.find(activity.graph_node);
  return known != graph_nodes_.end() ? known->second.place.value_or(nowhere) : nowhere;
}

bool DeviceResolver::place(const DeviceActivity& activity, std::uint64_t horizon_ticks, bool last) {
  Call* asked = find_call(activity.correlation);
  if (asked == nullptr) {
    if (last) hand_on(activity, place_without_call(activity), nullptr);
    return last;
  }
  const auto launched = place_of_call(*asked, horizon_ticks, last);
  if (!launched) return false;
  auto place = launched;
  if (activity.graph_node != 0) place = place_of_node(activity.graph_node, *launched, last);
  if (!place) return false;
  tell(*asked, *launched);
  if (is_served(*asked, activity)) {
    hand_on(activity, {.cause = Cause::kSharedCorrelation}, nullptr);
    return true;
  }
  hand_on(activity, *place, asked);
  return true;
}

bool DeviceResolver::place_wait(std::uint32_t correlation, std::uint64_t horizon_ticks, bool last) {
  Call* call = find_call(correlation);
  if (call == nullptr) return true;  // so long ago that its place was given to another
  const auto place = place_of_call(*call, horizon_ticks, last);
  if (place) tell(*call, *place);
  return place.has_value();
}

bool DeviceResolver::place_pair(const DeviceEventPair& pair, bool last) {
  Resolver::Place place{pair.layer, pair.phase, Cause::kNone, 0};
  if (pair.frame != 0) {
    const auto in_frame = resolver_.place_of_frame(pair.frame);
    if (!in_frame && !last) return false;
    if (in_frame && in_frame->layer == pair.layer) place = *in_frame;
  }
  sink_.event_pair({.start_ns = scale_.to_ns(pair.start_ticks),
                    .end_ns = scale_.to_ns(pair.end_ticks),
                    .host_ns = scale_.to_ns(pair.host_ticks),
                    .phase = place.phase,
                    .layer = place.layer,
                    .device = pair.device,
                    .stream = pair.stream,
                    .depth = pair.depth});
  return true;
}

// Each activity has an id of its own, says CUPTI's documentation. Of two with the same id one has
// that of another call, and nothing tells which other: the first that is of the kind that the call
// asks for is believed. Only a copy or set may come in pieces.
bool DeviceResolver::is_served(Call& call, const DeviceActivity& activity) noexcept {
  if (activity.graph_node != 0 || call.launch.asks_for_many) return false;
  const bool is_kernel = activity.kind == DeviceKind::kKernel;
  if (is_kernel != (call.launch.kind == CallKind::kAsk)) return true;
  const bool is_piece = activity.kind != DeviceKind::kKernel && activity.kind == call.kind;
  const bool is_other = call.served && !is_piece;
  if (!call.served) call.kind = activity.kind;
  call.served = true;
  return is_other;
}

// Once, before the first thing that it asked for.
void DeviceResolver::tell(Call& call, const Resolver::Place& place) {
  if (call.told) return;
  call.told = true;
  if (call.launch.start_ticks == 0) return;  // CUPTI did not tell when
  sink_.launch({.start_ns = scale_.to_ns(call.launch.start_ticks),
                .end_ns = scale_.to_ns(call.launch.end_ticks),
                .tid = call.launch.tid,
                .correlation = call.launch.correlation,
                .name = call.launch.name,
                .kind = call.launch.kind,
                .phase = place.phase,
                .layer = place.layer});
}

void DeviceResolver::hand_on(const DeviceActivity& activity, const Resolver::Place& place,
                             const Call* asked) {
  const bool keeps_cause = place.layer == kNoLayer || place.cause == Cause::kEarlierGraph ||
                           place.cause == Cause::kInferred;
  DeviceSpan span{.start_ns = scale_.to_ns(activity.start_ticks),
                  .end_ns = scale_.to_ns(activity.end_ticks),
                  .launch_ns = asked != nullptr && asked->launch.start_ticks != 0
                                   ? scale_.to_ns(asked->launch.start_ticks)
                                   : 0,
                  .launch_tid = asked != nullptr ? asked->launch.tid : 0,
                  .phase = place.phase,
                  .cause = keeps_cause ? place.cause : Cause::kNone,
                  .layer = place.layer,
                  .call = place.call,
                  .what = activity};
  if (is_collective(dictionary_.names[index(activity.name)])) {
    span.phase = Phase::kCommunication;
    span.cause = Cause::kNone;
    span.layer = kNoLayer;
  }
  sink_.device(span);
}

}  // namespace layertrace
