#include "torch/module_registry.h"

#include <pthread.h>

#include <algorithm>

#include "base/vtable.h"
#include "torch/module_identity.h"

namespace layertrace {
namespace {

// Deeper than any model; a module that holds itself would otherwise never end.
constexpr int kMaxDepth = 512;

std::mutex& active_mutex() {
  static auto* const kMutex = [] {
    // A forked child must not find it locked by a thread that it does not have.
    pthread_atfork([] { active_mutex().lock(); }, [] { active_mutex().unlock(); },
                   [] { active_mutex().unlock(); });
    return new std::mutex;  // never destroyed: hooks may run while the program exits
  }();
  return *kMutex;
}
std::weak_ptr<ModuleRegistry>& active_registry() {
  static auto* registry = new std::weak_ptr<ModuleRegistry>;
  return *registry;
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

bool ModuleRegistry::Place::is_of(const torch::nn::Module& module) const noexcept {
  return vtable == vtable_of(&module) && has_owner(module, owner);
}

std::string type_name(const torch::nn::Module& module) {
  std::string name = module.name();
  // The part after the last "::" that is in no template bracket.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>' || name[i] == ')') ++depth;
    if (name[i] == '<' || name[i] == '(') --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') {
      name.erase(0, i + 1);
      break;
    }
  }
  constexpr std::string_view kSuffix = "Impl";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix))
    name.resize(name.size() - kSuffix.size());
  return name;
}

std::shared_ptr<ModuleRegistry> ModuleRegistry::active() {
  const std::lock_guard lock(active_mutex());
  return active_registry().lock();
}

void ModuleRegistry::set_active(const std::shared_ptr<ModuleRegistry>& registry) {
  const std::lock_guard lock(active_mutex());
  active_registry() = registry;
}

void ModuleRegistry::add_root(const std::string& name, const torch::nn::Module& module) {
  const std::lock_guard lock(mutex_);
  const std::string type = type_name(module);
  roots_.emplace_back(
      &module, add(module, {.path = name, .name = name.empty() ? type : name, .type = type}, 0));
}

// Puts a module and all below it into their places. One that takes another's place takes its layer,
// too.
LayerId ModuleRegistry::add(const torch::nn::Module& module, LayerDef def, int depth) {
  auto& places = places_[&module];
  const auto same = std::find_if(places.begin(), places.end(),
                                 [&](const Place& place) { return place.is_of(module); });
  const bool first = same == places.end();
  if (!first) def.shared_with = layers_[index(same->layer)].path;
  const auto known = paths_.find(def.path);
  const LayerId layer = known != paths_.end() ? known->second : define(std::move(def));
  places.push_back({layer, vtable_of(&module), module.weak_from_this()});
  if (first) add_parameters(module, layer);
  if (depth >= kMaxDepth) return layer;
  for (const auto& child : module.named_children()) {
    if (child.value() == nullptr) continue;
    add(*child.value(),
        {.path = joined(layers_[index(layer)].path, child.key()),
         .name = child.key(),
         .type = type_name(*child.value()),
         .parent = layer},
        depth + 1);
  }
  return layer;
}

void ModuleRegistry::add_parameters(const torch::nn::Module& module, LayerId owner) {
  for (const auto& parameter : module.parameters(/*recurse=*/false)) {
    if (!parameter.defined()) continue;
    known_parameters_.emplace_back(parameter.getIntrusivePtr());
    definitions_.add_parameter(reinterpret_cast<std::uint64_t>(parameter.unsafeGetTensorImpl()),
                               owner);
  }
}

LayerId ModuleRegistry::define(LayerDef def) {
  layers_.push_back({def.parent, def.path, def.registered});
  const LayerId layer{static_cast<std::uint32_t>(layers_.size() - 1)};
  paths_.emplace(def.path, layer);
  return definitions_.add_layer(std::move(def)), layer;
}

