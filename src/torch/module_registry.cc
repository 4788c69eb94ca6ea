#include "torch/module_registry.h"

#include <pthread.h>

#include <algorithm>

#include "base/clock.h"
#include "torch/libtorch_modules.h"
#include "torch/parameter_key.h"
#include "torch/tensor_facts.h"

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

ModuleRegistry::ModuleRegistry(Definitions& definitions, std::shared_ptr<ModuleSource> source)
    : definitions_(definitions),
      source_(std::move(source)),
      is_of_libtorch_(dynamic_cast<LibTorchModules*>(source_.get()) != nullptr) {}

std::shared_ptr<ModuleRegistry> ModuleRegistry::active() {
  const std::lock_guard lock(active_mutex());
  return active_registry().lock();
}

void ModuleRegistry::set_active(const std::shared_ptr<ModuleRegistry>& registry) {
  const std::lock_guard lock(active_mutex());
  active_registry() = registry;
}

ModuleRegistry::Lock::Lock(ModuleRegistry& registry)
    : registry_(registry), held_(registry.holder_.load() != std::this_thread::get_id()) {
  if (!held_) return;
  registry_.source_->wait_for(registry_.mutex_);
  registry_.holder_ = std::this_thread::get_id();
}

ModuleRegistry::Lock::~Lock() {
  if (!held_) return;
  registry_.holder_ = std::thread::id();
  registry_.mutex_.unlock();
}

void ModuleRegistry::tell_calls(std::function<void(std::uint64_t)> listener) {
  const std::lock_guard lock(listener_mutex_);
  call_listener_ = std::move(listener);
}

void ModuleRegistry::meet_call(std::uint64_t key) {
  const std::lock_guard lock(listener_mutex_);
  if (call_listener_) call_listener_(key);
}

void ModuleRegistry::add_root(const std::string& name, Module module) {
  const Lock lock(*this);
  if (lock) add_model(name, module);
}

void ModuleRegistry::add_model_of_class(Module module) {
  const Lock lock(*this);
  if (!lock) return;
  add_model(roots_.empty() ? "" : unused_name(source_->type_name(module)), module);
}

LayerId ModuleRegistry::add_model(const std::string& name, Module module) {
  const std::string type = source_->type_name(module);
  const LayerId layer = add(module,
                            {.path = name,
                             .name = name.empty() ? type : name,
                             .type = type,
                             .kernel_size = source_->kernel_size(module)},
                            0);
  roots_.push_back({module, layer, source_->remember(module)});
  return layer;
}

// Puts a module and all below it into their places. One that takes another's place takes its layer,
// too.
LayerId ModuleRegistry::add(Module module, LayerDef def, int depth, LayerId folded_into) {
  auto& places = places_[module];
  const auto same = std::find_if(places.begin(), places.end(),
                                 [&](const Place& place) { return is_of(place, module); });
  const bool first = same == places.end();
  LayerId layer = folded_into;
  const bool folded = folded_into != kNoLayer;
  if (!folded) {
    if (!first) def.shared_with = layers_[index(same->layer)].path;
    const auto known = paths_.find(def.path);
    layer = known != paths_.end() ? known->second : define(std::move(def));
  }
  places.push_back({layer, folded, source_->remember(module)});
  add_parameters(module, layer);
  if (depth >= kMaxDepth) return layer;
  const bool replicates = source_->is_replicating(module);
  for (const Child& child : source_->children(module)) {
    if (source_->is_folded(module, child)) {
      add(child.module, {}, depth + 1, layer);
      if (replicates) replicated_.push_back({layer, child.module});
      continue;
    }
    const LayerId below = add(child.module,
                              {.path = joined(layers_[index(layer)].path, child.name),
                               .name = child.name,
                               .type = source_->type_name(child.module),
                               .parent = layer,
                               .kernel_size = source_->kernel_size(child.module)},
                              depth + 1);
    if (replicates) replicated_.push_back({below, child.module});
  }
  return layer;
}

void ModuleRegistry::add_parameters(Module module, LayerId owner) {
  for (const OwnTensor& tensor : source_->tensors(module)) add_parameter_of(owner, tensor);
}

void ModuleRegistry::add_parameter_of(LayerId owner, const OwnTensor& tensor) {
  const auto& impl = *static_cast<const c10::TensorImpl*>(tensor.tensor);
  known_parameters_.push_back(impl.version_counter());
  ParameterDef def = facts_of(impl);
  def.address = parameter_key(impl);
  def.owner = owner;
  def.name = tensor.name;
  def.buffer = tensor.is_buffer;
  def.since_ticks = clock_ticks();
  definitions_.add_parameter(std::move(def));
}

void ModuleRegistry::add_parameter(Module module, const OwnTensor& tensor) {
  const Lock lock(*this);
  if (!lock || find_registered(module, kNoLayer).layer == kNoLayer) return;
  for (const Place& place : places_[module]) add_parameter_of(place.layer, tensor);
}

LayerId ModuleRegistry::define(LayerDef def) {
  layers_.push_back({def.parent, def.path, def.type, def.registered});
  const LayerId layer{static_cast<std::uint32_t>(layers_.size() - 1)};
  paths_.emplace(def.path, layer);
  return definitions_.add_layer(std::move(def)), layer;
}

bool ModuleRegistry::is_of(const Place& place, Module module) const {
  return source_->is_same(module, place.remembered.get());
}

bool ModuleRegistry::is_below(LayerId layer, LayerId ancestor) const {
  while (layer != kNoLayer && layer != ancestor) layer = layers_[index(layer)].parent;
  return layer == ancestor;
}

