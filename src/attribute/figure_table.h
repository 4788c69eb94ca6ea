// The figures of all layers and phases, step after step. A figure's series (series.h) takes some
// hundred bytes: with thousands of them, adding to each in every step would mostly be waiting for
// memory. So steps are kept as rows for a while, and then folded figure by figure, which gives the
// same.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/series.h"
#include "attribute/step_sums.h"

namespace layertrace {

class FigureTable {
 public:
  // The medians' samples take about half of `memory_bytes` at most: where there are more, they are
  // thinned out.
  explicit FigureTable(std::size_t memory_bytes) : memory_bytes_(memory_bytes) {}

  // A step: its length, then its cells, those of layers by their slot().
  void begin_step(std::uint64_t wall_ns);
  void add(std::size_t slot, const CellFigures& figures) { add_row(slot + kPhaseCount, figures); }
  void add_outside(Phase phase, const CellFigures& figures) {
    add_row(static_cast<std::size_t>(phase), figures);
  }
  void end_step();

  // What follows is of the steps that were flushed.
  void flush();
  std::uint64_t steps() const noexcept { return steps_; }
  Stat step_ns() const { return wall_.stat(steps_, clock_.slot() + 1); }
  // Whether there was ever anything in it.
  bool has(std::size_t slot) const noexcept { return has_row(slot + kPhaseCount); }
  PhaseStats stats(std::size_t slot) const { return stats_of_row(slot + kPhaseCount); }
  PhaseStats outside(Phase phase) const { return stats_of_row(static_cast<std::size_t>(phase)); }

 private:
  static constexpr std::size_t kMostPending = 32;
  static constexpr std::size_t kFiguresOfHost = 7;  // the first; the others are of a GPU
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  using PhaseSeries = std::array<Series, kFigureCount>;
  struct Row {
    std::uint32_t step = 0;      // in pending_
    std::uint32_t next = kNone;  // of the same layer and phase
    CellFigures figures{};
  };
  // Of a layer and phase: its rows that are not folded yet.
  struct Chain {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    bool used = false;
  };

  // Rows are numbered with the phases outside any layer first.
  void add_row(std::size_t number, const CellFigures& figures);
  bool has_row(std::size_t number) const noexcept {
    return number < chains_.size() && chains_[number].used;
  }
  PhaseStats stats_of_row(std::size_t number) const;
  void halve();

  std::size_t memory_bytes_;
  SampleClock clock_;
  std::uint64_t steps_ = 0;
  Series wall_;
  std::vector<Chain> chains_;
  std::size_t used_ = 0;                  // of the chains
  std::size_t figures_ = kFiguresOfHost;  // of each that are used
  std::vector<Row> rows_;
  std::vector<SampleClock> pending_;  // the clock of each step that has rows
  std::vector<PhaseSeries> series_;
};

}  // namespace layertrace
