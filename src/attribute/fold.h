// A Profile is a fold over spans. This unit keeps the stack of each lane, adds each span to its
// layer's sums of the step in which it began, and folds a finished step into the series. Live
// recording and reading a file back run the same fold over the same stream, so both give the same
// Profile.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/amount_table.h"
#include "attribute/device_idle.h"
#include "attribute/figure_table.h"
#include "attribute/kernel_table.h"
#include "attribute/memory_table.h"
#include "attribute/operator_times.h"
#include "attribute/shape_table.h"
#include "attribute/span.h"
#include "attribute/step_sums.h"

namespace layertrace {

class Fold final : public SpanSink {
 public:
  // The medians' samples and the list of steps take about `memory_bytes` at most: where there are
  // more, they are thinned out.
  explicit Fold(const Dictionary& dictionary, std::size_t memory_bytes = std::size_t{8} << 20)
      : dictionary_(dictionary),
        memory_bytes_(memory_bytes),
        table_(memory_bytes),
        memory_(dictionary, memory_bytes) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override;
  void close_lane(Lane lane) override;
  void begin(Lane lane, const SpanBegin& span) override;
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override;
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override;
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override;
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override;
  void amounts(Lane lane, const AmountsSpan& span) override;
  void counting(Lane lane, const CountingSpan& span) override;
  void shapes(Lane lane, const ShapesSpan& span) override;
  void memory(Lane lane, const MemorySpan& span) override;
  void use_device(const std::string& /*name*/) override { has_device_ = true; }
  void count_outside_steps() override { counts_outside_steps_ = true; }
  void device(const DeviceSpan& span) override;
  void launch(const LaunchSpan& span) override;
  void event_pair(const EventSpan& span) override;

  // Calls it with each step, as it is folded, and each layer's and phase's figures in it: a Profile
  // has what they come to.
  using WatchFigures =
      std::function<void(std::uint64_t step, std::size_t slot, const CellFigures& figures)>;
  void watch(WatchFigures watch) { watch_ = std::move(watch); }

  // Layers, steps, outside and the ledger; the caller adds what the spans cannot tell (run, costs,
  // dropped). `end_ns` is where the recording ends. Call once, last.
  Profile finish(std::uint64_t end_ns);

 private:
  static constexpr std::uint64_t kOver = ~std::uint64_t{0};
  using PhaseTimes = std::array<std::uint64_t, kPhaseCount>;
  struct OpenSpan {
    SpanKind kind;
    Phase phase;
    Cause cause;
    LayerId layer;
    NameId name;
    std::uint64_t start_ns;
    std::uint64_t from_ns;   // up to here it has been added to a step; kOver when no more will be
    PhaseTimes inside_ns{};  // since then: time of the spans within that count on their own
    bool counted = false;    // as a call
    bool awaited = false;    // by another thread, which has called the backward
  };
  struct OpenActivity {
    Phase phase;
    Cause cause;
    LayerId layer;
    NameId name;
    std::uint64_t start_ns;
    OperatorTimes::Stack stack = 0;  // with those around it
    std::uint64_t inside_ns = 0;     // time of the activities within
  };
  struct LaneState {
    std::uint32_t tid = 0;
    std::vector<OpenSpan> scopes;
    std::vector<OpenActivity> activities;
    std::uint32_t passes = 0;  // of autograd that are open
    std::uint64_t last_ns = 0;
    PhaseTimes step_ns{};  // own time by phase, in the step that runs
    std::vector<std::uint32_t>
        active;  // per layer and phase: how many of its spans (or its children's) are open
  };
  struct OpenStep {
    std::uint64_t index = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;  // 0: not ended yet
    PhaseTimes phase_ns{};     // on the thread that ended it
    StepSums sums;
    CountedStep counted;
  };

  void tell_place(const LaneState& state, std::uint64_t ns);
  void end_scope(LaneState& state, std::uint64_t end_ns, EndedBy by);
  void end_activity(LaneState& state, std::uint64_t end_ns);
  static std::uint64_t add_part(LaneState& state, OpenSpan& span, OpenSpan* parent,
                                std::uint64_t end_ns, StepSums& sums);
  void divide_open_spans(LaneState& state, std::uint64_t ns);
  std::size_t most_open_steps() const;
  void end_step(Lane lane, std::uint64_t ns);
  void enter_layer(LaneState& state, const OpenSpan& span);
  void leave_layer(LaneState& state, const OpenSpan& span, std::uint64_t ns, StepSums& sums);
  OpenStep* step_at(std::uint64_t ns);
  OpenStep* step_asked_at(std::uint64_t ns);
  StepSums& sums_at(std::uint64_t ns);
  static Cell& cell_of(StepSums& sums, LayerId layer, Phase phase) {
    return layer != kNoLayer ? sums.cell(layer, phase) : sums.outside(phase);
  }
  void open_step(std::uint64_t ns, std::uint64_t index);
  void fold_oldest();
  void keep_within_memory();
  void fill_layers(Profile& profile) const;
  void note_rest(StepSums& rest);
  void count_outside(StepSums& outside);
  void note_modules_not_entered(const Profile& profile);
  void fill_health(Health& health) const;
  std::vector<Unattributed> causes(const Ledger& ledger) const;

  const Dictionary& dictionary_;
  std::vector<LaneState> lanes_;
  bool recording_ = false;
  // The step that runs, and the one before it, for lanes whose records come a little later.
  std::deque<OpenStep> open_steps_;
  StepSums nowhere_;                   // for spans before the first window
  std::uint64_t folded_until_ns_ = 0;  // the end of the last step that was folded
  std::vector<StepSums> spare_;
  bool has_device_ = false;
  bool counts_outside_steps_ = false;
  std::uint32_t passes_ = 0;  // of autograd that are open on any lane
  DeviceIdle device_idle_;
  KernelTable kernels_;
  KernelTable rest_kernels_;          // of the step that has not ended yet
  std::uint64_t outside_window_ = 0;  // what a device did, asked for while nothing was recorded
  std::uint64_t event_pairs_ = 0;
  std::uint64_t early_ = 0;
  std::uint64_t earlier_graphs_ = 0;
  // There may be very many: each is kept small, in a list that grows by pieces.
  struct KeptStep {
    std::uint64_t index;
    std::uint64_t start_ns;
    std::uint64_t wall_ns;
    PhaseTimes phase_ns;
  };
  std::deque<KeptStep> steps_;
  std::deque<std::vector<DeviceStep>> step_devices_;  // of each; empty without a device
  static Step as_step(const KeptStep& kept, std::vector<DeviceStep> devices) {
    return {kept.index, kept.start_ns, kept.wall_ns, kept.phase_ns, std::move(devices)};
  }
  std::uint64_t step_stride_ = 1;
  std::uint64_t steps_without_mark_ = 0;
  std::size_t memory_bytes_;
  FigureTable table_;
  WatchFigures watch_;
  AmountTable amounts_;
  MemoryTable memory_;
  OperatorTimes operator_times_;  // in all recorded steps
  ShapeTable shapes_;
  Ledger activities_;
  Ledger nodes_;
  std::uint64_t inferred_ = 0;
  std::uint64_t inferred_ns_ = 0;
  std::uint64_t cut_scopes_ = 0;
  std::uint64_t thrown_scopes_ = 0;
  std::vector<std::string> notes_;
};

// Adds to what the spans tell what they cannot: costs, dropped records, a cut, notes.
void add_closing(Health& health, const Health& closing);

}  // namespace layertrace
