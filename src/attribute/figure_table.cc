#include "attribute/figure_table.h"

#include <algorithm>

namespace layertrace {
namespace {

constexpr std::array<Stat PhaseStats::*, kFigureCount> kFigures{
    &PhaseStats::calls,      &PhaseStats::host_ns,     &PhaseStats::self_host_ns,
    &PhaseStats::activities, &PhaseStats::activity_ns, &PhaseStats::self_activity_ns,
    &PhaseStats::busy_ns,    &PhaseStats::copies,      &PhaseStats::launches,
    &PhaseStats::event_ns,   &PhaseStats::idle_ns};
static_assert(kFigures[figure::kCalls] == &PhaseStats::calls &&
              kFigures[figure::kHost] == &PhaseStats::host_ns &&
              kFigures[figure::kBusy] == &PhaseStats::busy_ns &&
              kFigures[figure::kEvents] == &PhaseStats::event_ns);

}  // namespace

void FigureTable::begin_step(std::uint64_t wall_ns) {
  if (steps_ != 0 && clock_.advance()) halve();
  ++steps_;
  wall_.add(static_cast<double>(wall_ns), clock_);
  pending_.push_back(clock_);
}

void FigureTable::add_row(std::size_t number, const CellFigures& figures) {
  if (number >= chains_.size()) chains_.resize((number / kPhaseCount + 1) * kPhaseCount);
  Chain& chain = chains_[number];
  const auto row = static_cast<std::uint32_t>(rows_.size());
  (chain.first == kNone ? chain.first : rows_[chain.last].next) = row;
  chain.last = row;
  if (!chain.used) ++used_;
  chain.used = true;
  if (std::any_of(figures.begin() + kFiguresOfHost, figures.end(), [](auto f) { return f != 0; }))
    figures_ = kFigureCount;
  rows_.push_back({static_cast<std::uint32_t>(pending_.size() - 1), kNone, figures});
}

void FigureTable::end_step() {
  const std::size_t rows_bytes = rows_.size() * sizeof(Row);
  if (pending_.size() >= kMostPending || rows_bytes > memory_bytes_ / 8) flush();
  constexpr std::size_t kFewestSamples = 16;
  while (clock_.samples() > kFewestSamples &&
         used_ * figures_ * clock_.samples() * sizeof(double) > memory_bytes_ / 2) {
    if (clock_.keep_fewer()) halve();
  }
}

void FigureTable::flush() {
  if (series_.size() < chains_.size()) series_.resize(chains_.size());
  for (std::size_t number = 0; number < chains_.size(); ++number) {
    Chain& chain = chains_[number];
    for (std::uint32_t i = chain.first; i != kNone; i = rows_[i].next) {
      const Row& row = rows_[i];
      for (std::size_t f = 0; f < kFigureCount; ++f) {
        // A step without a value counts as 0, so that what is not recorded need not be looked at.
        if (row.figures[f] != 0)
          series_[number][f].add(static_cast<double>(row.figures[f]), pending_[row.step]);
      }
    }
    chain.first = chain.last = kNone;
  }
  rows_.clear();
  pending_.clear();
}

// What was sampled before is folded before: later it would be where it no longer belongs.
void FigureTable::halve() {
  flush();
  for (PhaseSeries& figures : series_) {
    for (Series& each : figures) each.halve();
  }
  wall_.halve();
}

PhaseStats FigureTable::stats_of_row(std::size_t number) const {
  PhaseStats stats;
  if (!has_row(number)) return stats;
  for (std::size_t f = 0; f < kFigureCount; ++f)
    stats.*kFigures[f] = series_[number][f].stat(steps_, clock_.slot() + 1);
  return stats;
}

}  // namespace layertrace
