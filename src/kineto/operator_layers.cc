#include "kineto/operator_layers.h"

#include <string>
#include <utility>

namespace layertrace::kineto {
namespace {

std::uint64_t key_of(Phase phase, NameId name) {
  return static_cast<std::uint64_t>(phase) << 32 | index(name);
}

LayerId define(Dictionary& dictionary, LayerDef layer) {
  const LayerId id{static_cast<std::uint32_t>(dictionary.layers.size())};
  dictionary.layers.push_back(std::move(layer));
  return id;
}

}  // namespace

LayerId OperatorLayers::step() {
  if (step_ == kNoLayer) step_ = define(dictionary_, {.path = "", .name = "step", .type = "step"});
  return step_;
}

LayerId OperatorLayers::phase(Phase phase) {
  const auto found = known_.find(key_of(phase, kNoName));
  if (found != known_.end()) return found->second;
  const std::string name(phase_name(phase));
  const LayerId layer =
      define(dictionary_, {.path = name, .name = name, .type = "phase", .parent = step()});
  known_.emplace(key_of(phase, kNoName), layer);
  return layer;
}

LayerId OperatorLayers::define_in(Phase phase, const std::string& name) {
  const LayerId parent = this->phase(phase);
  return define(dictionary_, {.path = std::string(phase_name(phase)) + "." + name,
                              .name = name,
                              .type = "operator",
                              .parent = parent});
}

LayerId OperatorLayers::operator_in(Phase phase, NameId name) {
  const auto found = known_.find(key_of(phase, name));
  if (found != known_.end()) return found->second;
  if (known_.size() >= most_layers_) {
    LayerId& others = others_[static_cast<std::size_t>(phase)];
    if (others == kNoLayer) others = define_in(phase, "(others)");
    return others;
  }
  const LayerId layer = define_in(phase, dictionary_.names[index(name)]);
  known_.emplace(key_of(phase, name), layer);
  return layer;
}

}  // namespace layertrace::kineto
