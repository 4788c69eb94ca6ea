#include "attribute/parameter_table.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace layertrace {
namespace {

// What a layer has got under a name takes the place of what it had there before, and stands where
// that stood.
std::vector<const ParameterDef*> latest(const Dictionary& dictionary) {
  std::vector<const ParameterDef*> defs;
  std::map<std::pair<LayerId, std::string_view>, std::size_t> places;
  for (const ParameterDef& def : dictionary.parameters) {
    const auto [place, fresh] = places.try_emplace({def.owner, def.name}, defs.size());
    if (fresh) {
      defs.push_back(&def);
    } else {
      defs[place->second] = &def;
    }
  }
  return defs;
}

Parameter parameter_of(const ParameterDef& def) {
  return {.name = def.name,
          .shape = def.shape,
          .dtype = def.dtype,
          .elements = def.elements,
          .bytes = def.bytes,
          .trainable = def.trainable,
          .buffer = def.buffer,
          .shared_with = {}};
}

std::string full_name(const Layer& layer, const std::string& name) {
  return layer.path.empty() ? name : layer.path + "." + name;
}

void add_own(Layer& layer, const ParameterDef& def) {
  if (def.buffer) return;
  layer.self_params += def.elements;
  layer.self_params_trainable += def.trainable ? def.elements : 0;
  layer.self_param_bytes += def.bytes;
}

void add_total(Layer& layer, const ParameterDef& def) {
  if (def.buffer) {
    layer.buffer_bytes += def.bytes;
    return;
  }
  layer.params += def.elements;
  layer.params_trainable += def.trainable ? def.elements : 0;
  layer.param_bytes += def.bytes;
}

}  // namespace

void fill_parameters(Profile& profile, const Dictionary& dictionary) {
  struct Tensor {
    std::string first_name;
    std::vector<const ParameterDef*> owners;
  };
  std::unordered_map<std::uint64_t, std::size_t> ids;
  std::vector<Tensor> tensors;
  for (const ParameterDef* def : latest(dictionary)) {
    Layer& layer = profile.layers[index(def->owner)];
    const auto [id, fresh] = ids.try_emplace(def->address, tensors.size());
    if (fresh) tensors.push_back({full_name(layer, def->name), {}});
    Tensor& tensor = tensors[id->second];
    layer.parameters.push_back(parameter_of(*def));
    if (!fresh) layer.parameters.back().shared_with = tensor.first_name;
    tensor.owners.push_back(def);
  }

  std::vector<const Tensor*> owned(profile.layers.size());    // the last that counted here as own
  std::vector<const Tensor*> counted(profile.layers.size());  // likewise with children
  for (const Tensor& tensor : tensors) {
    for (const ParameterDef* def : tensor.owners) {
      if (std::exchange(owned[index(def->owner)], &tensor) != &tensor)
        add_own(profile.layers[index(def->owner)], *def);
      // Whatever has counted it, all around that have, too.
      for (int i = static_cast<int>(index(def->owner)); i >= 0;) {
        const auto at = static_cast<std::size_t>(i);
        if (std::exchange(counted[at], &tensor) == &tensor) break;
        add_total(profile.layers[at], *def);
        i = profile.layers[at].parent;
      }
    }
  }
}

}  // namespace layertrace
