#include "kineto/sweep.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

namespace layertrace::kineto {
namespace {

// By so much clocks of one thread may differ.
constexpr std::int64_t kSkewNs = 2000;

bool has_own_phase(Phase phase) noexcept {
  return phase == Phase::kLoss || phase == Phase::kOptimizer || phase == Phase::kData ||
         phase == Phase::kCommunication;
}

}  // namespace

Sweep::Sweep(Trace& trace, Structure structure, const JoinedCalls& joined, Dictionary& dictionary,
             SpanSink& sink, Accounts& accounts)
    : trace_(trace),
      structure_(std::move(structure)),
      joined_(joined),
      dictionary_(dictionary),
      sink_(sink),
      accounts_(accounts),
      forward_(trace),
      lanes_(trace.threads.size()),
      operator_layers_(dictionary) {
  dictionary_.names = trace_.names.release();
  dictionary_.layers = structure_.layers;
}

void Sweep::run() {
  open_lanes();
  if (structure_.steps.empty() && !lanes_.empty()) {
    std::int64_t first_ns = joined_.first_ns;
    for (const DeviceEvent& device : trace_.device)
      first_ns = first_ns == 0 ? device.start_ns : std::min(first_ns, device.start_ns);
    sink_.window(0, ns_of(first_ns), true, 0);
  }
  for (std::size_t i = 0; i < trace_.host.size(); ++i) {
    const HostEvent& event = trace_.host[i];
    mark_until(event.start_ns);
    begin_stretches_until(event.start_ns);
    hand_on_until(i);
    if (event.kind == HostKind::kCall) {
      add_call(event, i);
    } else {
      add(event);
    }
  }
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  mark_until(kEnd);
  hand_on_until(trace_.host.size() + 1);
  close_all(kEnd);
}

void Sweep::open_lanes() {
  // A trace of a device alone has no thread; its steps need one.
  if (trace_.threads.empty()) {
    trace_.threads.push_back({"host", 1});
    lanes_.resize(1);
  }
  for (std::size_t i = 0; i < trace_.threads.size(); ++i)
    sink_.open_lane(static_cast<std::uint32_t>(i), trace_.threads[i].tid, trace_.threads[i].name);
}

// ---- Steps and stretches ----

void Sweep::mark_until(std::int64_t ns) {
  for (; next_step_ < structure_.steps.size(); ++next_step_) {
    const StepMark& step = structure_.steps[next_step_];
    if (!step_begun_) {
      if (step.start_ns > ns) return;
      step_begun_ = true;
      close_all(step.start_ns);
      sink_.window(step.thread, ns_of(step.start_ns), true, step.index);
    }
    if (step.end_ns > ns) return;
    close_all(step.end_ns);
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      close_run(static_cast<std::uint16_t>(i), lanes_[i]);
    sink_.step(step.thread, ns_of(step.end_ns), step.index);
    // What is between two steps is in none.
    const bool is_last = next_step_ + 1 == structure_.steps.size();
    if (is_last || structure_.steps[next_step_ + 1].start_ns == step.end_ns) continue;
    sink_.window(step.thread, ns_of(step.end_ns), false, step.index + 1);
    step_begun_ = false;
  }
}

void Sweep::begin_stretches_until(std::int64_t ns) {
  for (; next_stretch_ < structure_.stretches.size(); ++next_stretch_) {
    const Stretch& stretch = structure_.stretches[next_stretch_];
    if (stretch.start_ns > ns) return;
    Lane& lane = lanes_[stretch.thread];
    close_until(stretch.thread, lane, {.start_ns = stretch.start_ns, .end_ns = stretch.end_ns});
    close_run(stretch.thread, lane);
    // An annotation around it tells the phase better.
    if (stretch.phase == Phase::kBackward && place_of(lane).phase != Phase::kOther) continue;
    push_frame(
        stretch.thread, lane,
        {.kind = SpanKind::kRegion,
         .start_ns = stretch.start_ns,
         .end_ns = stretch.end_ns,
         .place = {kNoLayer, stretch.phase, Cause::kNone, 0}},
        {.start_ns = ns_of(stretch.start_ns), .kind = SpanKind::kRegion, .phase = stretch.phase});
  }
}

// ---- The host ----

void Sweep::add(const HostEvent& event) {
  switch (event.kind) {
    case HostKind::kModule:
      return add_module(event);
    case HostKind::kRegion:
    case HostKind::kAnnotation:
    case HostKind::kPass:
      return add_region(event);
    case HostKind::kMemory:
      return add_memory(event);
    default:
      return add_operator(event);
  }
}

// What runs now on the thread belongs here.
Place Sweep::place_of(const Lane& lane) const {
  const std::size_t running = run_begin(lane);
  Place place{kNoLayer, Phase::kOther, Cause::kThreadNoScope, 0};
  if (running != 0) place = lane.frames[running - 1].place;
  const bool knows_modules = lane.entered_module || !structure_.has_modules;
  if (place.cause == Cause::kThreadNoScope && knows_modules) place.cause = Cause::kNoScope;
  return place;
}

void Sweep::push_frame(std::uint16_t thread, Lane& lane, Frame frame, const SpanBegin& span) {
  settle_operators(thread, lane);
  if (!lane.frames.empty()) {
    const Frame& around = lane.frames.back();
    frame.in_node = frame.in_node || around.in_node;
    if (!around.in_run) frame.end_ns = std::min(frame.end_ns, around.end_ns);
  }
  lane.frames.push_back(frame);
  sink_.begin(thread, span);
}

void Sweep::pop_frame(std::uint16_t thread, Lane& lane, std::int64_t ns) {
  sink_.end(thread, Track::kScopes, ns_of(ns), EndedBy::kExit);
  lane.frames.pop_back();
}

// Where the layers' backward spans that are open begin on the stack: its size where there are none.
std::size_t Sweep::run_begin(const Lane& lane) {
  std::size_t begin = lane.frames.size();
  while (begin != 0 && lane.frames[begin - 1].in_run) --begin;
  return begin;
}

void Sweep::close_run(std::uint16_t thread, Lane& lane, std::size_t keep) {
  const std::size_t least = run_begin(lane) + keep;
  while (lane.frames.size() > least) pop_frame(thread, lane, lane.last_node_end_ns);
}

// Ends what is over when the next begins.
void Sweep::close_until(std::uint16_t thread, Lane& lane, const HostEvent& next) {
  const auto is_over = [&next](std::int64_t end_ns) {
    return end_ns < next.start_ns || (end_ns == next.start_ns && next.end_ns > end_ns);
  };
  while (!lane.operators.empty() && is_over(lane.operators.back().end_ns))
    pop_operator(thread, lane, lane.operators.back().end_ns);
  for (;;) {
    const std::size_t begin = run_begin(lane);
    if (begin == 0) return;
    const Frame& frame = lane.frames[begin - 1];
    // What reaches a little into the next is over, too: it does not hold it.
    const bool sticks_out = next.end_ns > frame.end_ns && frame.end_ns - next.start_ns < kSkewNs &&
                            next.end_ns - next.start_ns > frame.end_ns - next.start_ns &&
                            next.start_ns > frame.start_ns;
    const bool is_scope = next.kind != HostKind::kOperator && next.kind != HostKind::kCall;
    // An annotation that ends inside a module's call is cut, not the call.
    const bool cuts_module = next.kind == HostKind::kModule && frame.kind == SpanKind::kRegion &&
                             next.start_ns > frame.start_ns && next.end_ns > frame.end_ns + kSkewNs;
    if (!is_over(frame.end_ns) && !(sticks_out && is_scope) && !cuts_module) return;
    close_run(thread, lane);
    if (lane.frames.back().kind == SpanKind::kNode)
      lane.last_node_end_ns = lane.frames.back().end_ns;
    const Frame& over = lane.frames.back();
    pop_frame(thread, lane, std::min(over.end_ns, std::max(next.start_ns, over.start_ns)));
  }
}

void Sweep::close_all(std::int64_t ns) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    close_until(static_cast<std::uint16_t>(i), lanes_[i], {.start_ns = ns, .end_ns = ns});
    if (ns == std::numeric_limits<std::int64_t>::max())
      close_run(static_cast<std::uint16_t>(i), lanes_[i]);
  }
}

