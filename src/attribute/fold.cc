#include "attribute/fold.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <tuple>
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

}  // namespace

void Fold::open_lane(Lane lane, std::uint64_t /*tid*/, const std::string& /*name*/) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
}

void Fold::close_lane(Lane lane) {
  if (lanes_[lane].scopes.empty()) lanes_[lane] = {};  // programs may start very many threads
}

void Fold::begin(Lane lane, const SpanBegin& span) {
  LaneState& state = lanes_[lane];
  if (span.kind == SpanKind::kActivity) {
    state.activities.push_back({span.phase, span.cause, span.layer, span.name, span.start_ns});
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
  if (span.layer != kNoLayer && !is_part_of_layer(span.kind, span.layer)) enter_layer(state, open);
}

void Fold::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  LaneState& state = lanes_[lane];
  if (track == Track::kActivities) {
    end_activity(state, end_ns);
  } else {
    end_scope(state, end_ns, by);
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
  const std::uint64_t ns = span.end_ns - std::min(span.end_ns, span.start_ns);
  StepSums& sums = sums_at(span.launch_ns != 0 ? span.launch_ns : span.start_ns);
  if (&sums == &nowhere_) {
    ++outside_window_;
    return;
  }
  Cell& cell =
      span.layer != kNoLayer ? sums.cell(span.layer, span.phase) : sums.outside(span.phase);
  ++cell.activities;
  cell.activity_ns += ns;
  cell.busy.add({span.start_ns, span.start_ns + ns});
  sums.activities.add(span.layer != kNoLayer ? Cause::kNone : span.cause, span.what.name, ns);
}

void Fold::end_scope(LaneState& state, std::uint64_t end_ns, EndedBy by) {
  if (state.scopes.empty()) return;
  OpenSpan span = state.scopes.back();
  state.scopes.pop_back();
  if (is_pass(span.kind, span.phase, span.layer)) {
    --state.passes;
    --passes_;
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
}

void Fold::leave_layer(LaneState& state, const OpenSpan& span, std::uint64_t ns, StepSums& sums) {
  for (LayerId layer = span.layer; layer != kNoLayer;
       layer = dictionary_.layers[layertrace::index(layer)].parent) {
    if (--state.active[slot(layer, span.phase)] == 0) sums.cell(layer, span.phase).host_ns += ns;
  }
}

// ---- Steps ----

StepSums& Fold::sums_at(std::uint64_t ns) {
  for (OpenStep& step : std::ranges::reverse_view(open_steps_)) {
    if (ns < step.start_ns) continue;
    const bool paused = step.end_ns != 0 && ns >= step.end_ns;  // no step has begun since
    return paused ? nowhere_ : step.sums;
  }
  return open_steps_.empty() ? nowhere_ : open_steps_.front().sums;
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
}

void Fold::window(Lane /*lane*/, std::uint64_t ns, bool on, std::uint64_t step) {
  recording_ = on;
  if (!open_steps_.empty() && open_steps_.back().end_ns == 0) {
    // A step was just closed and opened; no more of it is recorded. Late spans of other lanes go to
    // the one before.
    spare_.push_back(std::move(open_steps_.back().sums));
    spare_.back().clear();
    open_steps_.pop_back();
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
  for (LaneState& state : lanes_) state.step_ns = {};
}

void Fold::gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) {}

void Fold::fold_oldest() {
  OpenStep step = std::move(open_steps_.front());
  open_steps_.pop_front();
  StepSums& sums = step.sums;

  Step result{step.index, step.start_ns, step.end_ns - step.start_ns, step.phase_ns, {}};
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

  if (step_count_ != 0 && clock_.advance()) halve_series();
  slots_ = clock_.slot() + 1;
  if (step_count_ % step_stride_ == 0) steps_.push_back(result);
  ++step_count_;
  step_series_.add(static_cast<double>(result.wall_ns), clock_);
  sums.add_children(dictionary_.layers);
  sums.each([this](std::size_t slot, Cell& cell) {
    PhaseSeries& figures = series(slot);
    if (!figures.touched) ++series_count_;
    figures.add(cell, clock_);
  });
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    Cell& cell = sums.outside(static_cast<Phase>(p));
    cell.self_activity_ns = cell.activity_ns;
    if (!cell.empty()) outside_[p].add(cell, clock_);
  }
  activities_.merge(sums.activities);
  nodes_.merge(sums.nodes);
  sums.clear();
  spare_.push_back(std::move(sums));
  keep_within_memory();
}

void Fold::halve_series() {
  for (PhaseSeries& layer : layers_) layer.halve();
  for (PhaseSeries& phase : outside_) phase.halve();
  step_series_.halve();
}

void Fold::keep_within_memory() {
  constexpr std::size_t kFewestSamples = 16;
  while (clock_.samples() > kFewestSamples &&
         series_count_ * PhaseSeries::kCount * clock_.samples() * sizeof(double) >
             memory_bytes_ / 2) {
    if (clock_.keep_fewer()) halve_series();
    slots_ = clock_.slot() + 1;
  }
  if (steps_.size() * sizeof(Step) <= memory_bytes_ / 2) return;
  step_stride_ *= 2;
  for (std::size_t i = 0; 2 * i < steps_.size(); ++i) steps_[i] = steps_[2 * i];
  steps_.resize((steps_.size() + 1) / 2);
}

Fold::PhaseSeries& Fold::series(std::size_t slot) {
  if (slot >= layers_.size()) layers_.resize((slot / kPhaseCount + 1) * kPhaseCount);
  return layers_[slot];
}

void Fold::PhaseSeries::add(Cell& cell, const SampleClock& clock) {
  // A step without a value counts as 0, so that what is not recorded need not be looked at.
  const auto add = [&clock](Series& series, std::uint64_t value) {
    if (value != 0) series.add(static_cast<double>(value), clock);
  };
  touched = true;
  add(calls, cell.calls);
  add(host_ns, cell.host_ns);
  add(self_host_ns, cell.self_host_ns);
  if (cell.activities == 0) return;
  add(activities, cell.activities);
  add(activity_ns, cell.activity_ns);
  add(self_activity_ns, cell.self_activity_ns);
  add(busy_ns, cell.busy.length());
}

void Fold::PhaseSeries::halve() {
  if (!touched) return;
  for (Series* each :
       {&calls, &host_ns, &self_host_ns, &activities, &activity_ns, &self_activity_ns, &busy_ns}) {
    each->halve();
  }
}

PhaseStats Fold::PhaseSeries::stats(std::uint64_t steps, std::size_t slots) const {
  if (!touched) return {};
  return {calls.stat(steps, slots),
          host_ns.stat(steps, slots),
          self_host_ns.stat(steps, slots),
          activities.stat(steps, slots),
          activity_ns.stat(steps, slots),
          self_activity_ns.stat(steps, slots),
          busy_ns.stat(steps, slots),
          {},
          {},
          {}};
}

// ---- The result ----

void add_closing(Health& health, const Health& closing) {
  health.cut = closing.cut;
  health.emitted = closing.emitted;
  health.recorded = closing.recorded;
  health.dropped = closing.dropped;
  health.scope_cost_ns = closing.scope_cost_ns;
  health.op_cost_ns = closing.op_cost_ns;
  health.writer_cpu_ns = closing.writer_cpu_ns;
  health.tracing_share = closing.tracing_share;
  const std::uint64_t outside_steps = health.gpu.outside_steps;  // which the spans do tell
  health.gpu = closing.gpu;
  health.gpu.outside_steps = outside_steps;
  health.notes.insert(health.notes.end(), closing.notes.begin(), closing.notes.end());
}

Profile Fold::finish(std::uint64_t end_ns) {
  Profile profile;
  // What came after the last step() is no step, unless there is no other.
  if (!open_steps_.empty() && open_steps_.back().end_ns == 0) {
    OpenStep& rest = open_steps_.back();
    if (step_count_ == 0 && open_steps_.size() == 1) {
      profile.steps_marked = false;
      // Of the threads, the one that had most to do stands for the whole.
      const auto busiest =
          std::max_element(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) {
            return std::accumulate(a.step_ns.begin(), a.step_ns.end(), std::uint64_t{0}) <
                   std::accumulate(b.step_ns.begin(), b.step_ns.end(), std::uint64_t{0});
          });
      const std::uint64_t last_ns = busiest == lanes_.end() ? 0 : busiest->last_ns;
      if (busiest != lanes_.end()) rest.phase_ns = busiest->step_ns;
      rest.end_ns = std::max({end_ns, rest.start_ns + 1, last_ns});
    } else {
      note_rest(rest.sums);
      open_steps_.pop_back();
    }
  }
  while (!open_steps_.empty()) fold_oldest();

  fill_layers(profile);
  if (steps_without_mark_ != 0) {
    notes_.push_back(std::to_string(steps_without_mark_) +
                     " ends of steps were dropped: each such step is part of the one after it");
  }
  note_modules_not_entered(profile);
  for (std::size_t p = 0; p < kPhaseCount; ++p)
    profile.outside[p] = outside_[p].stats(step_count_, slots_);
  profile.steps = std::move(steps_);
  profile.step_count = step_count_;
  profile.step_ns = step_series_.stat(step_count_, slots_);
  fill_health(profile.health);
  return profile;
}

