#include "attribute/fold.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

namespace layertrace {
namespace {

// A node or region inside a layer only divides the layer's own time; outside any layer it stands
// for itself.
bool is_part_of_layer(SpanKind kind, LayerId layer) noexcept {
  return layer != kNoLayer && (kind == SpanKind::kNode || kind == SpanKind::kRegion);
}

// The whole of one call of autograd's engine, on the thread that called it.
bool is_pass(SpanKind kind, Phase phase, LayerId layer) noexcept {
  return kind == SpanKind::kRegion && phase == Phase::kBackward && layer == kNoLayer;
}

template <typename List>
void keep_every_second(List& list) {
  for (std::size_t i = 1; 2 * i < list.size(); ++i) list[i] = std::move(list[2 * i]);
  list.resize((list.size() + 1) / 2);
}

}  // namespace

void Fold::open_lane(Lane lane, std::uint64_t tid, const std::string& /*name*/) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  lanes_[lane].tid = static_cast<std::uint32_t>(tid);
}

void Fold::close_lane(Lane lane) {
  if (lanes_[lane].scopes.empty()) lanes_[lane] = {};  // programs may start very many threads
}

void Fold::begin(Lane lane, const SpanBegin& span) {
  LaneState& state = lanes_[lane];
  if (span.kind == SpanKind::kActivity) {
    const OperatorTimes::Stack around =
        state.activities.empty() ? 0 : state.activities.back().stack;
    state.activities.push_back({span.phase, span.cause, span.layer, span.name, span.start_ns,
                                operator_times_.enter(around, span.name)});
    return;
  }
  OpenSpan open{span.kind, span.phase,    span.cause,   span.layer,
                span.name, span.start_ns, span.start_ns};
  open.awaited = state.scopes.empty() && span.phase == Phase::kBackward && passes_ > state.passes;
  if (is_pass(open.kind, open.phase, open.layer)) {
    ++state.passes;
    ++passes_;
  }
  state.scopes.push_back(open);
  if (!is_part_of_layer(span.kind, span.layer)) tell_place(state, span.start_ns);
  if (span.layer != kNoLayer && !is_part_of_layer(span.kind, span.layer)) enter_layer(state, open);
}

// For a device that waits: the innermost that counts on its own is where the thread is.
void Fold::tell_place(const LaneState& state, std::uint64_t ns) {
  if (!has_device_) return;
  const auto inside =
      std::ranges::find_if(std::ranges::reverse_view(state.scopes),
                           [](const auto& s) { return !is_part_of_layer(s.kind, s.layer); });
  if (inside == state.scopes.rend()) {
    device_idle_.move(state.tid, ns, kNoLayer, Phase::kOther);
  } else {
    device_idle_.move(state.tid, ns, inside->layer, inside->phase);
  }
}

void Fold::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  LaneState& state = lanes_[lane];
  if (track == Track::kActivities) {
    end_activity(state, end_ns);
  } else {
    end_scope(state, end_ns, by);
    shapes_.leave(lane, state.scopes.size());
  }
}

void Fold::end_activity(LaneState& state, std::uint64_t end_ns) {
  if (state.activities.empty()) return;
  const OpenActivity span = state.activities.back();
  state.activities.pop_back();
  end_ns = std::max(end_ns, span.start_ns);
  const std::uint64_t duration_ns = end_ns - span.start_ns;
  const std::uint64_t self_ns = duration_ns - std::min(duration_ns, span.inside_ns);
  if (!state.activities.empty()) state.activities.back().inside_ns += duration_ns;
  if (step_at(span.start_ns) != nullptr) operator_times_.add(span.stack, span.name, self_ns);
  if (has_device_) return;

  StepSums& sums = sums_at(span.start_ns);
  Cell& cell =
      span.layer != kNoLayer ? sums.cell(span.layer, span.phase) : sums.outside(span.phase);
  ++cell.activities;
  cell.activity_ns += self_ns;
  cell.busy.add({span.start_ns, end_ns});
  if (span.cause == Cause::kInferred) {
    ++inferred_;
    inferred_ns_ += self_ns;
  }
  sums.activities.add(span.layer != kNoLayer ? Cause::kNone : span.cause, span.name, self_ns);
}

