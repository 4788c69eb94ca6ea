// The resolver's other half: whose is an autograd node, and which backward spans does it open?
#include <algorithm>

#include "attribute/resolver.h"

namespace layertrace {
namespace {

// Passes from a node made inside a backward to that backward's own maker, and so on. Each pass is
// one order of differentiation; nobody takes the 64th derivative.
constexpr int kMaxOrder = 64;

}  // namespace

void Resolver::on_node_begin(Lane lane, LaneState& state, const Record& record) {
  settle_ops(lane, state);
  end_loss(lane, state);
  for (Frame& frame : state.frames) frame.resumes_loss = false;
  if ((record.flags & kEngineRoot) !=
      0) {  // where autograd starts a pass: nobody's work, and the end of any run
    close_run(lane, state);
    state.frames.push_back(
        {.kind = SpanKind::kNode, .context = {kNoLayer, Phase::kBackward, Cause::kBetweenNodes}});
    return;
  }

  const bool accumulates = (record.flags & kAccumulates) != 0;
  const Owner owner = find_owner(record.value, accumulates, record.ticks);
  if (owner.layer == kNoLayer) {
    close_run(lane, state);
  } else if (!run_goes_on(owner, state)) {
    call_chain(owner, state);
    reopen_run(lane, state);
  }
  const std::uint64_t call = owner.call != nullptr ? owner.call->value : 0;
  push_frame(lane, state,
             {.kind = SpanKind::kNode,
              .context = {owner.layer, Phase::kBackward, owner.cause},
              .call = call},
             {.start_ns = state.now_ns,
              .kind = SpanKind::kNode,
              .phase = Phase::kBackward,
              .cause = owner.cause,
              .accumulates = accumulates,
              .layer = owner.layer,
              .name = NameId{record.id},
              .sequence = accumulates ? 0 : unpack_node(record.value).sequence + 1});
}

Resolver::Owner Resolver::find_owner(std::uint64_t value, bool accumulates,
                                     std::uint64_t at_ticks) const {
  for (int order = 0; order < kMaxOrder; ++order) {
    if (accumulates) {
      const LayerId layer = parameter_owner(value, at_ticks);
      return {.layer = layer, .cause = layer == kNoLayer ? Cause::kForeignLeaf : Cause::kNone};
    }
    const NodeRef node = unpack_node(value);
    const auto lane = lane_of_key_.find(node.thread);
    if (value == kUnknownNode || lane == lane_of_key_.end())
      return {.cause = Cause::kUnknownThread};
    const Intervals& intervals = lanes_[lane->second].intervals;
    const auto [found, interval] = intervals.find(node.sequence);
    switch (found) {
      case Intervals::Found::kBefore:
        return {.cause = Cause::kMadeBefore};
      case Intervals::Found::kOutside:
        return {.cause = Cause::kMadeOutside};
      case Intervals::Found::kForgotten:
        return {.cause = Cause::kForgotten};
      case Intervals::Found::kYes:
        break;
    }
    if (!interval->is_node) {
      return {interval->layer, &intervals, interval,
              interval->inferred ? Cause::kInferred : Cause::kNone};
    }
    value =
        interval->value;  // made by a backward node outside any scope: it is that node's owner's
    accumulates = interval->accumulates;
  }
  return {.cause = Cause::kForgotten};
}

// What is resolved now may have happened before the parameter was there, when another tensor had
// its place in memory.
LayerId Resolver::parameter_owner(std::uint64_t address, std::uint64_t at_ticks) const {
  for (; parameters_known_ < dictionary_.parameters.size(); ++parameters_known_) {
    const ParameterDef& parameter = dictionary_.parameters[parameters_known_];
    // A tied weight is its first owner's.
    parameter_owners_.try_emplace(parameter.address,
                                  ParameterOwner{parameter.owner, parameter.since_ticks});
  }
  const auto owner = parameter_owners_.find(address);
  const bool is_known = owner != parameter_owners_.end() && owner->second.since_ticks <= at_ticks;
  return is_known ? owner->second.layer : kNoLayer;
}

// The node is of the same call as the one before it.
bool Resolver::run_goes_on(const Owner& owner, const LaneState& state) {
  if (owner.call == nullptr || state.frames.empty()) return false;
  const Frame& last = state.frames.back();
  return last.kind == SpanKind::kBackward && last.call != 0 && last.call == owner.call->value &&
         last.context.layer == owner.layer;
}

// Fills chain_ with the calls around a node, outermost first.
void Resolver::call_chain(const Owner& owner, const LaneState& state) {
  chain_.clear();
  if (owner.call != nullptr) {
    for (const auto* call = owner.call; call != nullptr && !call->is_node;
         call = owner.intervals->parent(*call)) {
      chain_.push_back({call->layer, call->value});
    }
    std::reverse(chain_.begin(), chain_.end());
    return;
  }
  // A parameter's gradient: no call is known. It stays in the open span of its layer, or goes
  // beside what surrounds it.
  const std::size_t first = run_begin(state);
  for (std::size_t i = first; i < state.frames.size(); ++i) {
    const Frame& frame = state.frames[i];
    if (!is_ancestor(frame.context.layer, owner.layer)) break;
    chain_.push_back({frame.context.layer, frame.call});
  }
  if (chain_.empty() || chain_.back().layer != owner.layer) chain_.push_back({owner.layer, 0});
}

bool Resolver::is_ancestor(LayerId ancestor, LayerId layer) const {
  while (layer != kNoLayer && layer != ancestor)
    layer = dictionary_.layers[layertrace::index(layer)].parent;
  return layer == ancestor;
}

std::size_t Resolver::run_begin(const LaneState& state) {
  std::size_t first = state.frames.size();
  while (first != 0 && state.frames[first - 1].kind == SpanKind::kBackward) --first;
  return first;
}

// Closes the backward spans that chain_ does not share, and opens those that it adds.
void Resolver::reopen_run(Lane lane, LaneState& state) {
  const std::size_t first = run_begin(state);
  std::size_t shared = 0;
  while (shared < chain_.size() && first + shared < state.frames.size()) {
    Frame& frame = state.frames[first + shared];
    const CallRef& call = chain_[shared];
    if (frame.context.layer != call.layer ||
        (frame.call != call.call && frame.call != 0 && call.call != 0))
      break;
    if (frame.call == 0) frame.call = call.call;
    ++shared;
  }
  close_run(lane, state, shared);
  for (std::size_t i = shared; i < chain_.size(); ++i) {
    const auto [layer, call] = chain_[i];
    push_frame(lane, state,
               {.kind = SpanKind::kBackward,
                .context = {layer, Phase::kBackward, Cause::kNone},
                .call = call},
               {.start_ns = state.now_ns,
                .kind = SpanKind::kBackward,
                .phase = Phase::kBackward,
                .layer = layer,
                .call = call});
  }
}

// A run of backward nodes ends where its last node did; `keep` of its spans stay open.
void Resolver::close_run(Lane lane, LaneState& state, std::size_t keep) {
  const std::size_t first = run_begin(state);
  while (state.frames.size() > first + keep)
    pop_frame(lane, state, state.last_node_end_ns, EndedBy::kExit);
}

// Autograd's own threads have nothing else to do after the last node, so that nothing ends its run
// there: what is over must not go on into the next step.
void Resolver::close_all_runs() {
  for (Lane lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].frames.empty()) close_run(lane, lanes_[lane]);
  }
}

}  // namespace layertrace