void Sweep::add_module(const HostEvent& event) {
  Lane& lane = lanes_[event.thread];
  close_until(event.thread, lane, event);
  close_run(event.thread, lane);
  const Place around = place_of(lane);
  lane.entered_module = true;
  const bool in_node = !lane.frames.empty() && lane.frames.back().in_node;
  Phase phase = Phase::kForward;
  if (in_node) {
    phase = Phase::kRecompute;
  } else if (around.layer != kNoLayer || around.phase == Phase::kLoss) {
    phase = around.phase;
  }
  Place place{structure_.layer_of_module[event.name], phase, Cause::kNone,
              static_cast<std::uint32_t>(calls_.size())};
  calls_.push_back({place.layer, around.call});
  // An operator that seems to have begun just before is inside all the same.
  for (const OpenOperator& op : std::ranges::reverse_view(lane.operators)) {
    if (op.start_ns + kSkewNs / 4 < event.start_ns || op.end_ns > event.end_ns + kSkewNs) break;
    forward_.add({.start_ns = op.start_ns, .detail = op.detail, .thread = event.thread}, place);
  }
  push_frame(event.thread, lane,
             {.kind = SpanKind::kScope,
              .start_ns = event.start_ns,
              .end_ns = event.end_ns,
              .place = place},
             {.start_ns = ns_of(event.start_ns),
              .kind = SpanKind::kScope,
              .phase = phase,
              .layer = place.layer,
              .call = place.call});
}

