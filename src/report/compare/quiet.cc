#include "report/compare/quiet.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

namespace layertrace::comparison {
namespace {

// The least of a figure; of one that is not there in each step, its middle.
double least(const Stat& stat) {
  if (stat.min > 0) return stat.min;
  return middle_of(stat);
}

void add_pieces(const Layer& before, const Layer& after, Stat PhaseStats::*figure,
                std::vector<Piece>& pieces) {
  for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
    const Piece piece{least(before.phases[phase].*figure), least(after.phases[phase].*figure),
                      static_cast<Phase>(phase)};
    if (piece.before > 0 && piece.after > 0) pieces.push_back(piece);
  }
}

template <typename Add>
std::vector<Piece> pieces_of(const Profile& before, const Profile& after, const Add& add) {
  std::map<std::string_view, const Layer*> by_path;
  for (const Layer& layer : before.layers) by_path.emplace(layer.path, &layer);
  std::vector<Piece> pieces;
  for (const Layer& layer : after.layers) {
    const auto found = by_path.find(layer.path);
    if (found != by_path.end()) add(*found->second, layer, pieces);
  }
  return pieces;
}

void add_host(const Layer& before, const Layer& after, std::vector<Piece>& pieces) {
  add_pieces(before, after, &PhaseStats::self_host_ns, pieces);
}

// CUDA events are around each layer: those of the innermost are their own.
void add_device(const Layer& before, const Layer& after, const Known& known,
                std::vector<Piece>& pieces) {
  if (known.gpu) {
    add_pieces(before, after, &PhaseStats::self_activity_ns, pieces);
  } else if (known.events && before.children.empty()) {
    add_pieces(before, after, &PhaseStats::event_ns, pieces);
  }
}

}  // namespace

QuietTimes::QuietTimes(const Profile& profile) : layers_(profile.layers.size()) {
  std::vector<std::array<double, kPhaseCount>> own_means(profile.layers.size());
  for (std::size_t i = profile.layers.size(); i-- > 0;) {  // children come after their parents
    const Layer& layer = profile.layers[i];
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
      const PhaseStats& stats = layer.phases[phase];
      layers_[i][phase] += least(stats.self_host_ns);
      own_means[i][phase] += stats.self_host_ns.mean;
      // What belongs to nobody below it is taken as it is. Means add up, others do not.
      const double rest = std::max(0.0, stats.host_ns.mean - own_means[i][phase]);
      layers_[i][phase] += rest;
      own_means[i][phase] += rest;
      if (layer.parent < 0) continue;
      const auto parent = static_cast<std::size_t>(layer.parent);
      layers_[parent][phase] += layers_[i][phase];
      own_means[parent][phase] += own_means[i][phase];
    }
    if (layer.parent < 0) roots_.push_back(i);
  }
  double rest_ns = profile.step_ns.mean;
  const auto add = [&](double quiet_ns, double mean_ns) {
    step_ns_ += quiet_ns;
    rest_ns -= mean_ns;
  };
  for (const std::size_t root : roots_) {
    for (std::size_t phase = 0; phase < kPhaseCount; ++phase)
      add(layers_[root][phase], own_means[root][phase]);
  }
  for (const PhaseStats& phase : profile.outside) add(least(phase.host_ns), phase.host_ns.mean);
  step_ns_ += std::max(0.0, rest_ns);
}

double QuietTimes::layer_ns(std::size_t layer, const std::vector<Phase>& phases) const {
  double ns = 0;
  for (const Phase phase : phases) ns += layers_[layer][static_cast<std::size_t>(phase)];
  return ns;
}

double QuietTimes::models_ns(const std::vector<Phase>& phases) const {
  double ns = 0;
  for (const std::size_t root : roots_) ns += layer_ns(root, phases);
  return ns;
}

std::vector<Piece> host_pieces(const Profile& before, const Profile& after) {
  return pieces_of(before, after, add_host);
}

std::vector<Piece> device_pieces(const Profile& before, const Profile& after, const Known& known) {
  return pieces_of(before, after, [&](const Layer& a, const Layer& b, std::vector<Piece>& pieces) {
    add_device(a, b, known, pieces);
  });
}

std::vector<Piece> host_pieces(const Layer& before, const Layer& after) {
  std::vector<Piece> pieces;
  add_host(before, after, pieces);
  return pieces;
}

std::vector<Piece> device_pieces(const Layer& before, const Layer& after, const Known& known) {
  std::vector<Piece> pieces;
  add_device(before, after, known, pieces);
  return pieces;
}

}  // namespace layertrace::comparison