void Fold::device(const DeviceSpan& span) {
  device_idle_.activity(span);
  OpenStep* const step = step_asked_at(span.launch_ns != 0 ? span.launch_ns : span.start_ns);
  const std::uint64_t ns = span.end_ns - std::min(span.end_ns, span.start_ns);
  if (step == nullptr) {
    ++outside_window_;
    if (!counts_outside_steps_) return;
    activities_.add(span.layer != kNoLayer ? Cause::kNone : span.cause, span.what.name, ns);
    kernels_.add(span, /*outside=*/true);
    return;
  }
  Cell& cell = cell_of(step->sums, span.layer, span.phase);
  ++cell.activities;
  if (span.what.kind != DeviceKind::kKernel) ++cell.copies;
  cell.activity_ns += ns;
  cell.busy.add({span.start_ns, span.start_ns + ns});
  step->sums.activities.add(span.layer != kNoLayer ? Cause::kNone : span.cause, span.what.name, ns);
  if (span.cause == Cause::kEarlierGraph) ++earlier_graphs_;
  if (span.cause == Cause::kInferred) {
    ++inferred_;
    inferred_ns_ += ns;
  }
  if (span.start_ns < span.launch_ns) ++early_;
  (step->end_ns == 0 ? rest_kernels_ : kernels_).add(span);
}

void Fold::launch(const LaunchSpan& span) {
  device_idle_.call(span);
  if (span.kind == CallKind::kWait) return;
  if (OpenStep* const step = step_asked_at(span.start_ns))
    ++cell_of(step->sums, span.layer, span.phase).launches;
}

void Fold::event_pair(const EventSpan& span) {
  ++event_pairs_;
  if (OpenStep* const step = step_asked_at(span.host_ns)) {
    cell_of(step->sums, span.layer, span.phase).event_ns +=
        span.end_ns - std::min(span.end_ns, span.start_ns);
  }
}

// Those of a step that is over, or of none, come too late.
void Fold::amounts(Lane /*lane*/, const AmountsSpan& span) {
  if (OpenStep* const step = step_at(span.ns)) step->counted.amounts(span);
}

void Fold::counting(Lane /*lane*/, const CountingSpan& span) {
  memory_.counting(span);
  if (OpenStep* const step = step_at(span.ns)) step->counted.counting(span);
}

// Whatever is open on any thread meets the level that memory has come to.
void Fold::memory(Lane /*lane*/, const MemorySpan& span) {
  memory_.memory(span);
  if (span.is_freed || !memory_.is_counting()) return;
  for (const LaneState& state : lanes_) {
    for (const OpenSpan& open : state.scopes) {
      if (open.layer != kNoLayer && !is_part_of_layer(open.kind, open.layer))
        memory_.visit(open.layer, open.phase);
    }
  }
}

void Fold::shapes(Lane lane, const ShapesSpan& span) {
  shapes_.add(lane, lanes_[lane].scopes.size(), span);
}

void Fold::end_scope(LaneState& state, std::uint64_t end_ns, EndedBy by) {
  if (state.scopes.empty()) return;
  OpenSpan span = state.scopes.back();
  state.scopes.pop_back();
  if (!is_part_of_layer(span.kind, span.layer)) tell_place(state, end_ns);
  if (is_pass(span.kind, span.phase, span.layer)) {
    --state.passes;
    if (--passes_ == 0) memory_.end_backward();
  }
  state.last_ns = std::max(state.last_ns, end_ns);
  const std::uint64_t whole_ns = end_ns - std::min(end_ns, span.start_ns);
  end_ns = std::max(end_ns, span.from_ns);
  // PyTorch ends a checkpoint's recomputation by an exception of its own, when it has what it
  // needs.
  if (span.kind == SpanKind::kScope && by == EndedBy::kException && span.phase != Phase::kRecompute)
    ++thrown_scopes_;
  if (span.kind == SpanKind::kScope && by == EndedBy::kCut) ++cut_scopes_;
  StepSums& sums = sums_at(span.from_ns);
  if (span.kind == SpanKind::kNode) {
    sums.nodes.add(span.layer != kNoLayer ? Cause::kNone : span.cause, span.name, whole_ns);
  }
  OpenSpan* parent = state.scopes.empty() ? nullptr : &state.scopes.back();
  const std::uint64_t ns = add_part(state, span, parent, end_ns, sums);
  if (span.layer != kNoLayer && !is_part_of_layer(span.kind, span.layer))
    leave_layer(state, span, ns, sums);
}

// Adds what of the span was not yet added, up to `end_ns`. Returns how much of that was spent in
// the span's own phase: a forward that runs again inside a backward, say, is no part of that
// backward.
std::uint64_t Fold::add_part(LaneState& state, OpenSpan& span, OpenSpan* parent,
                             std::uint64_t end_ns, StepSums& sums) {
  const std::uint64_t duration_ns = end_ns - std::exchange(span.from_ns, end_ns);
  PhaseTimes ns = std::exchange(span.inside_ns, {});
  const auto phase = static_cast<std::size_t>(span.phase);
  if (!is_part_of_layer(span.kind, span.layer)) {
    const std::uint64_t inside_ns = std::accumulate(ns.begin(), ns.end(), std::uint64_t{0});
    const std::uint64_t self_ns = duration_ns - std::min(duration_ns, inside_ns);
    ns[phase] += self_ns;
    Cell& cell =
        span.layer != kNoLayer ? sums.cell(span.layer, span.phase) : sums.outside(span.phase);
    if (!std::exchange(span.counted, true)) ++cell.calls;
    cell.self_host_ns += self_ns;
    if (span.layer == kNoLayer) cell.host_ns += self_ns;
    state.step_ns[phase] += self_ns;
    if (span.awaited) sums.backward_elsewhere_ns += duration_ns;
  }
  if (parent != nullptr) {
    std::transform(ns.begin(), ns.end(), parent->inside_ns.begin(), parent->inside_ns.begin(),
                   std::plus<>());
  }
  return ns[phase];
}