ModuleRegistry::Found ModuleRegistry::find_registered(Module module, LayerId caller_layer) {
  const auto entry = places_.find(module);
  if (entry == places_.end()) return {};
  auto& places = entry->second;
  // Another one has come to stand here: its predecessor will not come back.
  std::erase_if(places, [&](const Place& place) { return !is_of(place, module); });
  if (places.empty()) {
    places_.erase(entry);
    return {};
  }
  // From the caller upwards: the first layer below which the module is registered.
  for (LayerId from = caller_layer; from != kNoLayer; from = layers_[index(from)].parent) {
    for (const Place& place : places) {
      if (is_below(place.layer, from)) return {place.layer, place.folded};
    }
  }
  return {places.front().layer, places.front().folded};
}

ModuleRegistry::Found ModuleRegistry::find(Module module, LayerId caller_layer, Module caller) {
  const Lock lock(*this);
  if (!lock) return {caller_layer, /*folded=*/true, /*for_now=*/true};
  if (const Found found = find_registered(module, caller_layer); found.layer != kNoLayer)
    return found;
  if (caller != nullptr && caller_layer != kNoLayer) {
    if (const Found found = find_below(caller, caller_layer, module, 0); found.layer != kNoLayer)
      return found;
  } else {
    for (const Root& root : roots_) {
      if (!source_->is_same(root.module, root.remembered.get())) continue;
      if (const Found found = find_below(root.module, root.layer, module, 0);
          found.layer != kNoLayer)
        return found;
    }
    if (source_->is_replica(module)) {
      if (const LayerId layer = find_replicated(module); layer != kNoLayer) return {layer, false};
    }
    if (const auto name = source_->name_model(module)) {
      return {add_model(roots_.empty() && name->empty() ? *name : unused_name(*name), module),
              false};
    }
  }
  if (caller_layer != kNoLayer && source_->is_generated(module)) return {caller_layer, true};
  return {find_unregistered(source_->type_name(module), caller_layer), false};
}

// A module that its caller (outside any, a model) holds, but that was not there when the session
// began, or whose caller is not registered.
ModuleRegistry::Found ModuleRegistry::find_below(Module holder, LayerId holder_layer, Module module,
                                                 int depth) {
  if (depth >= kMaxDepth) return {};
  for (const Child& child : source_->children(holder)) {
    const bool here = child.module == module;
    if (!here && !holds(child.module, module, depth)) continue;
    const Found found = child_layer(holder, holder_layer, child, depth);
    return here ? found : find_below(child.module, found.layer, module, depth + 1);
  }
  return {};
}

bool ModuleRegistry::holds(Module holder, Module module, int depth) {
  if (depth >= kMaxDepth) return false;
  const auto children = source_->children(holder);
  return std::any_of(children.begin(), children.end(), [&](const Child& child) {
    return child.module == module || holds(child.module, module, depth + 1);
  });
}

ModuleRegistry::Found ModuleRegistry::child_layer(Module holder, LayerId parent, const Child& child,
                                                  int depth) {
  const bool folded = source_->is_folded(holder, child);
  const bool registered = layers_[index(parent)].registered;
  const bool remembers = registered && !source_->is_replica(child.module);
  if (folded) {
    if (remembers) add(child.module, {}, depth, parent);
    return {parent, true};
  }
  const std::string path = joined(layers_[index(parent)].path, child.name);
  LayerDef def{.path = path,
               .name = child.name,
               .type = source_->type_name(child.module),
               .parent = parent,
               .registered = registered,
               .kernel_size = source_->kernel_size(child.module)};
  if (remembers) {
    const Found found = find_registered(child.module, parent);
    return found.layer != kNoLayer && layers_[index(found.layer)].path == path
               ? found
               : Found{add(child.module, std::move(def), depth), false};
  }
  const auto known = paths_.find(path);
  return {known != paths_.end() ? known->second : define(std::move(def)), false};
}

// The layer below a DataParallel of whose module it is a copy.
LayerId ModuleRegistry::find_replicated(Module replica) const {
  const auto found =
      std::find_if(replicated_.begin(), replicated_.end(), [&](const Replicated& original) {
        const auto places = places_.find(original.module);
        return places != places_.end() &&
               std::any_of(places->second.begin(), places->second.end(),
                           [&](const Place& place) { return is_of(place, original.module); }) &&
               source_->is_replica_of(replica, original.module);
      });
  return found != replicated_.end() ? found->layer : kNoLayer;
}

LayerId ModuleRegistry::find_foreign(const std::string& type, LayerId caller_layer) {
  const Lock lock(*this);
  return lock ? find_unregistered(type, caller_layer) : caller_layer;
}

LayerId ModuleRegistry::find_unregistered(const std::string& type, LayerId caller_layer) {
  const bool inside = caller_layer != kNoLayer;
  const std::string name = inside ? "<" + type + ">" : "(" + type + ")";
  const std::string path = inside ? joined(layers_[index(caller_layer)].path, name) : name;
  if (const auto known = paths_.find(path); known != paths_.end()) return known->second;
  return define(
      {.path = path, .name = name, .type = type, .parent = caller_layer, .registered = false});
}

// "discriminator", or "discriminator#2" where a layer already has that path.
std::string ModuleRegistry::unused_name(const std::string& name) const {
  std::string unused = name;
  for (int i = 2; paths_.contains(unused); ++i) unused = name + "#" + std::to_string(i);
  return unused;
}

}  // namespace layertrace