void Sweep::add_region(const HostEvent& event) {
  const NameMeaning& meaning = trace_.names.meaning(NameId{event.name});
  Lane& lane = lanes_[event.thread];
  close_until(event.thread, lane, event);
  if (event.kind == HostKind::kAnnotation && meaning.kind == NameKind::kStep) return;
  close_run(event.thread, lane);
  Place place = place_of(lane);
  const Phase phase = event.kind == HostKind::kPass ? Phase::kBackward : meaning.phase;
  const bool changes_layer =
      phase == Phase::kBackward || phase == Phase::kOptimizer || !structure_.has_modules;
  const bool in_node = !lane.frames.empty() && lane.frames.back().in_node;
  if (phase != Phase::kOther && !in_node && (place.layer == kNoLayer || changes_layer)) {
    place.layer = kNoLayer;
    place.phase = phase;
    place.cause = has_own_phase(phase)        ? Cause::kNone
                  : phase == Phase::kBackward ? Cause::kBetweenNodes
                                              : Cause::kNoScope;
    // A call of autograd's engine mostly waits for other threads.
    if (!structure_.has_modules && phase != Phase::kBackward)
      place = open_layer(event, lane, operator_layers_.phase(phase), phase);
  }
  push_frame(event.thread, lane,
             {.kind = SpanKind::kRegion,
              .start_ns = event.start_ns,
              .end_ns = event.end_ns,
              .name = NameId{event.name},
              .place = place},
             {.start_ns = ns_of(event.start_ns),
              .kind = SpanKind::kRegion,
              .phase = place.phase,
              .cause = place.layer == kNoLayer ? Cause::kNone : place.cause,
              .layer = place.layer,
              .name = NameId{event.name}});
}

void Sweep::add_memory(const HostEvent& event) {
  sink_.counter({.ns = ns_of(event.start_ns),
                 .value = event.detail,
                 .device = event.name,
                 .counter = DeviceCounter::kMemoryAllocated});
}

void Sweep::add_operator(const HostEvent& event) {
  const NameMeaning& meaning = trace_.names.meaning(NameId{event.name});
  Lane& lane = lanes_[event.thread];
  close_until(event.thread, lane, event);
  if (repeats_node(event, meaning, lane)) {
    accounts_.keep_as_part();
    return;
  }
  if (is_node(event, meaning, lane)) return add_node(event, meaning);
  close_run(event.thread, lane);
  Place place = place_of(lane);
  forward_.add(event, place);
  if (is_recomputed(event, lane)) {
    const LayerId layer = operator_layers_.operator_in(Phase::kRecompute, NameId{event.name});
    place = open_layer(event, lane, layer, Phase::kRecompute);
  } else if (stands_for_layer(lane)) {
    const Phase phase = place.phase == Phase::kOther ? Phase::kForward : place.phase;
    const LayerId layer = operator_layers_.operator_in(phase, NameId{event.name});
    place = open_layer(event, lane, layer, phase);
  }
  std::int64_t end_ns = event.end_ns;
  if (!lane.operators.empty()) end_ns = std::min(end_ns, lane.operators.back().end_ns);
  settle_operators(event.thread, lane);
  lane.operators.push_back(
      {event.start_ns, end_ns, event.detail, NameId{event.name}, place, OpenOperator::kWaiting});
  // Where a device does the work, operators are there to be seen: all of them.
  if (!trace_.device.empty()) tell_operator(event.thread, lane.operators.back());
}

void Sweep::tell_operator(std::uint16_t thread, OpenOperator& op) {
  op.state = OpenOperator::kTold;
  sink_.begin(thread, {.start_ns = ns_of(op.start_ns),
                       .kind = SpanKind::kActivity,
                       .phase = op.place.phase,
                       .cause = op.place.layer == kNoLayer ? op.place.cause : Cause::kNone,
                       .layer = op.place.layer,
                       .name = op.name});
}

// The innermost operator turns out to hold something. It is an activity all the same, unless it
// only calls others.
void Sweep::settle_operators(std::uint16_t thread, Lane& lane) {
  if (lane.operators.empty()) return;
  OpenOperator& op = lane.operators.back();
  if (op.state != OpenOperator::kWaiting) return;
  if (trace_.names.meaning(op.name).is_composite) {
    op.state = OpenOperator::kDropped;
    accounts_.keep_as_part();
  } else {
    tell_operator(thread, op);
  }
}

void Sweep::pop_operator(std::uint16_t thread, Lane& lane, std::int64_t ns) {
  OpenOperator& op = lane.operators.back();
  if (op.state == OpenOperator::kWaiting) tell_operator(thread, op);
  if (op.state == OpenOperator::kTold)
    sink_.end(thread, Track::kActivities, ns_of(std::max(ns, op.start_ns)), EndedBy::kExit);
  lane.operators.pop_back();
}

