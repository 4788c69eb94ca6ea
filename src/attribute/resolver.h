// Attribution: records in, owned spans out.
//
// A record knows only what its thread knew when it was written: "node 17 of thread 3 begins". This
// unit finds out whose it is. It follows each thread's stack, so an operator belongs to the scope
// or node it ran in; it finds the forward call that made a backward node by the node's number (see
// intervals.h); and it joins consecutive nodes of one call into the backward span of a layer,
// nested as the forward calls were. A span leaves as soon as it is known.
//
// It reads no clock and knows neither Torch nor CUDA: hand-written records are all that a test
// needs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "attribute/intervals.h"
#include "attribute/span.h"
#include "base/clock.h"
#include "record/drain.h"

namespace layertrace {

class Resolver final : public RecordConsumer {
 public:
  // What ran on a thread at a moment, or inside a frame of its stack.
  struct Place {
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
    Cause cause = Cause::kNoScope;
    std::uint64_t call = 0;
  };

  // The dictionary must hold, at each call, the definitions of all ids in the records.
  // `max_intervals` bounds the memory of past forward calls, over all threads. With `infers`, what
  // runs between two layers, outside any scope, belongs to the lowest module that holds both.
  Resolver(const Dictionary& dictionary, SpanSink& sink, TickScale scale, std::size_t max_intervals,
           bool infers = false);

  void refresh() override {}
  void open_lane(Lane lane, std::uint64_t key, std::uint64_t tid, const std::string& name) override;
  void close_lane(Lane lane) override;
  void index(Lane lane, std::span<const Record> records) override;
  void resolve(Lane lane, std::span<const Record> records) override;

  // Closes what is still open, as cut.
  void finish(std::uint64_t now_ticks);

  // For what a device did: from now on it is remembered what ran after each numbered record, so
  // many of a thread.
  void remember_places(std::size_t most) { most_places_ = most; }
  // What ran after the record with this id; nothing if that is not known yet.
  std::optional<Place> place_of_frame(std::uint64_t frame) const;
  // What ran on the system's thread of this number.
  Place place_at(std::uint32_t tid, std::uint64_t ns) const;

 private:
  // What something that runs now belongs to.
  struct Context {
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
    Cause cause = Cause::kNoScope;
  };
  struct Frame {
    SpanKind kind = SpanKind::kScope;
    bool emitted = false;
    bool is_loss = false;       // the stretch after the model's forward, opened and closed by us
    bool has_phase = false;     // a region whose name says its phase
    bool resumes_loss = false;  // the loss was interrupted for it
    bool held_model = false;    // a scope in which a whole model was called
    bool held_ops = false;      // a loss in which operators ran
    Context context;
    NameId name = kNoName;  // of a region
    std::uint64_t call = 0;
    std::uint64_t first_sequence = 0;  // of a scope: the counter at entry
  };
  struct OpFrame {
    NameId name;
    bool composite;
    enum : std::uint8_t { kWaiting, kEmitted, kDropped } state;
    Context context;
    std::uint64_t start_ns;
  };
  struct Owner {
    LayerId layer = kNoLayer;
    const Intervals* intervals =
        nullptr;  // where `call` was found; nullptr for a parameter's owner
    const Intervals::Interval* call = nullptr;
    Cause cause = Cause::kNone;
  };
  struct CallRef {
    LayerId layer;
    std::uint64_t call;
  };
  struct Change {
    std::uint64_t ns;
    Place place;
    bool is_open = false;  // it shows only when the next layer begins, as for inference below
  };
  // What ran after each of the thread's numbered records, of which the last is number `numbered`.
  struct Places {
    std::deque<Change> changes;
    std::uint64_t numbered = 0;
  };
  struct LaneState {
    explicit LaneState(std::size_t max_intervals) : intervals(max_intervals) {}
    Intervals intervals;
    std::uint64_t indexed_calls = 0;
    std::uint64_t resolved_calls = 0;
    std::vector<Frame> frames;
    std::vector<OpFrame> ops;
    std::uint64_t now_ns = 0;  // of the last record
    std::uint64_t last_node_end_ns = 0;
    std::uint16_t indexed_window = 0;
    std::uint16_t resolved_window = 0;
    // For inference: the last layer that was called outside any scope; what has run since then; and
    // what it is found to belong to, while that is resolved.
    LayerId last_layer = kNoLayer;
    std::vector<Record> held;
    std::optional<Context> inferred;
    // The same, on the way to the intervals.
    std::uint32_t indexed_depth = 0;
    LayerId indexed_layer = kNoLayer;       // of the outermost open scope
    LayerId indexed_last_layer = kNoLayer;  // of the last one that ended
    std::uint64_t indexed_last_end = 0;     // and the counter then
    bool entered_module = false;
    bool closed = false;
    std::unique_ptr<Places> places;      // for devices
    std::uint64_t product_elements = 0;  // that the last contraction put out, until fvcore sees it
  };

