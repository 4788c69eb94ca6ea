#include "kineto/forward_places.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace layertrace::kineto {
namespace {

auto by_thread_and_time(const FlowEnd& end) { return std::tuple(end.thread, end.ns); }

std::uint64_t key_of(std::uint16_t thread, std::uint64_t sequence) {
  return std::uint64_t{thread} << 48 | sequence;
}

}  // namespace

ForwardPlaces::ForwardPlaces(Trace& trace)
    : starts_(trace.forward_flows),
      ends_(trace.backward_flows),
      starts_by_id_(trace.forward_flows.size()),
      next_start_(trace.threads.size()),
      start_places_(trace.forward_flows.size()),
      start_passed_(trace.forward_flows.size()),
      made_(trace.threads.size()),
      thread_of_id_(std::size_t{1} << 16, kNoCall) {
  std::ranges::sort(trace.forward_flows, {}, by_thread_and_time);
  std::ranges::sort(trace.backward_flows, {}, by_thread_and_time);
  std::iota(starts_by_id_.begin(), starts_by_id_.end(), 0U);
  std::ranges::sort(starts_by_id_, {}, [this](std::uint32_t i) { return starts_[i].id; });
  for (std::size_t i = starts_.size(); i-- != 0;) next_start_[starts_[i].thread] = i;
}

void ForwardPlaces::add(const HostEvent& op, const Place& place) {
  std::size_t& next = next_start_[op.thread];
  while (next < starts_.size() && starts_[next].thread == op.thread &&
         starts_[next].ns <= op.start_ns) {
    if (starts_[next].ns == op.start_ns) {
      start_places_[next] = place;
      start_passed_[next] = true;
    }
    ++next;
  }
  const std::uint64_t sequence = sequence_of(op);
  if (sequence == 0) return;
  auto& made = made_[op.thread];
  if (made.empty() || made.back().sequence < sequence) {
    made.push_back({sequence, place});
    return;
  }
  const auto known = std::ranges::lower_bound(made, sequence, {}, &Made::sequence);
  if (known->sequence == sequence) {
    known->place = place;
  } else {
    made_late_[key_of(op.thread, sequence)] = place;
  }
}

// The first that ends inside it: at its beginning, or at that of the node that it runs.
const FlowEnd* ForwardPlaces::flow_into(const HostEvent& node) const {
  const auto* end = std::ranges::lower_bound(ends_, std::tuple(node.thread, node.start_ns), {},
                                             by_thread_and_time);
  if (end == ends_.end() || end->thread != node.thread || end->ns > node.end_ns) return nullptr;
  return end;
}

const Place* ForwardPlaces::made_by(std::uint16_t thread, std::uint64_t sequence) const {
  const auto& made = made_[thread];
  const auto known = std::ranges::lower_bound(made, sequence, {}, &Made::sequence);
  if (known != made.end() && known->sequence == sequence) return &known->place;
  if (made_late_.empty()) return nullptr;
  const auto late = made_late_.find(key_of(thread, sequence));
  return late != made_late_.end() ? &late->second : nullptr;
}

// The only thread that has such a number; nothing where several have.
const Place* ForwardPlaces::made_by_any(std::uint64_t sequence, std::uint16_t& thread) const {
  const Place* found = nullptr;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const Place* const place = made_by(static_cast<std::uint16_t>(i), sequence);
    if (place == nullptr) continue;
    if (found != nullptr) return nullptr;
    found = place;
    thread = static_cast<std::uint16_t>(i);
  }
  return found;
}

std::optional<Place> ForwardPlaces::find(const HostEvent& node) {
  const std::uint64_t sequence = sequence_of(node);
  std::uint32_t& thread = thread_of_id_[forward_thread_of(node)];
  const bool knows_thread = thread != kNoCall && forward_thread_of(node) != 0;
  if (sequence != 0 && knows_thread) {
    const Place* const place = made_by(static_cast<std::uint16_t>(thread), sequence);
    if (place != nullptr) return *place;
  }
  if (const FlowEnd* const end = flow_into(node)) {
    const auto first = std::ranges::lower_bound(starts_by_id_, end->id, {},
                                                [this](std::uint32_t i) { return starts_[i].id; });
    // Of several with one id, the last that was passed.
    std::optional<Place> place;
    for (auto it = first; it != starts_by_id_.end() && starts_[*it].id == end->id; ++it) {
      if (!start_passed_[*it]) continue;
      place = start_places_[*it];
      if (end->ns == node.start_ns && sequence != 0) thread = starts_[*it].thread;
    }
    if (place) return place;
  }
  if (sequence == 0 || knows_thread) return std::nullopt;
  std::uint16_t only = 0;
  const Place* const place = made_by_any(sequence, only);
  if (place == nullptr) return std::nullopt;
  thread = only;
  return *place;
}

}  // namespace layertrace::kineto
