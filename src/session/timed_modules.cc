// timed_modules(): the time of each module in each step of a trace. A Profile has what these come
// to, and of long runs the medians of a part only; this keeps them all.
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/timing.h>

#include "attribute/fold.h"
#include "perfetto/trace_reader.h"

namespace layertrace {
namespace {

// A module in a step, all phases.
struct ModuleStep {
  std::uint64_t step = 0;
  std::uint64_t calls = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t event_ns = 0;
};

class Steps {
 public:
  void add(std::uint64_t step, std::size_t slot, const CellFigures& figures) {
    const std::size_t layer = slot / kPhaseCount;
    if (layer >= layers_.size()) layers_.resize(layer + 1);
    std::vector<ModuleStep>& steps = layers_[layer];
    if (steps.empty() || steps.back().step != step) steps.push_back({.step = step});
    ModuleStep& sums = steps.back();
    sums.calls += figures[figure::kCalls];
    sums.host_ns += figures[figure::kHost];
    sums.busy_ns += figures[figure::kBusy];
    sums.event_ns += figures[figure::kEvents];
  }

  std::vector<TimedModule> modules(const Dictionary& dictionary, bool has_gpu) const {
    std::vector<TimedModule> found;
    for (std::size_t i = 0; i < layers_.size() && i < dictionary.layers.size(); ++i) {
      if (layers_[i].empty()) continue;
      const LayerDef& layer = dictionary.layers[i];
      TimedModule module{.path = layer.path, .type = layer.type, .depth = depth(dictionary, i)};
      fill(module, layers_[i], has_gpu);
      if (!module.ns.empty()) found.push_back(std::move(module));
    }
    return found;
  }

 private:
  static int depth(const Dictionary& dictionary, std::size_t layer) {
    int levels = 0;
    for (LayerId above = dictionary.layers[layer].parent;
         index(above) < dictionary.layers.size() && levels < kDeepest;
         above = dictionary.layers[index(above)].parent)
      ++levels;
    return levels;
  }

  static void fill(TimedModule& module, const std::vector<ModuleStep>& steps, bool has_gpu) {
    std::uint64_t events_ns = 0;
    std::uint64_t busy_ns = 0;
    std::uint64_t calls = 0;
    for (const ModuleStep& step : steps) {
      events_ns += step.event_ns;
      busy_ns += step.busy_ns;
      calls += step.calls;
    }
    std::uint64_t ModuleStep::*clock = &ModuleStep::host_ns;
    if (has_gpu && events_ns > 0) clock = &ModuleStep::event_ns;
    if (has_gpu && events_ns == 0 && busy_ns > 0) clock = &ModuleStep::busy_ns;
    module.is_gpu = clock != &ModuleStep::host_ns;
    for (const ModuleStep& step : steps) {
      if (step.calls == 0 && step.host_ns == 0) continue;  // it did not run
      module.iterations.push_back(step.step);
      module.ns.push_back(step.*clock);
    }
    if (!module.ns.empty())
      module.calls = static_cast<double>(calls) / static_cast<double>(module.ns.size());
  }

  static constexpr int kDeepest = 1 << 16;  // a damaged file may have a circle
  std::vector<std::vector<ModuleStep>> layers_;
};

}  // namespace

Result<std::vector<TimedModule>> timed_modules(const std::string& path) {
  Dictionary dictionary;
  Steps steps;
  Fold fold(dictionary);
  fold.watch([&steps](std::uint64_t step, std::size_t slot, const CellFigures& figures) {
    steps.add(step, slot, figures);
  });
  const auto summary = read_trace(path, dictionary, fold);
  if (!summary) return summary.error();
  fold.finish(summary->end_ns);
  return steps.modules(dictionary, !summary->run.device.empty());
}

}  // namespace layertrace