  void on_scope_begin(Lane lane, LaneState& state, const Record& record);
  void on_scope_end(Lane lane, LaneState& state, const Record& record);
  void on_region_begin(Lane lane, LaneState& state, const Record& record);
  void on_node_begin(Lane lane, LaneState& state, const Record& record);
  void on_frame_end(Lane lane, LaneState& state, const Record& record, SpanKind kind);
  void on_window(Lane lane, LaneState& state, const Record& record);
  // A record may come a little late: then what was so before the last change holds.
  bool recorded(const LaneState& state) const noexcept {
    return recording_ == (state.now_ns >= switched_ns_);
  }
  void on_op_begin(Lane lane, LaneState& state, const Record& record);
  void on_op_end(Lane lane, LaneState& state);
  void on_amounts(Lane lane, LaneState& state, const Record& record);
  void on_shapes(Lane lane, LaneState& state, const Record& record);
  void on_memory(Lane lane, LaneState& state, const Record& record);
  void resolve_one(Lane lane, LaneState& state, const Record& record);

  bool hold_back(Lane lane, LaneState& state, const Record& record);
  void release_held(Lane lane, LaneState& state, Context context);
  void index_inferred(LaneState& state, const Record& record);
  LayerId common_parent(LayerId first, LayerId second) const;
  Owner find_owner(std::uint64_t value, bool accumulates, std::uint64_t at_ticks) const;
  static bool run_goes_on(const Owner& owner, const LaneState& state);
  void call_chain(const Owner& owner, const LaneState& state);
  void reopen_run(Lane lane, LaneState& state);
  void share_intervals();

  void remember_place(LaneState& state, const Record& record);
  static void settle_place(LaneState& state, Context context);
  static Context current(const LaneState& state);
  static Context current(const LaneState& state, const Frame* innermost);
  static const Frame* innermost_running(const LaneState& state);
  Context settle(Lane lane, LaneState& state);
  void abandon(Lane lane, LaneState& state, std::uint64_t at_ns);
  void settle_ops(Lane lane, LaneState& state);
  void close_run(Lane lane, LaneState& state, std::size_t keep = 0);
  void close_all_runs();
  void close_inner(Lane lane, LaneState& state);
  void close_loss(Lane lane, LaneState& state);
  bool end_loss(Lane lane, LaneState& state);
  void begin_loss(Lane lane, LaneState& state);
  bool ends_model(LayerId layer) const;
  bool may_go_on_after(LayerId layer) const;
  void push_region(Lane lane, LaneState& state, const Frame& frame);
  void pop_frame(Lane lane, LaneState& state, std::uint64_t end_ns, EndedBy by);
  void push_frame(Lane lane, LaneState& state, const Frame& frame, const SpanBegin& span);
  void emit_op_begin(Lane lane, OpFrame& op);
  static bool inside_node(const LaneState& state);
  static std::size_t run_begin(const LaneState& state);
  LayerId parameter_owner(std::uint64_t address, std::uint64_t at_ticks) const;
  bool is_ancestor(LayerId ancestor, LayerId layer) const;
  static std::uint64_t call_id(Lane lane, std::uint64_t number) noexcept {
    return (std::uint64_t{lane} + 1) << 40 | number;
  }

  const Dictionary& dictionary_;
  SpanSink& sink_;
  TickScale scale_;
  std::size_t max_intervals_;
  const bool infers_;
  bool recording_ = false;
  std::uint64_t switched_ns_ = 0;  // when that was last changed
  std::uint64_t paused_ns_ = 0;    // when it last stopped
  std::vector<LaneState> lanes_;
  std::size_t live_lanes_ = 0;
  std::size_t lanes_provided_for_ = 4;  // most programs have one or two that run modules
  std::deque<Lane> closed_lanes_;       // whose intervals are still known
  std::size_t closed_intervals_ = 0;    // in all of them
  std::size_t most_places_ = 0;
  std::unordered_map<std::uint64_t, Lane> lane_of_key_;
  std::unordered_map<std::uint64_t, Lane> lane_of_tid_;  // the last that had it
  struct ParameterOwner {
    LayerId layer = kNoLayer;
    std::uint64_t since_ticks = 0;
  };
  mutable std::unordered_map<std::uint64_t, ParameterOwner> parameter_owners_;
  mutable std::size_t parameters_known_ = 0;
  mutable std::vector<LayerId> last_child_;  // of each layer, kNoLayer without any
  std::vector<CallRef> chain_;               // scratch: the calls around a node, outermost first
};

}  // namespace layertrace
