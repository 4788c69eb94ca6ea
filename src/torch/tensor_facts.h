// What is told of a tensor: of parameters and buffers in the result, of what goes into a layer and
// comes out. Of a tensor that has no plain shape (a nested one, or one with symbols for sizes) only
// what it has.
#pragma once

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>

#include "record/definitions.h"

namespace layertrace {

// Shape, type and size; whose it is and what it is called, others know.
ParameterDef facts_of(const c10::TensorImpl& tensor);

// "float32[2, 64, 512]".
void append_shape(std::string& text, const c10::TensorImpl& tensor);

// A call's key: of the layer and of how its operators run (for a gradient, in half precision), then
// of each tensor that goes in. Never 0, which is the key of what runs outside any.
std::uint64_t key_of_layer(std::uint32_t layer, bool is_training) noexcept;
std::uint64_t mix_shape(std::uint64_t key, const c10::TensorImpl& tensor) noexcept;

}  // namespace layertrace
