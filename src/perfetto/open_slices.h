// The slices that are open on a lane, as the writer needs to know them: what is counted of an
// operator or of a module's call is told while it is open, and goes into its end.
//
// An operator's amounts come in parts, just before its end. Until something else comes on its track
// they wait here: for one another, and for that end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

#include "attribute/span.h"

namespace layertrace {

struct OpenSlice {
  SpanKind kind = SpanKind::kScope;
  Phase phase = Phase::kOther;
  Cause cause = Cause::kNone;
  LayerId layer = kNoLayer;
  NameId name = kNoName;
  NameId input = kNoName;  // what is told of a module's call
  NameId output = kNoName;

  // Of a layer's call or backward, with the layers inside: what was counted so far.
  std::uint64_t flops = 0;
  bool is_counted = false;

  bool is_layers() const noexcept {
    return kind == SpanKind::kScope || kind == SpanKind::kBackward;
  }
  bool has_shapes() const noexcept { return input != kNoName || output != kNoName; }
};

class OpenSlices {
 public:
  void begin(const SpanBegin& span) {
    on(track_of(span.kind))
        .push_back({.kind = span.kind,
                    .phase = span.phase,
                    .cause = span.cause,
                    .layer = span.layer,
                    .name = span.name});
  }
  // Is there more to tell of the innermost slice than that it ends?
  bool has_more(Track track) const noexcept {
    return has_amounts_ || (track == Track::kScopes && !scopes_.empty() &&
                            (scopes_.back().has_shapes() || scopes_.back().is_counted));
  }
  OpenSlice innermost(Track track) {
    const std::vector<OpenSlice>& slices = on(track);
    return slices.empty() ? OpenSlice() : slices.back();
  }
  void end(Track track) {
    std::vector<OpenSlice>& slices = on(track);
    if (slices.empty()) return;
    const OpenSlice ended = slices.back();
    slices.pop_back();
    // What is computed again inside a backward is none of that.
    if (ended.is_counted && !slices.empty() && slices.back().phase == ended.phase)
      add(slices.back(), ended.flops);
  }

  // False where no open slice is the call that they are about.
  bool take(const ShapesSpan& span) {
    const auto call = std::ranges::find_if(std::views::reverse(scopes_), [&](const OpenSlice& s) {
      return s.kind == SpanKind::kScope && s.layer == span.layer;
    });
    if (call == scopes_.rend()) return false;
    NameId& shapes = span.is_output ? call->output : call->input;
    return std::exchange(shapes, shapes == kNoName ? span.shapes : shapes) == kNoName;
  }

  // Counts for the layer whose call or backward is open, and for those around it when it ends.
  void count(const AmountsSpan& span) {
    if (span.layer == kNoLayer) return;
    const auto of_layer =
        std::ranges::find_if(std::views::reverse(scopes_), [&](const OpenSlice& slice) {
          return slice.is_layers() && slice.layer == span.layer && slice.phase == span.phase;
        });
    if (of_layer != scopes_.rend()) add(*of_layer, span.amounts.flops);
  }

  bool has_amounts() const noexcept { return has_amounts_; }
  // False where others wait, of another call.
  bool take(const AmountsSpan& span) {
    if (!std::exchange(has_amounts_, true)) {
      amounts_ = span;
      return true;
    }
    if (!is_more(span)) return false;
    OpAmounts& sum = amounts_.amounts;
    sum.flops += span.amounts.flops;
    sum.aux_flops += span.amounts.aux_flops;
    sum.flops_causal += span.amounts.flops_causal;
    sum.bytes += span.amounts.bytes;
    sum.activations += span.amounts.activations;
    sum.fvcore_flops += span.amounts.fvcore_flops;
    sum.fvcore_activations += span.amounts.fvcore_activations;
    return true;
  }
  const AmountsSpan& release_amounts() noexcept {
    has_amounts_ = false;
    return amounts_;
  }
  // Are those that wait this operator's, as its slice shows it?
  bool has_amounts_of(const OpenSlice& slice) const noexcept {
    return amounts_.amounts.op == slice.name && amounts_.phase == slice.phase &&
           amounts_.cause == slice.cause && amounts_.layer == slice.layer;
  }
  std::uint64_t amounts_ns() const noexcept { return amounts_.ns; }

 private:
  static void add(OpenSlice& slice, std::uint64_t flops) {
    if (__builtin_add_overflow(slice.flops, flops, &slice.flops))
      slice.flops = std::numeric_limits<std::uint64_t>::max();
    slice.is_counted = true;
  }
  std::vector<OpenSlice>& on(Track track) {
    return track == Track::kActivities ? activities_ : scopes_;
  }
  // Only a call's first part says that it is one. What counts as a call adds up to one for each.
  bool is_more(const AmountsSpan& span) const noexcept {
    const OpAmounts& more = span.amounts;
    return !more.is_call && !more.is_uncounted && more.op == amounts_.amounts.op &&
           more.format == amounts_.amounts.format && span.ns == amounts_.ns &&
           span.phase == amounts_.phase && span.cause == amounts_.cause &&
           span.layer == amounts_.layer;
  }

  std::vector<OpenSlice> scopes_;
  std::vector<OpenSlice> activities_;
  AmountsSpan amounts_;
  bool has_amounts_ = false;
};

}  // namespace layertrace
