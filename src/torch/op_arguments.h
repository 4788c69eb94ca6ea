// An operator's inputs and outputs, which PyTorch gives as IValues, as formulas take them.
#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flops/op_call.h"

namespace layertrace {

TensorShape shape_of(const at::Tensor& tensor);

// Holds what the arguments of one call refer to, and is used again for the next. Lists beyond its
// room come as what is absent, so that a formula says that it cannot count.
class ArgumentReader {
 public:
  OpArguments read(c10::ArrayRef<const c10::IValue> inputs);

 private:
  static constexpr std::size_t kMostIntegers = 4096;
  static constexpr std::size_t kMostTensors = 16384;

  OpArgument argument(const c10::IValue& value);
  OpArgument list(const c10::IValue& value);

  std::vector<OpArgument> arguments_;
  std::vector<std::int64_t> integers_;
  std::vector<TensorShape> tensors_;
};

// Of all tensors in it, in lists too.
std::uint64_t bytes_of(const c10::IValue& value);

}  // namespace layertrace
