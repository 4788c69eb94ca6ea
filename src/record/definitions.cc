#include "record/definitions.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace layertrace {

LayerId Definitions::add_layer(LayerDef layer) {
  const std::lock_guard lock(mutex_);
  layers_.push_back(std::move(layer));
  return LayerId{static_cast<std::uint32_t>(layers_.size() - 1)};
}

void Definitions::add_parameter(ParameterDef parameter) {
  const std::lock_guard lock(mutex_);
  owners_.emplace(parameter.address, parameter.owner);
  parameters_.push_back(std::move(parameter));
}

LayerId Definitions::try_owner_of(std::uint64_t address) const noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return kNoLayer;
  const auto owner = owners_.find(address);
  return owner != owners_.end() ? owner->second : kNoLayer;
}

std::size_t Definitions::try_ancestors(LayerId layer, std::span<LayerId> ancestors) const noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  std::size_t count = 0;
  if (!lock.owns_lock()) return count;
  for (; layer != kNoLayer && count < ancestors.size(); layer = layers_[index(layer)].parent)
    ancestors[count++] = layer;
  std::reverse(ancestors.begin(), ancestors.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

LayerId Definitions::try_root(LayerId layer) const noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return layer;
  while (layers_[index(layer)].parent != kNoLayer) layer = layers_[index(layer)].parent;
  return layer;
}

std::string Definitions::path_or_type(LayerId layer) const {
  const std::lock_guard lock(mutex_);
  const LayerDef& def = layers_[index(layer)];
  return def.path.empty() ? def.type : def.path;
}

void Definitions::copy_new(std::vector<LayerDef>& layers,
                           std::vector<ParameterDef>& parameters) const {
  const std::lock_guard lock(mutex_);
  layers.insert(layers.end(), layers_.begin() + static_cast<std::ptrdiff_t>(layers.size()),
                layers_.end());
  parameters.insert(parameters.end(),
                    parameters_.begin() + static_cast<std::ptrdiff_t>(parameters.size()),
                    parameters_.end());
}

NameTable& NameTable::instance() {
  static auto* table = new NameTable;  // never destroyed: hooks may run while the program exits
  return *table;
}

NameTable::NameTable() {
  intern("(too many names)");
  // A forked child must not find the table locked, or half changed, by a thread that it does not
  // have.
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] { instance().mutex_.unlock(); });
}

NameId NameTable::intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
  if (names_.size() >= kMaxNames) return NameId{0};
  const NameId id{static_cast<std::uint32_t>(names_.size())};
  ids_.emplace(names_.emplace_back(name), id);
  return id;
}

const std::string& NameTable::text(NameId id) const {
  const std::lock_guard lock(mutex_);
  return names_[index(id)];
}

std::size_t NameTable::size() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

void NameTable::copy_new(std::vector<std::string>& known) const {
  const std::lock_guard lock(mutex_);
  known.insert(known.end(), names_.begin() + static_cast<std::ptrdiff_t>(known.size()),
               names_.end());
}

}  // namespace layertrace
