#include "attribute/device_idle.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace layertrace {
namespace {

constexpr std::size_t kMostChanges = std::size_t{1} << 18;  // of a thread's timeline

// Layer, phase and cause as one number.
std::uint64_t charge_key(LayerId layer, Phase phase, IdleCause cause) noexcept {
  const std::uint64_t place =
      layer == kNoLayer ? static_cast<std::uint64_t>(phase) : kPhaseCount + slot(layer, phase);
  return place * kIdleCauseCount + static_cast<std::uint64_t>(cause);
}

Idle place_of_key(std::uint64_t key) noexcept {
  const std::uint64_t place = key / kIdleCauseCount;
  Idle idle;
  idle.layer = place < kPhaseCount ? -1 : static_cast<int>(place / kPhaseCount) - 1;
  idle.phase = static_cast<Phase>(place % kPhaseCount);
  idle.cause = static_cast<IdleCause>(key % kIdleCauseCount);
  return idle;
}

template <typename T>
void sort_if_needed(std::vector<T>& items) {
  if (!std::is_sorted(items.begin(), items.end())) std::sort(items.begin(), items.end());
}

// Moves what begins at `ns` or later to the other.
template <typename T>
void move_later(std::vector<T>& from, std::vector<T>& to, std::uint64_t ns) {
  const auto later = std::stable_partition(from.begin(), from.end(),
                                           [ns](const T& each) { return each.start_ns < ns; });
  to.insert(to.end(), later, from.end());
  from.erase(later, from.end());
}

}  // namespace

void DeviceIdle::move(std::uint32_t tid, std::uint64_t ns, LayerId layer, Phase phase) {
  std::deque<Change>& changes = timelines_[tid].changes;
  if (steps_.empty()) changes.clear();  // before the first step only the last place matters
  if (changes.size() >= kMostChanges) changes.pop_front();
  changes.push_back({ns, layer, phase});
}

// The step in which it began. What began before the first counts from there on.
DeviceIdle::OpenStep* DeviceIdle::step_of(std::uint64_t start_ns, std::uint64_t end_ns) {
  if (steps_.empty()) return nullptr;
  if (start_ns >= steps_.back().start_ns) return &steps_.back();
  const auto after = std::ranges::upper_bound(steps_, start_ns, {}, &OpenStep::start_ns);
  if (after != steps_.begin()) return &*std::prev(after);
  return end_ns > steps_.front().start_ns ? &steps_.front() : nullptr;
}

DeviceIdle::Device& DeviceIdle::device_of(OpenStep& step, std::uint32_t device) {
  for (Device& each : step.devices) {
    if (each.sums.device == device) return each;
  }
  Device& fresh = step.devices.emplace_back();
  fresh.sums.device = device;
  fresh.settled_ns = step.start_ns;
  if (!spares_.empty()) {
    fresh.ran = std::move(spares_.back());
    spares_.pop_back();
  }
  return fresh;
}

void DeviceIdle::add(OpenStep& step, std::uint32_t device, const Ran& ran) {
  device_of(step, device).ran.push_back(ran);
  step.latest_ns = std::max(step.latest_ns, ran.start_ns);
}

void DeviceIdle::activity(const DeviceSpan& span) {
  OpenStep* const step = step_of(span.start_ns, span.end_ns);
  if (step == nullptr) return;
  add(*step, span.what.device,
      {span.start_ns, std::max(span.start_ns, span.end_ns), span.launch_ns, span.launch_tid,
       span.layer, span.phase, span.what.kind != DeviceKind::kKernel,
       span.phase == Phase::kCommunication});
  Device& device = device_of(*step, span.what.device);
  if (device.ran.size() >= most_activities_) settle_half(*step, device);
}

void DeviceIdle::call(const LaunchSpan& span) {
  if (span.kind == CallKind::kAsk) return;
  OpenStep* const step = step_of(span.start_ns, span.end_ns);
  if (step == nullptr || step->calls.size() >= most_activities_) return;
  step->calls.push_back({span.tid, span.start_ns, span.end_ns, span.kind});
  step->latest_ns = std::max(step->latest_ns, span.start_ns);
}