void Fold::note_rest(StepSums& rest) {
  const std::uint64_t activities = rest.activities.total;
  const std::uint64_t count = activities != 0 ? activities : rest.calls() + rest.nodes.total;
  if (count == 0) return;
  const std::string what = activities != 0 ? (count == 1 ? " activity" : " activities")
                                           : (count == 1 ? " scope or node" : " scopes and nodes");
  notes_.push_back(std::to_string(count) + what +
                   " after the last step() belong to no step and are left out");
}

void Fold::fill_layers(Profile& profile) const {
  profile.layers.reserve(dictionary_.layers.size());
  for (std::size_t i = 0; i < dictionary_.layers.size(); ++i) {
    const LayerDef& def = dictionary_.layers[i];
    Layer layer;
    layer.path = def.path;
    layer.name = def.name;
    layer.type = def.type;
    layer.parent = def.parent == kNoLayer ? -1 : static_cast<int>(layertrace::index(def.parent));
    layer.registered = def.registered;
    layer.shared_with = def.shared_with;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      const std::size_t s = i * kPhaseCount + p;
      if (s >= layers_.size() || !layers_[s].touched) continue;
      layer.phases[p] = layers_[s].stats(step_count_, slots_);
      layer.ran = true;
      if (static_cast<Phase>(p) != Phase::kBackward) layer.calls += layer.phases[p].calls.mean;
    }
    if (layer.parent >= 0) {
      profile.layers[static_cast<std::size_t>(layer.parent)].children.push_back(
          static_cast<int>(i));
    }
    profile.layers.push_back(std::move(layer));
  }
}