bool ModuleRegistry::is_below(LayerId layer, LayerId ancestor) const {
  while (layer != kNoLayer && layer != ancestor) layer = layers_[index(layer)].parent;
  return layer == ancestor;
}

LayerId ModuleRegistry::find_registered(const torch::nn::Module& module,
                                        LayerId caller_layer) const {
  const auto found = places_.find(&module);
  if (found == places_.end()) return kNoLayer;
  // From the caller upwards: the first layer below which the module is registered.
  for (LayerId from = caller_layer; from != kNoLayer; from = layers_[index(from)].parent) {
    for (const Place& place : found->second) {
      if (place.is_of(module) && is_below(place.layer, from)) return place.layer;
    }
  }
  for (const Place& place : found->second) {
    if (place.is_of(module)) return place.layer;
  }
  return kNoLayer;
}

LayerId ModuleRegistry::find(const torch::nn::Module& module, LayerId caller_layer,
                             const torch::nn::Module* caller) {
  const std::lock_guard lock(mutex_);
  if (const LayerId layer = find_registered(module, caller_layer); layer != kNoLayer) return layer;
  if (caller != nullptr && caller_layer != kNoLayer) {
    if (const LayerId layer = find_below(*caller, caller_layer, module, 0); layer != kNoLayer)
      return layer;
  } else {
    for (const auto& [root, root_layer] : roots_) {
      if (const LayerId layer = find_below(*root, root_layer, module, 0); layer != kNoLayer)
        return layer;
    }
  }
  return find_unregistered(module, caller_layer);
}

// A module that its caller (outside any, a model) holds, but that was not there when the session
// began, or whose caller is not registered.
LayerId ModuleRegistry::find_below(const torch::nn::Module& holder, LayerId holder_layer,
                                   const torch::nn::Module& module, int depth) {
  if (depth >= kMaxDepth) return kNoLayer;
  for (const auto& child : holder.named_children()) {
    if (child.value() == nullptr) continue;
    const bool found = child.value().get() == &module;
    if (!found && !holds(*child.value(), module, depth)) continue;
    const LayerId layer = child_layer(holder_layer, child.key(), *child.value(), depth);
    return found ? layer : find_below(*child.value(), layer, module, depth + 1);
  }
  return kNoLayer;
}

bool ModuleRegistry::holds(const torch::nn::Module& holder, const torch::nn::Module& module,
                           int depth) {
  if (depth >= kMaxDepth) return false;
  const auto children = holder.children();
  return std::any_of(children.begin(), children.end(), [&](const auto& child) {
    return child != nullptr && (child.get() == &module || holds(*child, module, depth + 1));
  });
}

LayerId ModuleRegistry::child_layer(LayerId parent, const std::string& name,
                                    const torch::nn::Module& module, int depth) {
  const std::string path = joined(layers_[index(parent)].path, name);
  const bool registered = layers_[index(parent)].registered;
  LayerDef def{.path = path,
               .name = name,
               .type = type_name(module),
               .parent = parent,
               .registered = registered};
  if (registered) {
    const LayerId layer = find_registered(module, parent);
    return layer != kNoLayer && layers_[index(layer)].path == path
               ? layer
               : add(module, std::move(def), depth);
  }
  const auto known = paths_.find(path);
  return known != paths_.end() ? known->second : define(std::move(def));
}

LayerId ModuleRegistry::find_unregistered(const torch::nn::Module& module, LayerId caller_layer) {
  const std::string type = type_name(module);
  const bool inside = caller_layer != kNoLayer;
  const std::string name = inside ? "<" + type + ">" : "(" + type + ")";
  const std::string path = inside ? joined(layers_[index(caller_layer)].path, name) : name;
  if (const auto known = paths_.find(path); known != paths_.end()) return known->second;
  return define(
      {.path = path, .name = name, .type = type, .parent = caller_layer, .registered = false});
}

}  // namespace layertrace