void DeviceIdle::begin_step(std::uint64_t ns) {
  steps_.emplace_back().start_ns = ns;
  if (steps_.size() > 1) hand_over(steps_[steps_.size() - 2], steps_.back());
}

// What came before the step to which it belongs began.
void DeviceIdle::hand_over(OpenStep& from, OpenStep& to) {
  if (from.latest_ns < to.start_ns) return;
  for (Device& device : from.devices) {
    const auto is_later = [&](const Ran& ran) { return ran.start_ns >= to.start_ns; };
    if (std::ranges::any_of(device.ran, is_later))
      move_later(device.ran, device_of(to, device.sums.device).ran, to.start_ns);
  }
  move_later(from.calls, to.calls, to.start_ns);
  to.latest_ns = from.latest_ns;
}

void DeviceIdle::end_step(std::uint64_t ns, std::uint32_t tid) {
  steps_.back().end_ns = ns;
  steps_.back().tid = tid;
}

std::vector<DeviceStep> DeviceIdle::fold_oldest(StepSums& sums) {
  OpenStep step = std::move(steps_.front());
  steps_.pop_front();
  for (const std::uint32_t device : known_) device_of(step, device);
  std::vector<DeviceStep> result;
  for (Device& device : step.devices) {
    settle(step, device, step.end_ns);
    result.push_back(device.sums);
    if (std::ranges::find(known_, device.sums.device) == known_.end())
      known_.push_back(device.sums.device);
    for (const Ran& ran : device.ran) {  // what goes on
      if (!steps_.empty() && ran.end_ns > steps_.front().start_ns)
        add(steps_.front(), device.sums.device, ran);
    }
  }
  std::ranges::sort(result, {}, &DeviceStep::device);
  if (!steps_.empty()) {
    for (const Call& call : step.calls) {
      if (call.end_ns > steps_.front().start_ns) steps_.front().calls.push_back(call);
    }
  }
  charges_.resize(keys_.size());
  for (std::size_t i = 0; i < step.charges.size(); ++i) {
    const Charge& charge = step.charges[i];
    if (charge.ns == 0) continue;
    const Idle place = place_of_key(keys_[i]);
    Cell& cell = place.layer < 0
                     ? sums.outside(place.phase)
                     : sums.cell(LayerId{static_cast<std::uint32_t>(place.layer)}, place.phase);
    cell.idle_ns += charge.ns;
    charges_[i].ns += charge.ns;
    charges_[i].gaps += charge.gaps;
  }
  forget_until(step.end_ns);
  for (Device& device : step.devices) {
    device.ran.clear();
    spares_.push_back(std::move(device.ran));
  }
  return result;
}

// A step may have no end. Up to the start of an activity no gap is cut in two.
void DeviceIdle::settle_half(OpenStep& step, Device& device) {
  auto& ran = device.ran;
  const auto middle = ran.begin() + static_cast<std::ptrdiff_t>(ran.size() / 2);
  std::nth_element(ran.begin(), middle, ran.end());
  const std::uint64_t until_ns = middle->start_ns;
  if (until_ns > device.settled_ns) settle(step, device, until_ns);
  if (ran.size() >= most_activities_) ran.resize(most_activities_ / 2);  // all at one time
}