// A step ends inside what a thread has open (a region around the training loop, a loader's batch):
// each step gets its part.
void Fold::divide_open_spans(LaneState& state, std::uint64_t ns) {
  StepSums& sums = open_steps_.back().sums;
  std::vector<std::uint64_t> parts(state.scopes.size());
  for (std::size_t i = state.scopes.size(); i-- != 0;) {
    parts[i] = add_part(state, state.scopes[i], i == 0 ? nullptr : &state.scopes[i - 1],
                        std::max(ns, state.scopes[i].from_ns), sums);
  }
  std::vector<std::size_t> seen;  // layers and phases that a span further out has counted
  for (std::size_t i = 0; i < state.scopes.size(); ++i) {
    const OpenSpan& span = state.scopes[i];
    if (span.layer == kNoLayer || is_part_of_layer(span.kind, span.layer)) continue;
    for (LayerId layer = span.layer; layer != kNoLayer;
         layer = dictionary_.layers[layertrace::index(layer)].parent) {
      if (std::find(seen.begin(), seen.end(), slot(layer, span.phase)) != seen.end()) continue;
      seen.push_back(slot(layer, span.phase));
      sums.cell(layer, span.phase).host_ns += parts[i];
    }
  }
}

// A layer's total in a phase is the time in which it or anything below it (by path) was open on a
// lane and that phase ran, counted once: so recursion counts its outermost call, and a container
// that is never called gets its children's sum.
void Fold::enter_layer(LaneState& state, const OpenSpan& span) {
  const std::size_t needed = dictionary_.layers.size() * kPhaseCount;
  if (state.active.size() < needed) state.active.resize(needed);
  for (LayerId layer = span.layer; layer != kNoLayer;
       layer = dictionary_.layers[layertrace::index(layer)].parent) {
    ++state.active[slot(layer, span.phase)];
  }
  if (memory_.is_counting()) memory_.visit(span.layer, span.phase);
}

void Fold::leave_layer(LaneState& state, const OpenSpan& span, std::uint64_t ns, StepSums& sums) {
  for (LayerId layer = span.layer; layer != kNoLayer;
       layer = dictionary_.layers[layertrace::index(layer)].parent) {
    if (--state.active[slot(layer, span.phase)] == 0) sums.cell(layer, span.phase).host_ns += ns;
  }
}

// ---- Steps ----

Fold::OpenStep* Fold::step_at(std::uint64_t ns) {
  if (open_steps_.empty()) return nullptr;
  OpenStep* step = &open_steps_.back();
  if (ns < step->start_ns) {  // what a device did may come hundreds of steps later
    const auto after = std::ranges::upper_bound(open_steps_, ns, {}, &OpenStep::start_ns);
    if (after == open_steps_.begin()) return &open_steps_.front();
    step = &*std::prev(after);
  }
  const bool paused = step->end_ns != 0 && ns >= step->end_ns;  // no step has begun since
  return paused ? nullptr : step;
}

// In which step did the host ask for it? Nothing where that was before the recording, or in a
// pause: a device is recorded a little longer than the host. What comes later than its step is kept
// open belongs to the oldest that is.
Fold::OpenStep* Fold::step_asked_at(std::uint64_t ns) {
  if (open_steps_.empty()) return nullptr;
  if (ns < open_steps_.front().start_ns && ns >= folded_until_ns_) return nullptr;
  return step_at(ns);
}

StepSums& Fold::sums_at(std::uint64_t ns) {
  OpenStep* const step = step_at(ns);
  return step != nullptr ? step->sums : nowhere_;
}

void Fold::open_step(std::uint64_t ns, std::uint64_t index) {
  OpenStep step;
  if (!spare_.empty()) {
    step.sums = std::move(spare_.back());
    spare_.pop_back();
  }
  step.index = index;
  step.start_ns = ns;
  open_steps_.push_back(std::move(step));
  device_idle_.begin_step(ns);
  memory_.begin_step(ns);
}

