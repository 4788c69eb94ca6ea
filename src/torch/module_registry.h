// Which layer is the module at this address? Paths are registered when a session starts. A module
// that joined the model later is found where its caller, or a model, holds it. One that nobody
// holds gets a layer of its own below whoever called it, marked as unregistered, by its type:
// temporaries that come and go at ever new addresses then share one.
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/definitions.h"
#include "record/ids.h"

namespace torch::nn {
class Module;
}

namespace layertrace {

class ModuleRegistry {
 public:
  explicit ModuleRegistry(Definitions& definitions) : definitions_(definitions) {}

  // Adds a model and all below it. With an empty name its own path is "" and its children's have no
  // prefix.
  void add_root(const std::string& name, const torch::nn::Module& module);

  // The module's layer, seen from `caller_layer` (kNoLayer outside any), the layer of `caller`. A
  // module that is registered in several places is the one nearest to the caller.
  LayerId find(const torch::nn::Module& module, LayerId caller_layer,
               const torch::nn::Module* caller);

  // The registry of the active session, nullptr once that is gone. Hooks on other threads may hold
  // it a little longer.
  static std::shared_ptr<ModuleRegistry> active();
  static void set_active(const std::shared_ptr<ModuleRegistry>& registry);

 private:
  struct Place {
    LayerId layer;
    const void* vtable;
    std::weak_ptr<const void> owner;
    bool is_of(const torch::nn::Module& module) const noexcept;
  };
  struct Layer {
    LayerId parent;
    std::string path;
    bool registered;
  };

  LayerId define(LayerDef def);
  LayerId add(const torch::nn::Module& module, LayerDef def, int depth);
  void add_parameters(const torch::nn::Module& module, LayerId owner);
  LayerId find_registered(const torch::nn::Module& module, LayerId caller_layer) const;
  LayerId find_below(const torch::nn::Module& holder, LayerId holder_layer,
                     const torch::nn::Module& module, int depth);
  static bool holds(const torch::nn::Module& holder, const torch::nn::Module& module, int depth);
  LayerId child_layer(LayerId parent, const std::string& name, const torch::nn::Module& module,
                      int depth);
  LayerId find_unregistered(const torch::nn::Module& module, LayerId caller_layer);
  bool is_below(LayerId layer, LayerId ancestor) const;

  Definitions& definitions_;
  std::mutex mutex_;
  std::unordered_map<const void*, std::vector<Place>> places_;  // of registered modules only
  std::vector<Layer> layers_;
  std::unordered_map<std::string, LayerId> paths_;
  std::vector<std::pair<const torch::nn::Module*, LayerId>> roots_;
  // Nothing is kept alive by these, but no other tensor can come to stand at the same address.
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> known_parameters_;
};

// "Linear" for torch::nn::LinearImpl, "Net" for a class of one's own.
std::string type_name(const torch::nn::Module& module);

}  // namespace layertrace