// Adds what the device did in the step up to `until_ns`, and keeps what goes on.
void DeviceIdle::settle(OpenStep& step, Device& device, std::uint64_t until_ns) {
  sort_if_needed(device.ran);
  sort_if_needed(step.calls);
  const std::uint64_t from_ns = std::exchange(device.settled_ns, until_ns);
  std::uint64_t busy_until_ns = from_ns;
  std::uint64_t kernel_until_ns = from_ns;
  std::uint64_t compute_until_ns = from_ns;
  std::uint64_t busy_ns = 0;
  std::uint64_t kernel_ns = 0;
  std::uint64_t compute_ns = 0;
  const auto cover = [](std::uint64_t& covered_until_ns, std::uint64_t start, std::uint64_t end) {
    if (end <= covered_until_ns) return std::uint64_t{0};
    const std::uint64_t ns = end - std::max(start, covered_until_ns);
    covered_until_ns = end;
    return ns;
  };
  for (const Ran& ran : device.ran) {
    if (ran.start_ns > until_ns) break;
    const std::uint64_t end_ns = std::min(ran.end_ns, until_ns);
    if (ran.start_ns > busy_until_ns) charge_gap(step, busy_until_ns, ran);
    busy_until_ns = std::max(busy_until_ns, ran.start_ns);
    busy_ns += cover(busy_until_ns, ran.start_ns, end_ns);
    if (ran.is_copy) continue;
    kernel_ns += cover(kernel_until_ns, ran.start_ns, end_ns);
    if (!ran.is_communication) compute_ns += cover(compute_until_ns, ran.start_ns, end_ns);
  }
  if (busy_until_ns < until_ns) {  // nothing followed: who ended the step was to ask for it
    ++gap_;
    charge_host(step, step.tid, busy_until_ns, until_ns, /*before_copy=*/false);
  }
  device.sums.busy_ns += busy_ns;
  device.sums.idle_ns += until_ns - std::min(until_ns, from_ns + busy_ns);
  device.sums.exposed_copy_ns += busy_ns - kernel_ns;
  device.sums.exposed_communication_ns += kernel_ns - compute_ns;
  std::erase_if(device.ran, [until_ns](const Ran& ran) { return ran.end_ns <= until_ns; });
}

void DeviceIdle::charge_gap(OpenStep& step, std::uint64_t start_ns, const Ran& next) {
  ++gap_;
  if (next.launch_ns == 0)
    return charge_host(step, step.tid, start_ns, next.start_ns, next.is_copy);
  const std::uint64_t asked_ns = std::clamp(next.launch_ns, start_ns, next.start_ns);
  charge_host(step, next.launch_tid, start_ns, asked_ns, next.is_copy);
  charge_latency(step, next, asked_ns);
}

// nullptr for a thread that was nowhere.
DeviceIdle::Timeline* DeviceIdle::timeline_of(std::uint32_t tid) {
  const auto known = timelines_.find(tid);
  return known != timelines_.end() ? &known->second : nullptr;
}

// From asking to starting the device is on its way, whatever the host does meanwhile.
void DeviceIdle::charge_latency(OpenStep& step, const Ran& next, std::uint64_t asked_ns) {
  const IdleCause cause = next.is_copy ? IdleCause::kCopy : IdleCause::kLaunch;
  Timeline* const timeline = timeline_of(next.launch_tid);
  if (timeline == nullptr)  // all that is known of it is what it asked for
    return charge(step, next.layer, next.phase, cause, next.start_ns - asked_ns);
  while (asked_ns < next.start_ns) {
    std::uint64_t until_ns = next.start_ns;
    const Change place = place_at(timeline, asked_ns, until_ns);
    charge(step, place.layer, place.phase, cause, until_ns - asked_ns);
    asked_ns = until_ns;
  }
}

// By where the thread was, piece by piece.
void DeviceIdle::charge_host(OpenStep& step, std::uint32_t tid, std::uint64_t start_ns,
                             std::uint64_t end_ns, bool before_copy) {
  Timeline* const timeline = timeline_of(tid);
  while (start_ns < end_ns) {
    std::uint64_t until_ns = end_ns;
    const Change place = place_at(timeline, start_ns, until_ns);
    const std::optional<CallKind> call = call_at(step.calls, tid, start_ns, until_ns);
    const bool loads = place.phase == Phase::kData;
    IdleCause cause = loads ? IdleCause::kData : IdleCause::kLaunch;
    if ((before_copy && !loads) || call == CallKind::kCopy) cause = IdleCause::kCopy;
    if (call == CallKind::kWait) cause = IdleCause::kSynchronisation;
    charge(step, place.layer, place.phase, cause, until_ns - start_ns);
    start_ns = until_ns;
  }
}