void Fold::window(Lane /*lane*/, std::uint64_t ns, bool on, std::uint64_t step) {
  recording_ = on;
  if (!open_steps_.empty() && open_steps_.back().end_ns == 0) {
    // A step was just closed and opened; no more of it is recorded. Late spans of other lanes go to
    // the one before.
    spare_.push_back(std::move(open_steps_.back().sums));
    spare_.back().clear();
    open_steps_.pop_back();
    device_idle_.drop_last_step();
    memory_.drop_step();
    rest_kernels_.clear();
  }
  if (!on) {
    // What is open on any thread may end later, but no more of it counts.
    for (LaneState& state : lanes_) {
      for (OpenSpan& span : state.scopes) span.from_ns = kOver;
    }
    return;
  }
  open_step(ns, step);
  for (LaneState& state : lanes_) state.step_ns = {};
}

void Fold::step(Lane lane, std::uint64_t ns, std::uint64_t index) {
  if (!recording_) return;
  if (open_steps_.empty()) open_step(ns, index);
  if (index > open_steps_.back().index) steps_without_mark_ += index - open_steps_.back().index;
  open_steps_.back().index = index;
  end_step(lane, ns);
  while (open_steps_.size() >= most_open_steps()) fold_oldest();
  open_step(ns, index + 1);
}

// What a device did comes later than what the host did: tens of milliseconds, in which there may be
// many short steps. As many are kept open as fit into some megabytes.
std::size_t Fold::most_open_steps() const {
  if (!has_device_) return 2;
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const std::size_t step_bytes = (dictionary_.layers.size() + 1) * kPhaseCount * sizeof(Cell);
  return std::clamp<std::size_t>(kBytes / step_bytes, 16, 512);
}

void Fold::end_step(Lane lane, std::uint64_t ns) {
  OpenStep& step = open_steps_.back();
  step.end_ns = std::max(ns, step.start_ns + 1);
  for (LaneState& state : lanes_) divide_open_spans(state, ns);
  step.phase_ns = lanes_[lane].step_ns;
  device_idle_.end_step(step.end_ns, lanes_[lane].tid);
  memory_.end_step();
  kernels_.merge(rest_kernels_);
  rest_kernels_.clear();
  for (LaneState& state : lanes_) state.step_ns = {};
}

void Fold::gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) {}

void Fold::fold_oldest() {
  OpenStep step = std::move(open_steps_.front());
  open_steps_.pop_front();
  folded_until_ns_ = step.end_ns;
  StepSums& sums = step.sums;

  KeptStep result{step.index, step.start_ns, step.end_ns - step.start_ns, step.phase_ns};
  std::uint64_t known_ns = 0;
  for (const std::uint64_t ns : result.phase_ns) known_ns += ns;
  const std::uint64_t rest_ns = result.wall_ns - std::min(result.wall_ns, known_ns);
  result.phase_ns[static_cast<std::size_t>(Phase::kOther)] += rest_ns;
  sums.outside(Phase::kOther).host_ns += rest_ns;
  sums.outside(Phase::kOther).self_host_ns += rest_ns;

  // Who waits does not work.
  Cell& waiting = sums.outside(Phase::kBackward);
  const std::uint64_t waited_ns = std::min(waiting.self_host_ns, sums.backward_elsewhere_ns);
  waiting.host_ns -= waited_ns;
  waiting.self_host_ns -= waited_ns;

  std::vector<DeviceStep> devices = device_idle_.fold_oldest(sums);
  if (table_.steps() % step_stride_ == 0) {
    steps_.push_back(result);
    if (has_device_) step_devices_.push_back(std::move(devices));
  }
  sums.add_children(dictionary_.layers);
  table_.begin_step(result.wall_ns);
  sums.each([&](std::size_t slot, Cell& cell) {
    const CellFigures figures = cell.figures();
    table_.add(slot, figures);
    if (watch_) watch_(step.index, slot, figures);
  });
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    Cell& cell = sums.outside(static_cast<Phase>(p));
    cell.self_activity_ns = cell.activity_ns;
    if (!cell.empty()) table_.add_outside(static_cast<Phase>(p), cell.figures());
  }
  table_.end_step();
  activities_.merge(sums.activities);
  nodes_.merge(sums.nodes);
  amounts_.add(step.counted);
  sums.clear();
  spare_.push_back(std::move(sums));
  keep_within_memory();
}

void Fold::keep_within_memory() {
  const std::size_t devices = step_devices_.empty() ? 0 : step_devices_.back().size();
  const std::size_t step_bytes = sizeof(Step) + devices * sizeof(DeviceStep);  // in the profile
  if (steps_.size() * step_bytes <= memory_bytes_ / 2) return;
  step_stride_ *= 2;
  keep_every_second(steps_);
  keep_every_second(step_devices_);
}

}  // namespace layertrace
