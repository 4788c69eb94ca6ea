// What a run takes where nothing disturbs it.
//
// On a machine that does other things, too, a step is interrupted somewhere, and two runs of one
// program differ by a factor. But another layer is hit in each step: of each layer's own time, the
// least over the steps is hardly touched, and their sum is what the whole takes when left alone.
#pragma once

#include <array>
#include <vector>

#include <layertrace/profile.h>

#include "report/compare/metrics.h"
#include "report/compare/noise.h"

namespace layertrace::comparison {

class QuietTimes {
 public:
  explicit QuietTimes(const Profile& profile);

  // Of the layer's host time in these phases, with the layers below it.
  double layer_ns(std::size_t layer, const std::vector<Phase>& phases) const;
  // Of all models in these phases, of the whole step.
  double models_ns(const std::vector<Phase>& phases) const;
  double step_ns() const noexcept { return step_ns_; }

 private:
  std::vector<std::array<double, kPhaseCount>> layers_;
  std::vector<std::size_t> roots_;
  double step_ns_ = 0;
};

// What both runs have of their layers, each without those below it and by phase: the host's times,
// or the device's.
std::vector<Piece> host_pieces(const Profile& before, const Profile& after);
std::vector<Piece> device_pieces(const Profile& before, const Profile& after, const Known& known);

// The same of one layer.
std::vector<Piece> host_pieces(const Layer& before, const Layer& after);
std::vector<Piece> device_pieces(const Layer& before, const Layer& after, const Known& known);

}  // namespace layertrace::comparison