// Where the thread was at a moment; lowers `until_ns` to where that ends.
DeviceIdle::Change DeviceIdle::place_at(Timeline* timeline, std::uint64_t ns,
                                        std::uint64_t& until_ns) {
  if (timeline == nullptr || timeline->changes.empty()) return {};
  auto& [changes, at] = *timeline;
  if (at >= changes.size() || changes[at].ns > ns) at = 0;
  while (at + 1 < changes.size() && changes[at + 1].ns <= ns) ++at;
  const bool before_first = changes[at].ns > ns;
  const std::size_t next = before_first ? at : at + 1;
  if (next < changes.size()) until_ns = std::min(until_ns, changes[next].ns);
  return before_first ? Change{} : changes[at];
}

// In what kind of call it was, if in any; likewise.
std::optional<CallKind> DeviceIdle::call_at(const std::vector<Call>& calls, std::uint32_t tid,
                                            std::uint64_t ns, std::uint64_t& until_ns) {
  const auto next = std::ranges::upper_bound(calls, std::tuple(tid, ns), {}, [](const Call& call) {
    return std::tuple(call.tid, call.start_ns);
  });
  if (next != calls.end() && next->tid == tid) until_ns = std::min(until_ns, next->start_ns);
  if (next == calls.begin()) return std::nullopt;
  const Call& last = *std::prev(next);
  if (last.tid != tid || last.end_ns <= ns) return std::nullopt;
  until_ns = std::min(until_ns, last.end_ns);
  return last.kind;
}

std::size_t DeviceIdle::number_of(std::uint64_t key) {
  if (key == last_key_) return last_number_;
  const auto [known, fresh] = numbers_.try_emplace(key, keys_.size());
  if (fresh) keys_.push_back(key);
  last_key_ = key;
  return last_number_ = known->second;
}

void DeviceIdle::charge(OpenStep& step, LayerId layer, Phase phase, IdleCause cause,
                        std::uint64_t ns) {
  if (ns == 0) return;
  const std::size_t number = number_of(charge_key(layer, phase, cause));
  if (number >= step.charges.size()) step.charges.resize(keys_.size());
  Charge& charge = step.charges[number];
  charge.ns += ns;
  if (std::exchange(charge.last_gap, gap_) != gap_) ++charge.gaps;
}

// Of what threads did until then, where they are is all that matters.
void DeviceIdle::forget_until(std::uint64_t ns) {
  for (auto it = timelines_.begin(); it != timelines_.end();) {
    auto& [changes, at] = it->second;
    at = 0;
    const auto later = std::ranges::upper_bound(changes, ns, {}, &Change::ns);
    if (later != changes.begin()) changes.erase(changes.begin(), std::prev(later));
    // Programs may start very many threads.
    const bool nowhere =
        changes.size() == 1 && changes[0].layer == kNoLayer && changes[0].phase == Phase::kOther;
    it = nowhere ? timelines_.erase(it) : std::next(it);
  }
}

std::vector<Idle> DeviceIdle::idle(std::uint64_t steps) const {
  std::vector<Idle> result;
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    const Charge& charge = charges_[i];
    if (charge.ns == 0) continue;
    Idle idle = place_of_key(keys_[i]);
    idle.ns = static_cast<double>(charge.ns) / static_cast<double>(steps);
    idle.gaps = static_cast<double>(charge.gaps) / static_cast<double>(steps);
    result.push_back(idle);
  }
  std::ranges::sort(result, [](const Idle& a, const Idle& b) {
    return std::tie(b.ns, a.layer, a.phase, a.cause) < std::tie(a.ns, b.layer, b.phase, b.cause);
  });
  return result;
}

}  // namespace layertrace
