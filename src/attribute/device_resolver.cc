#include "attribute/device_resolver.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace layertrace {
namespace {

bool is_collective(std::string_view kernel) noexcept {
  return kernel.starts_with("ncclDevKernel") || kernel.starts_with("ncclKernel");
}

}  // namespace

DeviceResolver::Call& DeviceResolver::call(std::uint32_t correlation) {
  if (calls_.empty()) calls_.resize(kCalls);
  Call& call = calls_[correlation % kCalls];
  if (call.correlation != correlation) call = {.correlation = correlation};
  return call;
}

void DeviceResolver::tag(const DeviceTag& tag) { call(tag.correlation).scope = tag.scope; }

void DeviceResolver::launch(const DeviceLaunch& launch) {
  Call& known = call(launch.correlation);
  known.start_ticks = launch.start_ticks;
  known.tid = launch.tid;
  known.launched = true;
}

void DeviceResolver::activity(const DeviceActivity& activity) { waiting_.push_back(activity); }

void DeviceResolver::settle(std::uint64_t horizon_ticks) {
  std::erase_if(waiting_, [&](const DeviceActivity& activity) {
    return place(activity, horizon_ticks, false);
  });
}

void DeviceResolver::finish() {
  for (const DeviceActivity& activity : waiting_)
    place(activity, std::numeric_limits<std::uint64_t>::max(), true);
  waiting_.clear();
}

// False while something that it depends on may still come.
bool DeviceResolver::place(const DeviceActivity& activity, std::uint64_t horizon_ticks, bool last) {
  Resolver::Place place{.cause = Cause::kNoLaunch};
  const Call* asked = calls_.empty() ? nullptr : &calls_[activity.correlation % kCalls];
  if (asked != nullptr && (asked->correlation != activity.correlation || !asked->launched))
    asked = nullptr;
  if (asked == nullptr) {
    if (!last) return false;
    hand_on(activity, place, 0);
    return true;
  }
  if (asked->start_ticks >= horizon_ticks) return false;
  const std::uint64_t launch_ns = scale_.to_ns(asked->start_ticks);
  if (asked->scope != 0) {
    const auto in_frame = resolver_.place_of_frame(asked->scope);
    if (!in_frame && !last) return false;
    if (in_frame) place = *in_frame;
  }
  // Outside any module it is the moment that tells: the loss has no scope of its own.
  if (place.layer == kNoLayer && place.cause != Cause::kOldScope)
    place = resolver_.place_at(asked->tid, launch_ns);
  hand_on(activity, place, launch_ns);
  return true;
}

void DeviceResolver::hand_on(const DeviceActivity& activity, const Resolver::Place& place,
                             std::uint64_t launch_ns) {
  DeviceSpan span{.start_ns = scale_.to_ns(activity.start_ticks),
                  .end_ns = scale_.to_ns(activity.end_ticks),
                  .launch_ns = launch_ns,
                  .phase = place.phase,
                  .cause = place.layer != kNoLayer ? Cause::kNone : place.cause,
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
