// A trace without modules' calls has no layers. In their place stand the step, the phases of it,
// and the outermost operators in each.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "attribute/span.h"

namespace layertrace::kineto {

class OperatorLayers {
 public:
  // Layers are added to the dictionary as they are asked for.
  explicit OperatorLayers(Dictionary& dictionary) : dictionary_(dictionary) {}

  LayerId phase(Phase phase);
  LayerId operator_in(Phase phase, NameId name);

 private:
  LayerId step();

  Dictionary& dictionary_;
  LayerId step_ = kNoLayer;
  std::unordered_map<std::uint64_t, LayerId> known_;  // by phase and name; no name for the phase's
};

}  // namespace layertrace::kineto