// ---- Backward ----

// Inside the engine's evaluation of a node, the node itself.
bool Sweep::repeats_node(const HostEvent& event, const NameMeaning& meaning,
                         const Lane& lane) const {
  if (meaning.kind == NameKind::kEvaluation || lane.frames.empty()) return false;
  const Frame& around = lane.frames.back();
  if (around.kind != SpanKind::kNode || !lane.operators.empty()) return false;
  const std::uint64_t sequence = sequence_of(event);
  if (sequence != 0 && forward_thread_of(event) != 0) return sequence == around.sequence;
  return meaning.kind == NameKind::kNode && sequence == 0;
}

bool Sweep::is_node(const HostEvent& event, const NameMeaning& meaning, const Lane& lane) const {
  if (meaning.kind == NameKind::kEvaluation) return true;
  const bool tells_forward = sequence_of(event) != 0 && forward_thread_of(event) != 0;
  if (meaning.kind == NameKind::kNode) return tells_forward || lane.operators.empty();
  return tells_forward && lane.operators.empty();
}

Place Sweep::owner_of(const HostEvent& node, const NameMeaning& meaning, const Lane& lane) {
  Place owner{kNoLayer, Phase::kBackward, Cause::kMadeBefore, 0};
  if (!structure_.has_modules) {
    const NameId name = meaning.shown != kNoName ? meaning.shown : NameId{node.name};
    owner.layer = operator_layers_.operator_in(Phase::kBackward, name);
    owner.cause = Cause::kNone;
    owner.call = static_cast<std::uint32_t>(calls_.size());
    calls_.push_back({owner.layer, 0});
    return owner;
  }
  if (meaning.accumulates) {
    // The engine runs it at once behind the node that made the gradient.
    owner.cause = Cause::kForeignLeaf;
    if (lane.last_node.layer != kNoLayer) {
      owner = lane.last_node;
      owner.cause = Cause::kNone;
    }
    return owner;
  }
  const auto made = forward_.find(node);
  if (!made) return owner;
  owner.layer = made->layer;
  owner.call = made->call;
  owner.cause = made->layer == kNoLayer ? Cause::kMadeOutside : Cause::kNone;
  return owner;
}

void Sweep::add_node(const HostEvent& event, const NameMeaning& meaning) {
  Lane& lane = lanes_[event.thread];
  // It is no operator's part: the engine runs it.
  while (!lane.operators.empty())
    pop_operator(event.thread, lane, std::min(lane.operators.back().end_ns, event.start_ns));
  const Place owner = owner_of(event, meaning, lane);
  join_run(event.thread, lane, owner, event.start_ns);
  if (!meaning.accumulates) lane.last_node = owner;
  const NameId name = meaning.shown != kNoName ? meaning.shown : NameId{event.name};
  push_frame(event.thread, lane,
             {.kind = SpanKind::kNode,
              .in_node = true,
              .start_ns = event.start_ns,
              .end_ns = event.end_ns,
              .sequence = sequence_of(event),
              .name = name,
              .place = owner},
             {.start_ns = ns_of(event.start_ns),
              .kind = SpanKind::kNode,
              .phase = Phase::kBackward,
              .cause = owner.cause,
              .accumulates = meaning.accumulates,
              .layer = owner.layer,
              .name = name,
              .sequence = sequence_of(event)});
}

// Consecutive nodes of one call are one backward span of its layer, nested as the calls were.
void Sweep::join_run(std::uint16_t thread, Lane& lane, const Place& owner, std::int64_t ns) {
  chain_.clear();
  for (std::uint32_t call = owner.call; call != 0; call = calls_[call].around)
    chain_.push_back(call);
  std::ranges::reverse(chain_);
  const std::size_t begin = run_begin(lane);
  std::size_t common = 0;
  while (common < chain_.size() && begin + common < lane.frames.size() &&
         lane.frames[begin + common].place.call == chain_[common])
    ++common;
  close_run(thread, lane, common);
  for (std::size_t i = common; i < chain_.size(); ++i) {
    const LayerId layer = calls_[chain_[i]].layer;
    push_frame(thread, lane,
               {.kind = SpanKind::kBackward,
                .in_run = true,
                .start_ns = ns,
                .end_ns = std::numeric_limits<std::int64_t>::max(),
                .place = {layer, Phase::kBackward, Cause::kNone, chain_[i]}},
               {.start_ns = ns_of(ns),
                .kind = SpanKind::kBackward,
                .phase = Phase::kBackward,
                .layer = layer,
                .call = chain_[i]});
  }
  lane.last_node_end_ns = std::max(lane.last_node_end_ns, ns);
}

}  // namespace layertrace::kineto