// A module without a scope in its forward: its layers are right, but what it does between them is
// nobody's, or that of the module around it. Its user should know that one line mends it.
void Fold::note_modules_not_entered(const Profile& profile) {
  const Ledger& ledger = activities_.total != 0 ? activities_ : nodes_;
  const Cause cause = activities_.total != 0 ? Cause::kNoScope : Cause::kMadeOutside;
  const bool some_is_nobodys = ledger.by_cause[static_cast<std::size_t>(cause)].count != 0;
  for (const Layer& layer : profile.layers) {
    const bool is_container =
        layer.type == "Sequential" || layer.type == "ModuleList" || layer.type == "ModuleDict";
    const bool children_were_called = std::any_of(
        layer.children.begin(), layer.children.end(),
        [&](int child) { return profile.layers[static_cast<std::size_t>(child)].calls != 0; });
    if (is_container || !layer.registered || layer.calls != 0 || !children_were_called) continue;
    if (layer.parent < 0 && !some_is_nobodys) continue;
    std::string note = layer.parent < 0 ? layer.name : layer.path + " (" + layer.type + ")";
    note += " itself was never entered, only layers of it: what it does between them is ";
    if (inferred_ != 0) {
      note += "inferred, and after the last of them nobody's";
    } else {
      note += layer.parent < 0 ? "nobody's" : "that of the module around it";
    }
    note += ". Call the module itself; one in C++ needs a ModuleScope in its forward";
    notes_.push_back(std::move(note));
  }
}

void Fold::fill_health(Health& health) const {
  health.activities = activities_.total;
  health.activity_ns = activities_.total_ns;
  health.unattributed = causes(activities_);
  std::uint64_t missing_ns = 0;
  for (const Unattributed& each : health.unattributed) missing_ns += each.ns;
  if (activities_.total_ns != 0) {
    health.attributed_share =
        1.0 - static_cast<double>(missing_ns) / static_cast<double>(activities_.total_ns);
  }
  health.inferred = inferred_;
  health.inferred_ns = inferred_ns_;
  health.nodes = nodes_.total;
  health.unattributed_nodes = causes(nodes_);
  health.cut_scopes = cut_scopes_;
  health.thrown_scopes = thrown_scopes_;
  health.gpu.outside_steps = outside_window_;
  health.notes = notes_;
}

std::vector<Unattributed> Fold::causes(const Ledger& ledger) const {
  std::vector<Unattributed> result;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    const Ledger::Entry& entry = ledger.by_cause[i];
    if (entry.count == 0) continue;
    Unattributed cause{std::string(cause_text(static_cast<Cause>(i))), entry.count, entry.ns, {}};
    for (const auto& [name, count] : entry.names) {
      cause.names.push_back(
          {name < dictionary_.names.size() ? dictionary_.names[name] : "", count});
    }
    std::sort(cause.names.begin(), cause.names.end(), [](const auto& a, const auto& b) {
      return std::tie(b.count, a.name) < std::tie(a.count, b.name);
    });
    result.push_back(std::move(cause));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return result;
}

}  // namespace layertrace
