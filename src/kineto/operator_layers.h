// A trace without modules' calls has no layers. In their place stand the step, the phases of it,
// and the outermost operators in each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "attribute/span.h"

namespace layertrace::kineto {

class OperatorLayers {
 public:
  // Layers are added to the dictionary as they are asked for.
  // A layer takes kilobytes, and a name may be made up for each call: further ones share one in
  // each phase.
  explicit OperatorLayers(Dictionary& dictionary, std::size_t most_layers = 2000)
      : dictionary_(dictionary), most_layers_(most_layers) {
    others_.fill(kNoLayer);
  }

  LayerId phase(Phase phase);
  LayerId operator_in(Phase phase, NameId name);

 private:
  LayerId step();
  LayerId define_in(Phase phase, const std::string& name);

  Dictionary& dictionary_;
  std::size_t most_layers_;
  LayerId step_ = kNoLayer;
  std::array<LayerId, kPhaseCount> others_;
  std::unordered_map<std::uint64_t, LayerId> known_;  // by phase and name; no name for the phase's
};

}  // namespace layertrace::kineto
