// The sums of one step: a cell for each layer and phase, and one for each phase outside any layer.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

struct TimeInterval {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

// A list of intervals that is asked for its union's length. Mostly they come in order; then adding
// is appending.
class BusyTime {
 public:
  void add(TimeInterval interval);
  void clear() noexcept {
    intervals_.clear();
    sorted_ = true;
    settled_ns_ = 0;
  }
  bool empty() const noexcept { return intervals_.empty() && settled_ns_ == 0; }
  // Sorted, disjoint. What was settled (below) is no longer in it.
  const std::vector<TimeInterval>& normalised();
  void merge(const BusyTime& other);
  std::uint64_t length();

 private:
  // A step may have no end; beyond this many disjoint intervals the older half is settled into a
  // sum.
  static constexpr std::size_t kMaxIntervals = 1 << 16;
  void settle_oldest();
  void join_overlapping();

  std::vector<TimeInterval> intervals_;
  bool sorted_ = true;
  std::uint64_t settled_ns_ = 0;
};

// Where the figures of a layer and phase stand in a list of all of them.
inline std::size_t slot(LayerId layer, Phase phase) noexcept {
  return index(layer) * kPhaseCount + static_cast<std::size_t>(phase);
}

// What a cell comes to, and where it stands there: in the order of PhaseStats' members.
namespace figure {
inline constexpr std::size_t kCalls = 0;
inline constexpr std::size_t kHost = 1;
inline constexpr std::size_t kBusy = 6;
inline constexpr std::size_t kEvents = 9;
}  // namespace figure
inline constexpr std::size_t kFigureCount = 11;
using CellFigures = std::array<std::uint64_t, kFigureCount>;

struct Cell {
  std::uint64_t calls = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t self_host_ns = 0;
  std::uint64_t activities = 0;
  std::uint64_t activity_ns = 0;
  std::uint64_t self_activity_ns = 0;  // once the children's are added
  BusyTime busy;
  std::uint64_t copies = 0;
  std::uint64_t launches = 0;
  std::uint64_t event_ns = 0;
  std::uint64_t inside_event_ns = 0;  // the children's, which its own already holds if it has any
  std::uint64_t idle_ns = 0;

  CellFigures figures();
  void clear() noexcept;
  bool empty() const noexcept {
    return calls == 0 && host_ns == 0 && self_host_ns == 0 && nothing_to_add();
  }
  // For the layers around.
  bool nothing_to_add() const noexcept {
    return activities == 0 && launches == 0 && event_ns == 0 && inside_event_ns == 0 &&
           idle_ns == 0;
  }
};

// Counts of what has no layer, by cause and name.
struct Ledger {
  struct Entry {
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
    std::unordered_map<std::uint32_t, std::uint64_t> names;  // NameId → count
  };
  std::uint64_t total = 0;
  std::uint64_t total_ns = 0;
  std::array<Entry, kCauseCount> by_cause;

  void add(Cause cause, NameId name, std::uint64_t ns);
  void merge(const Ledger& other);
  void clear();
};

class StepSums {
 public:
  Cell& cell(LayerId layer, Phase phase) { return cell(slot(layer, phase)); }
  Cell& outside(Phase phase) { return outside_[static_cast<std::size_t>(phase)]; }

  // Adds each layer's activities, launches and idle time to its parents', for the figures that
  // include children. `self_activity_ns` keeps what was a layer's own. A layer's pairs of events
  // are around its children's; one that has none gets theirs. Layers are numbered parents first.
  void add_children(const std::vector<LayerDef>& layers);

  // Calls visit(slot, cell) for each that the step has touched.
  template <typename Visit>
  void each(Visit visit) {
    for (std::size_t i = 0; i < place_.size(); ++i) {
      if (place_[i] != 0 && !cells_[place_[i] - 1].empty()) visit(i, cells_[place_[i] - 1]);
    }
  }

  void clear();

  // Of layers and, outside any, of regions.
  std::uint64_t calls() const noexcept;

  Ledger activities;
  Ledger nodes;
  // Backward that ran on autograd's own threads, while the thread that had called it waited.
  std::uint64_t backward_elsewhere_ns = 0;

 private:
  Cell& cell(std::size_t slot);

  // Most layers do something in two phases: their cells stand side by side, in the order in which
  // they were first touched.
  std::vector<std::uint32_t> place_;  // of each slot: 1 + where its cell is; 0: there is none
  std::vector<Cell> cells_;
  std::array<Cell, kPhaseCount> outside_;
};

}  // namespace layertrace
