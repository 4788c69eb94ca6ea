// Which layer is the module at this address? Paths are registered when a session starts. A module
// that joined the model later is found where its caller, or a model, holds it. One that nobody
// holds gets a layer of its own below whoever called it, marked as unregistered, by its type:
// temporaries that come and go at ever new addresses then share one.
//
// What a module is, only its ModuleSource knows: LibTorch's, or another language's.
#pragma once

#include <c10/core/TensorImpl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <layertrace/binding.h>

#include "record/definitions.h"
#include "record/ids.h"

namespace layertrace {

class ModuleRegistry {
 public:
  using Module = binding::Module;
  using ModuleSource = binding::ModuleSource;
  using OwnTensor = ModuleSource::OwnTensor;
  struct Found {
    LayerId layer = kNoLayer;
    bool folded = false;
    bool for_now = false;  // another time it may be found
  };

  ModuleRegistry(Definitions& definitions, std::shared_ptr<ModuleSource> source);

  // Adds a model and all below it. With an empty name its own path is "" and its children's have no
  // prefix.
  void add_root(const std::string& name, Module module);

  // Adds a model that nobody named: the first without a name, others by their class.
  void add_model_of_class(Module module);

  // A parameter that a registered module has got since; of another module's nothing is kept.
  void add_parameter(Module module, const OwnTensor& tensor);

  // The module's layer, seen from `caller_layer` (kNoLayer outside any), the layer of `caller`. A
  // module that is registered in several places is the one nearest to the caller.
  Found find(Module module, LayerId caller_layer, Module caller);

  // The layer of a module that the source does not know, by its type.
  LayerId find_foreign(const std::string& type, LayerId caller_layer);

  // Whoever wants to know of outermost calls; it takes itself out again before it goes.
  void tell_calls(std::function<void(std::uint64_t)> listener);
  void meet_call(std::uint64_t key);

  ModuleSource& source() const noexcept { return *source_; }
  bool is_of_libtorch() const noexcept { return is_of_libtorch_; }

  // The registry of the active session, nullptr once that is gone. Hooks on other threads may hold
  // it a little longer.
  static std::shared_ptr<ModuleRegistry> active();
  static void set_active(const std::shared_ptr<ModuleRegistry>& registry);

 private:
  using Child = ModuleSource::Child;
  struct Place {
    LayerId layer;
    bool folded;
    std::shared_ptr<const void> remembered;
  };
  struct Root {
    Module module;
    LayerId layer;
    std::shared_ptr<const void> remembered;
  };
  struct Layer {
    LayerId parent;
    std::string path;
    std::string type;
    bool registered;
  };

  // Held while the tables are looked at. The source runs meanwhile, and may wait for a lock of its
  // language that another thread has, which wants this one; and it may come back here on the same
  // thread. Then it is not held, and nothing is known.
  class Lock {
   public:
    explicit Lock(ModuleRegistry& registry);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    explicit operator bool() const noexcept { return held_; }

   private:
    ModuleRegistry& registry_;
    const bool held_;
  };
  struct Replicated {
    LayerId layer;
    Module module;
  };

  LayerId define(LayerDef def);
  LayerId add(Module module, LayerDef def, int depth, LayerId folded_into = kNoLayer);
  LayerId add_model(const std::string& name, Module module);
  void add_parameters(Module module, LayerId owner);
  void add_parameter_of(LayerId owner, const OwnTensor& tensor);
  bool is_of(const Place& place, Module module) const;
  Found find_registered(Module module, LayerId caller_layer);
  Found find_below(Module holder, LayerId holder_layer, Module module, int depth);
  bool holds(Module holder, Module module, int depth);
  Found child_layer(Module holder, LayerId parent, const Child& child, int depth);
  LayerId find_replicated(Module module) const;
  LayerId find_unregistered(const std::string& type, LayerId caller_layer);
  bool is_below(LayerId layer, LayerId ancestor) const;
  std::string unused_name(const std::string& name) const;

  Definitions& definitions_;
  const std::shared_ptr<ModuleSource> source_;
  const bool is_of_libtorch_;
  std::mutex listener_mutex_;
  std::function<void(std::uint64_t)> call_listener_;
  std::mutex mutex_;
  std::atomic<std::thread::id> holder_;
  std::unordered_map<Module, std::vector<Place>> places_;  // of registered modules only
  std::vector<Layer> layers_;
  std::unordered_map<std::string, LayerId> paths_;
  std::vector<Root> roots_;
  std::vector<Replicated> replicated_;                  // what DataParallels hold
  std::vector<c10::VariableVersion> known_parameters_;  // see parameter_key.h
};

}  // namespace layertrace
