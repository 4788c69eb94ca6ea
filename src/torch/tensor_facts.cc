#include "torch/tensor_facts.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <bit>
#include <optional>

namespace layertrace {
namespace {

std::uint64_t mixed(std::uint64_t key, std::uint64_t value) noexcept {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  key = (std::rotl(key, 5) ^ value) * kMix;
  return key != 0 ? key : 1;
}

std::string dtype_name(const c10::TensorImpl& tensor) {
  const auto type = c10::optTypeMetaToScalarType(tensor.dtype());
  return type ? std::string(c10::getDtypeNames(*type).first) : "unknown";
}

// Those of a nested tensor, or of one with symbols, are nothing.
std::optional<c10::IntArrayRef> sizes_of(const c10::TensorImpl& tensor) noexcept {
  try {
    // Not sizes(), which may ask Python code of the tensor's class.
    if (!tensor.has_symbolic_sizes_strides() && !tensor.is_nested()) return tensor.sizes_default();
  } catch (...) {  // a kind of tensor that has none
  }
  return std::nullopt;
}

}  // namespace

ParameterDef facts_of(const c10::TensorImpl& tensor) {
  ParameterDef facts;
  facts.dtype = dtype_name(tensor);
  facts.trainable = tensor.requires_grad();
  if (const auto sizes = sizes_of(tensor)) {
    facts.shape.assign(sizes->begin(), sizes->end());
    facts.elements = 1;
    for (const std::int64_t size : *sizes) facts.elements *= static_cast<std::uint64_t>(size);
    facts.bytes = facts.elements * tensor.itemsize();
  }
  return facts;
}

void append_shape(std::string& text, const c10::TensorImpl& tensor) {
  text += dtype_name(tensor);
  const auto sizes = sizes_of(tensor);
  if (!sizes) {
    text += "[…]";
    return;
  }
  const char* separator = "[";
  for (const std::int64_t size : *sizes) {
    text += separator + std::to_string(size);
    separator = ", ";
  }
  text += sizes->empty() ? "[]" : "]";
}

std::uint64_t key_of_layer(std::uint32_t layer, bool is_training) noexcept {
  const bool has_gradient = c10::GradMode::is_enabled();
  const bool is_cast =
      at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA);
  return mixed(1, std::uint64_t{layer} << 3 | std::uint64_t{is_training} << 2 |
                      std::uint64_t{has_gradient} << 1 | std::uint64_t{is_cast});
}

std::uint64_t mix_shape(std::uint64_t key, const c10::TensorImpl& tensor) noexcept {
  const auto type = c10::optTypeMetaToScalarType(tensor.dtype());
  key = mixed(key, type ? static_cast<std::uint64_t>(*type) : 0xff);
  const auto sizes = sizes_of(tensor);
  if (!sizes) return key;
  for (const std::int64_t size : *sizes) key = mixed(key, static_cast<std::uint64_t>(size));
  return mixed(key, sizes->size());
}

}  // namespace layertrace
