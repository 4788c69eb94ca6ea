#include "attribute/resolver.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attribute/fvcore_names.h"

namespace layertrace {
namespace {

// The region of an optimizer's or a module's zero_grad().
constexpr std::string_view kZeroGrad = "zero_grad";

bool has_own_phase(Phase phase) noexcept {
  return phase == Phase::kLoss || phase == Phase::kOptimizer || phase == Phase::kData ||
         phase == Phase::kCommunication;
}

}  // namespace

Resolver::Resolver(const Dictionary& dictionary, SpanSink& sink, TickScale scale,
                   std::size_t max_intervals, bool infers)
    : dictionary_(dictionary),
      sink_(sink),
      scale_(scale),
      max_intervals_(max_intervals),
      infers_(infers) {}

void Resolver::open_lane(Lane lane, std::uint64_t key, std::uint64_t tid, const std::string& name) {
  lanes_.emplace_back(max_intervals_ / lanes_provided_for_);
  if (++live_lanes_ > lanes_provided_for_) share_intervals();
  lane_of_key_[key] = lane;
  lane_of_tid_[tid] = lane;
  sink_.open_lane(lane, tid, name);
}

// Lanes share the memory for past calls.
void Resolver::share_intervals() {
  lanes_provided_for_ *= 2;
  for (LaneState& state : lanes_) {
    if (!state.closed) state.intervals.set_capacity(max_intervals_ / lanes_provided_for_);
  }
}

void Resolver::close_lane(Lane lane) {
  LaneState& state = lanes_[lane];
  state.closed = true;
  --live_lanes_;
  abandon(lane, state, state.now_ns);
  state.frames.shrink_to_fit();
  state.ops.shrink_to_fit();
  sink_.close_lane(lane);

  // The intervals stay: another thread may still run the backward of what this one made. But not
  // those of threads without number; the first to end are forgotten first.
  state.intervals.shrink();
  closed_lanes_.push_back(lane);
  closed_intervals_ += state.intervals.size();
  while (closed_intervals_ > max_intervals_) {
    Intervals& oldest = lanes_[closed_lanes_.front()].intervals;
    closed_intervals_ -= oldest.size();
    oldest.forget_all();
    closed_lanes_.pop_front();
  }
}

void Resolver::index(Lane lane, std::span<const Record> records) {
  LaneState& state = lanes_[lane];
  for (const Record& record : records) {
    const bool tells_sequence = is_begin(record.kind) && record.kind != RecordKind::kOpBegin;
    if (tells_sequence && record.window != state.indexed_window) {
      state.intervals.close_all(record.sequence);
      state.indexed_window = record.window;
      state.indexed_depth = 0;  // what is open there will not be closed
      state.indexed_last_layer = kNoLayer;
    }
    if (tells_sequence) state.intervals.start(record.sequence);
    if (infers_) index_inferred(state, record);
    switch (record.kind) {
      case RecordKind::kScopeBegin:
        state.intervals.open({.begin = record.sequence,
                              .value = call_id(lane, ++state.indexed_calls),
                              .layer = LayerId{record.id}});
        break;
      case RecordKind::kNodeBegin:
        state.intervals.open({.begin = record.sequence,
                              .value = record.value,
                              .is_node = true,
                              .accumulates = (record.flags & kAccumulates) != 0});
        break;
      case RecordKind::kScopeEnd:
      case RecordKind::kNodeEnd:
        state.intervals.close(record.sequence);
        break;
      default:
        break;
    }
  }
}

void Resolver::resolve(Lane lane, std::span<const Record> records) {
  LaneState& state = lanes_[lane];
  for (const Record& record : records) {
    if (is_begin(record.kind) && record.window != state.resolved_window) [[unlikely]] {
      // What another stretch left open: nothing of it was seen since the recording paused.
      abandon(lane, state, paused_ns_);
      state.resolved_window = record.window;
    }
    if (infers_ && hold_back(lane, state, record)) continue;
    resolve_one(lane, state, record);
    if (most_places_ != 0) remember_place(state, record);
  }
}

void Resolver::resolve_one(Lane lane, LaneState& state, const Record& record) {
  // The lane's clock never runs backwards, whatever the processors' counters say.
  state.now_ns = std::max(state.now_ns, scale_.to_ns(record.ticks));
  switch (record.kind) {
    case RecordKind::kOpBegin:
      on_op_begin(lane, state, record);
      break;
    case RecordKind::kOpEnd:
      on_op_end(lane, state);
      break;
    case RecordKind::kScopeBegin:
      on_scope_begin(lane, state, record);
      break;
    case RecordKind::kScopeEnd:
      on_scope_end(lane, state, record);
      break;
    case RecordKind::kNodeBegin:
      on_node_begin(lane, state, record);
      break;
    case RecordKind::kNodeEnd:
      on_frame_end(lane, state, record, SpanKind::kNode);
      state.last_node_end_ns = state.now_ns;
      break;
    case RecordKind::kRegionBegin:
      on_region_begin(lane, state, record);
      break;
    case RecordKind::kRegionEnd:
      on_frame_end(lane, state, record, SpanKind::kRegion);
      break;
    case RecordKind::kStep:
      settle(lane, state);
      close_all_runs();
      end_loss(lane, state);
      if (recording_) sink_.step(lane, state.now_ns, record.value);
      break;
    case RecordKind::kWindow:
      on_window(lane, state, record);
      break;
    case RecordKind::kGap:
      settle(lane, state);
      if (recording_) sink_.gap(lane, state.now_ns, record.value);
      break;
    case RecordKind::kAmounts:
      if (recorded(state)) on_amounts(lane, state, record);
      break;
    case RecordKind::kShapes:
      if (recorded(state)) on_shapes(lane, state, record);
      break;
    case RecordKind::kCounted:
      if (recorded(state))
        sink_.counting(lane, {state.now_ns, record.value, (record.flags & 1U) != 0});
      break;
    case RecordKind::kMemory:
      if (recorded(state)) on_memory(lane, state, record);
      break;
  }
}

// ---- What is counted ----

// The operator that they are about is about to end. It may not be one that is recorded.
void Resolver::on_amounts(Lane lane, LaneState& state, const Record& record) {
  OpAmounts amounts = unpack_amounts(record);
  if (amounts.activations != 0) state.product_elements = amounts.activations;
  if (amounts.fvcore_flops != 0) {
    // Of an operator that asks others for its product, the last of them makes what it puts out.
    const std::uint64_t elements = std::exchange(state.product_elements, 0);
    const std::size_t name = layertrace::index(amounts.op);
    if (name < dictionary_.names.size() && fvcore_counts_output(dictionary_.names[name]))
      amounts.fvcore_activations = elements;
  }
  Context context = current(state, innermost_running(state));
  if (!state.ops.empty()) {
    OpFrame& op = state.ops.back();
    if (op.state == OpFrame::kWaiting && op.name == amounts.op) emit_op_begin(lane, op);
    context = op.context;
  }
  sink_.amounts(lane, {state.now_ns, context.phase, context.cause, context.layer, amounts});
}

void Resolver::on_shapes(Lane lane, LaneState& state, const Record& record) {
  const Frame* innermost = innermost_running(state);
  if (innermost == nullptr || innermost->kind != SpanKind::kScope) return;
  sink_.shapes(
      lane, {state.now_ns, innermost->context.layer, NameId{record.id}, (record.flags & 1U) != 0});
}

void Resolver::on_memory(Lane lane, LaneState& state, const Record& record) {
  const Context context = current(state, innermost_running(state));
  sink_.memory(lane, {state.now_ns, context.phase, context.layer, record.id, record.value,
                      record.sequence, (record.flags & 1U) != 0});
}

// ---- Places, for devices ----

// Every record but an operator's has a number, by which a device knows what came after it.
void Resolver::remember_place(LaneState& state, const Record& record) {
  if (!has_number(record.kind)) return;
  const Frame* innermost = innermost_running(state);
  const Context context = current(state, innermost);
  // A call that nobody was told of (it runs while steps warm up) is nothing to refer to.
  const bool is_told = innermost != nullptr && innermost->emitted;
  const Place place{context.layer, context.phase, context.cause, is_told ? innermost->call : 0};
  if (state.places == nullptr) state.places = std::make_unique<Places>();
  Places& places = *state.places;
  ++places.numbered;
  const bool is_open = state.last_layer != kNoLayer;
  places.changes.push_back({state.now_ns, place, is_open});
  if (is_open) places.changes.back().place.cause = Cause::kAfterLayers;
  if (places.changes.size() > most_places_) places.changes.pop_front();
}

// What has run since the last layer ended belongs here.
void Resolver::settle_place(LaneState& state, Context context) {
  if (state.places == nullptr || state.places->changes.empty()) return;
  Change& last = state.places->changes.back();
  if (!std::exchange(last.is_open, false)) return;
  last.place = {context.layer, context.phase, context.cause, 0};
}

std::optional<Resolver::Place> Resolver::place_of_frame(std::uint64_t frame) const {
  const auto lane = lane_of_key_.find(thread_of_frame(frame));
  if (lane == lane_of_key_.end()) return std::nullopt;
  const Places* places = lanes_[lane->second].places.get();
  const std::uint64_t number = number_of_frame(frame);
  if (places == nullptr || number > places->numbered) return std::nullopt;
  const std::uint64_t back = places->numbered - number;
  if (back >= places->changes.size()) return Place{.cause = Cause::kOldScope};
  const Change& change = places->changes[places->changes.size() - 1 - back];
  if (change.is_open) return std::nullopt;
  return change.place;
}

Resolver::Place Resolver::place_at(std::uint32_t tid, std::uint64_t ns) const {
  const auto lane = lane_of_tid_.find(tid);
  if (lane == lane_of_tid_.end()) return {.cause = Cause::kThreadNoScope};
  const Places* places = lanes_[lane->second].places.get();
  if (places == nullptr) return {.cause = Cause::kThreadNoScope};
  const auto next =
      std::upper_bound(places->changes.begin(), places->changes.end(), ns,
                       [](std::uint64_t at_ns, const Change& change) { return at_ns < change.ns; });
  if (next != places->changes.begin()) return std::prev(next)->place;
  const bool is_first = places->changes.size() < most_places_;
  return {.cause = is_first ? Cause::kThreadNoScope : Cause::kOldScope};
}

// ---- Inference ----

// Where a module has no scope of its own, what it does between its layers is seen outside any.
// Whose it is shows when the next layer begins; until then it waits.
bool Resolver::hold_back(Lane lane, LaneState& state, const Record& record) {
  constexpr std::size_t kMostHeld = 4096;
  if (state.last_layer == kNoLayer) return false;
  const bool is_op = record.kind == RecordKind::kOpBegin || record.kind == RecordKind::kOpEnd ||
                     record.kind == RecordKind::kAmounts || record.kind == RecordKind::kMemory;
  if (is_op && state.held.size() < kMostHeld) {
    state.held.push_back(record);
    return true;
  }
  const LayerId last = std::exchange(state.last_layer, kNoLayer);
  const LayerId owner =
      record.kind == RecordKind::kScopeBegin ? common_parent(last, LayerId{record.id}) : kNoLayer;
  const Context context = owner != kNoLayer ? Context{owner, Phase::kForward, Cause::kInferred}
                                            : Context{kNoLayer, Phase::kOther, Cause::kAfterLayers};
  release_held(lane, state, context);
  settle_place(state, context);
  return false;
}

void Resolver::release_held(Lane lane, LaneState& state, Context context) {
  if (state.held.empty()) return;
  const std::vector<Record> held = std::exchange(state.held, {});
  state.inferred = context;
  for (const Record& record : held) resolve_one(lane, state, record);
  settle_ops(lane, state);
  state.inferred.reset();
}

// The same for the nodes that are made there: their numbers lie between those of the two calls.
void Resolver::index_inferred(LaneState& state, const Record& record) {
  switch (record.kind) {
    case RecordKind::kScopeBegin: {
      const LayerId layer{record.id};
      if (state.indexed_depth++ != 0) break;
      state.indexed_layer = layer;
      const LayerId last = std::exchange(state.indexed_last_layer, kNoLayer);
      const LayerId owner = last != kNoLayer ? common_parent(last, layer) : kNoLayer;
      if (owner == kNoLayer) break;
      state.intervals.open({.begin = state.indexed_last_end, .layer = owner, .inferred = true});
      state.intervals.close(record.sequence);
      break;
    }
    case RecordKind::kScopeEnd:
      if (state.indexed_depth == 0) break;
      --state.indexed_depth;
      if (state.indexed_depth != 0 || state.indexed_layer == kNoLayer) break;
      if (!may_go_on_after(state.indexed_layer)) break;
      state.indexed_last_layer = state.indexed_layer;
      state.indexed_last_end = record.sequence;
      break;
    case RecordKind::kNodeBegin:
    case RecordKind::kRegionBegin:
      if (state.indexed_depth++ == 0) state.indexed_layer = kNoLayer;
      state.indexed_last_layer = kNoLayer;
      break;
    case RecordKind::kNodeEnd:
    case RecordKind::kRegionEnd:
      if (state.indexed_depth != 0) --state.indexed_depth;
      break;
    case RecordKind::kStep:
    case RecordKind::kWindow:
    case RecordKind::kGap:
      state.indexed_last_layer = kNoLayer;
      break;
    default:
      break;
  }
}

// May what follows this layer, outside any scope, be its model's? Not where the model is over, nor
// after a module of no model.
bool Resolver::may_go_on_after(LayerId layer) const {
  return dictionary_.layers[layertrace::index(layer)].registered && !ends_model(layer);
}

// The lowest layer that holds both; kNoLayer if they are of different models, or of none.
LayerId Resolver::common_parent(LayerId first, LayerId second) const {
  const auto parent = [this](LayerId layer) {
    const LayerDef& def = dictionary_.layers[layertrace::index(layer)];
    return def.registered ? def.parent : kNoLayer;
  };
  LayerId common = parent(first);
  while (common != kNoLayer && !is_ancestor(common, parent(second))) common = parent(common);
  return common;
}

void Resolver::on_window(Lane lane, LaneState& state, const Record& record) {
  settle(lane, state);
  close_all_runs();
  recording_ = record.flags != 0;
  switched_ns_ = state.now_ns;
  if (!recording_) paused_ns_ = state.now_ns;
  sink_.window(lane, state.now_ns, recording_, record.value);
}

void Resolver::finish(std::uint64_t now_ticks) {
  const std::uint64_t now_ns = recording_ ? scale_.to_ns(now_ticks) : paused_ns_;
  for (Lane lane = 0; lane < lanes_.size(); ++lane) abandon(lane, lanes_[lane], now_ns);
}

// Closes what is open, as cut: its own ends will not come.
void Resolver::abandon(Lane lane, LaneState& state, std::uint64_t at_ns) {
  constexpr Context kAfterLayers{kNoLayer, Phase::kOther, Cause::kAfterLayers};
  release_held(lane, state, kAfterLayers);
  settle_place(state, kAfterLayers);
  state.last_layer = kNoLayer;
  state.now_ns = std::max(state.now_ns, at_ns);
  settle_ops(lane, state);
  for (; !state.ops.empty(); state.ops.pop_back()) {
    if (state.ops.back().state == OpFrame::kEmitted)
      sink_.end(lane, Track::kActivities, state.now_ns, EndedBy::kCut);
  }
  close_run(lane, state);
  close_loss(lane, state);
  while (!state.frames.empty()) pop_frame(lane, state, state.now_ns, EndedBy::kCut);
}

// ---- Operators ----

void Resolver::on_op_begin(Lane lane, LaneState& state, const Record& record) {
  const Context context = settle(lane, state);
  if (!state.frames.empty() && state.frames.back().is_loss) state.frames.back().held_ops = true;
  state.ops.push_back({NameId{record.id}, (record.flags & kOpComposite) != 0,
                       recorded(state) ? OpFrame::kWaiting : OpFrame::kDropped, context,
                       state.now_ns});
}

void Resolver::on_op_end(Lane lane, LaneState& state) {
  if (state.ops.empty()) return;
  OpFrame& op = state.ops.back();
  if (op.state == OpFrame::kWaiting) emit_op_begin(lane, op);  // nothing ran inside: a leaf
  if (op.state == OpFrame::kEmitted) {
    sink_.end(lane, Track::kActivities, state.now_ns, EndedBy::kExit);
  }
  state.ops.pop_back();
}

void Resolver::emit_op_begin(Lane lane, OpFrame& op) {
  op.state = OpFrame::kEmitted;
  sink_.begin(lane, {.start_ns = op.start_ns,
                     .kind = SpanKind::kActivity,
                     .phase = op.context.phase,
                     .cause = op.context.cause,
                     .layer = op.context.layer,
                     .name = op.name});
}

// The innermost open operator turns out not to be a leaf. It is an activity all the same if it has
// a kernel of its own (addmm, which copies its bias by calling copy_ and then multiplies); a
// composite one only calls others.
void Resolver::settle_ops(Lane lane, LaneState& state) {
  if (state.ops.empty()) return;
  OpFrame& op = state.ops.back();
  if (op.state != OpFrame::kWaiting) return;
  if (op.composite) {
    op.state = OpFrame::kDropped;
  } else {
    emit_op_begin(lane, op);
  }
}

// Something new happens on the lane: what was waiting for it is decided, and a run of backward
// nodes that ended is closed.
Resolver::Context Resolver::settle(Lane lane, LaneState& state) {
  settle_ops(lane, state);
  close_run(lane, state);
  return current(state);
}

// A run of backward nodes is open until something else comes, but after its last node nothing runs
// in it. nullptr outside all frames.
const Resolver::Frame* Resolver::innermost_running(const LaneState& state) {
  const std::size_t run = run_begin(state);
  return run != 0 ? &state.frames[run - 1] : nullptr;
}

Resolver::Context Resolver::current(const LaneState& state) {
  return current(state, state.frames.empty() ? nullptr : &state.frames.back());
}

Resolver::Context Resolver::current(const LaneState& state, const Frame* innermost) {
  Context context{kNoLayer, Phase::kOther, Cause::kThreadNoScope};
  if (state.inferred) return *state.inferred;
  if (innermost != nullptr) context = innermost->context;
  // The region around it may have begun before the thread's first module.
  if (context.cause == Cause::kThreadNoScope && state.entered_module)
    context.cause = Cause::kNoScope;
  return context;
}

// ---- Scopes and regions ----

void Resolver::push_frame(Lane lane, LaneState& state, const Frame& frame, const SpanBegin& span) {
  state.frames.push_back(frame);
  state.frames.back().emitted = recorded(state);
  if (state.frames.back().emitted) sink_.begin(lane, span);
}

void Resolver::pop_frame(Lane lane, LaneState& state, std::uint64_t end_ns, EndedBy by) {
  if (state.frames.back().emitted) sink_.end(lane, Track::kScopes, end_ns, by);
  state.frames.pop_back();
}

bool Resolver::inside_node(const LaneState& state) {
  return std::any_of(state.frames.begin(), state.frames.end(),
                     [](const Frame& frame) { return frame.kind == SpanKind::kNode; });
}

void Resolver::on_scope_begin(Lane lane, LaneState& state, const Record& record) {
  const Context around = settle(lane, state);
  const LayerId layer{record.id};
  const std::uint64_t call = call_id(lane, ++state.resolved_calls);
  state.entered_module = true;

  // A module of the model ends the loss; one that stands alone (a loss function's module) is part
  // of it.
  const bool in_loss = around.phase == Phase::kLoss && around.layer == kNoLayer;
  const bool part_of_loss = in_loss && !dictionary_.layers[record.id].registered;
  if (!part_of_loss) end_loss(lane, state);
  Phase phase = Phase::kForward;
  if (part_of_loss) {
    phase = Phase::kLoss;
  } else if (inside_node(state)) {
    phase = Phase::kRecompute;
  } else if (around.layer != kNoLayer) {
    phase = around.phase;
  }
  push_frame(lane, state,
             {.kind = SpanKind::kScope,
              .context = {layer, phase, Cause::kNone},
              .call = call,
              .first_sequence = record.sequence},
             {.start_ns = state.now_ns,
              .kind = SpanKind::kScope,
              .phase = phase,
              .layer = layer,
              .call = call});
}

void Resolver::on_scope_end(Lane lane, LaneState& state, const Record& record) {
  close_inner(lane, state);
  if (state.frames.empty() || state.frames.back().kind != SpanKind::kScope) return;
  const Frame frame = state.frames.back();
  on_frame_end(lane, state, record, SpanKind::kScope);

  // The model's forward is over and has made nodes: what follows until the backward is the loss.
  const auto around = std::find_if(state.frames.begin(), state.frames.end(),
                                   [](const Frame& f) { return f.kind == SpanKind::kScope; });
  const bool in_scope = around != state.frames.end();
  const bool made_nodes = record.sequence > frame.first_sequence;
  const bool ends = frame.context.phase == Phase::kForward && made_nodes &&
                    (record.flags & kThrown) == 0 &&
                    (frame.held_model || ends_model(frame.context.layer));
  if (ends && in_scope) {
    // Called by a module of no model (a wrapper around it): the forward is over when that is.
    if (!dictionary_.layers[layertrace::index(around->context.layer)].registered)
      around->held_model = true;
  } else if (ends) {
    begin_loss(lane, state);
  } else if (infers_ && state.frames.empty() && frame.context.phase == Phase::kForward &&
             may_go_on_after(frame.context.layer)) {
    state.last_layer = frame.context.layer;
  }
}

// Is its model's forward over when this layer's is? So it is with the model itself; and with the
// last layer of a Sequential, which is never entered itself. Of any other model that is not entered
// nobody knows: what runs after one of its layers may be its own, or the loss.
bool Resolver::ends_model(LayerId layer) const {
  for (std::size_t i = last_child_.size(); i < dictionary_.layers.size(); ++i) {
    const LayerDef& def = dictionary_.layers[i];
    last_child_.push_back(kNoLayer);
    if (def.registered && def.parent != kNoLayer)
      last_child_[layertrace::index(def.parent)] = LayerId{static_cast<std::uint32_t>(i)};
  }
  if (!dictionary_.layers[layertrace::index(layer)].registered) return false;
  for (;;) {
    const LayerId parent = dictionary_.layers[layertrace::index(layer)].parent;
    if (parent == kNoLayer) return true;
    if (dictionary_.layers[layertrace::index(parent)].type != "Sequential" ||
        last_child_[layertrace::index(parent)] != layer)
      return false;
    layer = parent;
  }
}

void Resolver::begin_loss(Lane lane, LaneState& state) {
  push_frame(lane, state,
             {.kind = SpanKind::kRegion,
              .is_loss = true,
              .context = {kNoLayer, Phase::kLoss, Cause::kNone}},
             {.start_ns = state.now_ns, .kind = SpanKind::kRegion, .phase = Phase::kLoss});
}

void Resolver::on_region_begin(Lane lane, LaneState& state, const Record& record) {
  Context context = settle(lane, state);
  bool resumes_loss = false;
  if (record.flags != kNoPhase) {
    const auto phase = static_cast<Phase>(record.flags);
    if (context.layer == kNoLayer) {
      // Clearing the gradients between the forward and the loss only interrupts it.
      if (phase != Phase::kLoss)
        resumes_loss = end_loss(lane, state) && dictionary_.names[record.id] == kZeroGrad;
      context.phase = phase;
      context.cause = has_own_phase(phase) ? Cause::kNone : Cause::kBetweenNodes;
    } else if (phase == Phase::kBackward || phase == Phase::kOptimizer) {
      context = {kNoLayer, phase, phase == Phase::kBackward ? Cause::kBetweenNodes : Cause::kNone};
    }
  }
  push_region(lane, state,
              {.kind = SpanKind::kRegion,
               .has_phase = record.flags != kNoPhase,
               .resumes_loss = resumes_loss,
               .context = context,
               .name = NameId{record.id}});
}

void Resolver::push_region(Lane lane, LaneState& state, const Frame& frame) {
  push_frame(lane, state, frame,
             {.start_ns = state.now_ns,
              .kind = SpanKind::kRegion,
              .phase = frame.context.phase,
              .layer = frame.context.layer,
              .name = frame.name});
}

void Resolver::on_frame_end(Lane lane, LaneState& state, const Record& record, SpanKind kind) {
  const bool in_loss =
      !state.frames.empty() && state.frames.back().is_loss && !state.frames.back().held_ops;
  close_inner(lane, state);
  if (state.frames.empty() || state.frames.back().kind != kind) return;
  // A region of the user's around the model's forward alone: the loss comes after it.
  const bool is_users = kind == SpanKind::kRegion && !state.frames.back().has_phase;
  const bool resumes_loss = state.frames.back().resumes_loss || (in_loss && is_users);
  const bool thrown = (record.flags & kThrown) != 0;
  pop_frame(lane, state, state.now_ns, thrown ? EndedBy::kException : EndedBy::kExit);
  if (resumes_loss && !thrown) begin_loss(lane, state);
}

// Closes what has no end of its own and lies inside a frame that is about to end.
void Resolver::close_inner(Lane lane, LaneState& state) {
  settle_ops(lane, state);
  close_run(lane, state);
  close_loss(lane, state);
}

void Resolver::close_loss(Lane lane, LaneState& state) {
  if (!state.frames.empty() && state.frames.back().is_loss)
    pop_frame(lane, state, state.now_ns, EndedBy::kExit);
}

// The loss is over, also where the user's own regions were opened inside it: each is divided here,
// so that what follows in it is not taken for the loss. Returns whether there was one.
bool Resolver::end_loss(Lane lane, LaneState& state) {
  const auto is_users = [](const Frame& frame) {
    return frame.kind == SpanKind::kRegion && !frame.is_loss && !frame.has_phase;
  };
  std::size_t first = state.frames.size();
  while (first != 0 && is_users(state.frames[first - 1])) --first;
  if (first == 0 || !state.frames[first - 1].is_loss) return false;
  const std::vector<Frame> inside(state.frames.begin() + static_cast<std::ptrdiff_t>(first),
                                  state.frames.end());
  while (state.frames.size() >= first) pop_frame(lane, state, state.now_ns, EndedBy::kExit);
  for (Frame frame : inside) {
    frame.context = current(state);
    push_region(lane, state, frame);
  }
  return true;
}

}  // namespace layertrace
