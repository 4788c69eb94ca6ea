#include "flops/op_call.h"

namespace layertrace {
namespace {

template <typename PerTensor>
Count sum_over_tensors(OpArguments arguments, const PerTensor& per_tensor) noexcept {
  Count sum;
  for (const OpArgument& argument : arguments) {
    if (const auto* tensor = std::get_if<TensorShape>(&argument)) {
      sum += per_tensor(*tensor);
    } else if (const auto* list = std::get_if<std::span<const TensorShape>>(&argument)) {
      for (const TensorShape& tensor_of_list : *list) sum += per_tensor(tensor_of_list);
    }
  }
  return sum;
}

}  // namespace

Count sum_elements(OpArguments arguments) noexcept {
  return sum_over_tensors(arguments, [](const TensorShape& tensor) {
    return tensor.element_bytes == 0 ? Count() : elements(tensor);
  });
}

Count sum_bytes(OpArguments arguments) noexcept {
  return sum_over_tensors(
      arguments, [](const TensorShape& tensor) { return elements(tensor) * tensor.element_bytes; });
}

}  // namespace layertrace
