#include "attribute/step_sums.h"

#include <algorithm>

namespace layertrace {
namespace {

bool starts_before(const TimeInterval& a, const TimeInterval& b) noexcept {
  return a.start_ns < b.start_ns;
}

}  // namespace

void BusyTime::add(TimeInterval interval) {
  if (!intervals_.empty() && interval.start_ns < intervals_.back().end_ns) {
    // Inside the last one (a nested operator), or out of order (another thread).
    TimeInterval& last = intervals_.back();
    if (interval.start_ns >= last.start_ns) {
      last.end_ns = std::max(last.end_ns, interval.end_ns);
      return;
    }
    sorted_ = false;
  }
  intervals_.push_back(interval);
  if (intervals_.size() >= kMaxIntervals) settle_oldest();
}

const std::vector<TimeInterval>& BusyTime::normalised() {
  if (sorted_) return intervals_;
  std::sort(intervals_.begin(), intervals_.end(), starts_before);
  join_overlapping();
  return intervals_;
}

// Makes them disjoint, once they are in order.
void BusyTime::join_overlapping() {
  std::size_t last = 0;
  for (std::size_t i = 1; i < intervals_.size(); ++i) {
    if (intervals_[i].start_ns < intervals_[last].end_ns) {
      intervals_[last].end_ns = std::max(intervals_[last].end_ns, intervals_[i].end_ns);
    } else {
      intervals_[++last] = intervals_[i];
    }
  }
  intervals_.resize(last + 1);
  sorted_ = true;
}

void BusyTime::merge(const BusyTime& other) {
  settled_ns_ += other.settled_ns_;
  const std::vector<TimeInterval>& added = other.intervals_;
  if (added.empty()) return;
  // Children mostly come one after the other, in this order or the other.
  const bool precedes = other.sorted_ && sorted_ && !intervals_.empty() &&
                        added.back().end_ns <= intervals_.front().start_ns;
  const bool follows = intervals_.empty() || added.front().start_ns >= intervals_.back().end_ns;
  const auto place = precedes ? intervals_.begin() : intervals_.end();
  const auto middle = intervals_.insert(place, added.begin(), added.end());
  sorted_ = sorted_ && other.sorted_;
  if (!sorted_ || precedes || follows) return;
  std::inplace_merge(intervals_.begin(), middle, intervals_.end(), starts_before);
  join_overlapping();
}

std::uint64_t BusyTime::length() {
  std::uint64_t total = settled_ns_;
  for (const TimeInterval& interval : normalised()) total += interval.end_ns - interval.start_ns;
  return total;
}

void BusyTime::settle_oldest() {
  normalised();
  if (intervals_.size() < kMaxIntervals / 2) return;
  const auto keep = intervals_.begin() + static_cast<std::ptrdiff_t>(intervals_.size() / 2);
  for (auto it = intervals_.begin(); it != keep; ++it) settled_ns_ += it->end_ns - it->start_ns;
  intervals_.erase(intervals_.begin(), keep);
}

CellFigures Cell::figures() {
  return {calls,         host_ns, self_host_ns, activities, activity_ns, self_activity_ns,
          busy.length(), copies,  launches,     event_ns,   idle_ns};
}

void Cell::clear() noexcept {
  calls = host_ns = self_host_ns = activities = activity_ns = self_activity_ns = 0;
  copies = launches = event_ns = inside_event_ns = idle_ns = 0;
  busy.clear();
}

void Ledger::add(Cause cause, NameId name, std::uint64_t ns) {
  ++total;
  total_ns += ns;
  if (cause == Cause::kNone) return;
  Entry& entry = by_cause[static_cast<std::size_t>(cause)];
  ++entry.count;
  entry.ns += ns;
  ++entry.names[index(name)];
}

void Ledger::merge(const Ledger& other) {
  total += other.total;
  total_ns += other.total_ns;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    by_cause[i].count += other.by_cause[i].count;
    by_cause[i].ns += other.by_cause[i].ns;
    for (const auto& [name, count] : other.by_cause[i].names) by_cause[i].names[name] += count;
  }
}

void Ledger::clear() {
  total = total_ns = 0;
  for (Entry& entry : by_cause) {
    entry.count = entry.ns = 0;
    entry.names.clear();
  }
}

Cell& StepSums::cell(std::size_t slot) {
  if (slot >= place_.size()) place_.resize((slot / kPhaseCount + 1) * kPhaseCount);
  if (place_[slot] == 0) {
    cells_.emplace_back();
    place_[slot] = static_cast<std::uint32_t>(cells_.size());
  }
  return cells_[place_[slot] - 1];
}

void StepSums::add_children(const std::vector<LayerDef>& layers) {
  for (Cell& cell : cells_) cell.self_activity_ns = cell.activity_ns;
  for (std::size_t i = place_.size(); i-- != 0;) {
    if (place_[i] == 0 || cells_[place_[i] - 1].nothing_to_add()) continue;
    if (Cell& own = cells_[place_[i] - 1]; own.event_ns == 0) own.event_ns = own.inside_event_ns;
    const LayerId parent = layers[i / kPhaseCount].parent;
    if (parent == kNoLayer) continue;
    Cell& sum = cell(slot(parent, static_cast<Phase>(i % kPhaseCount)));  // may move the others
    Cell& child = cells_[place_[i] - 1];
    sum.copies += child.copies;
    sum.launches += child.launches;
    sum.inside_event_ns += child.event_ns;
    sum.idle_ns += child.idle_ns;
    if (child.activities == 0) continue;
    sum.activities += child.activities;
    sum.activity_ns += child.activity_ns;
    child.busy.normalised();
    sum.busy.merge(child.busy);
  }
}

std::uint64_t StepSums::calls() const noexcept {
  std::uint64_t total = 0;
  for (const Cell& cell : cells_) total += cell.calls;
  for (const Cell& cell : outside_) total += cell.calls;
  return total;
}

void StepSums::clear() {
  for (Cell& cell : cells_) cell.clear();
  for (Cell& cell : outside_) cell.clear();
  activities.clear();
  nodes.clear();
  backward_elsewhere_ns = 0;
}

}  // namespace layertrace
