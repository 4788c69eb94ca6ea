// Tools that look at modules count from a module's attributes. A Profile has no attributes; what
// they say follows from the parameters' names and sizes, and from the shapes of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <layertrace/profile.h>

#include "report/shape_text.h"

namespace layertrace::report {

using Sizes = std::vector<std::int64_t>;

// One call of a layer. Refers to the layer, which must outlive it.
class ModuleFacts {
 public:
  ModuleFacts(const Layer& layer, const CallShapes& call);

  const Layer& layer() const noexcept { return layer_; }
  // Of the first tensor that went in or came out; nullptr where there is none.
  const Sizes* input() const noexcept { return first_of(inputs_); }
  const Sizes* output() const noexcept { return first_of(outputs_); }
  const std::vector<TensorText>& inputs() const noexcept { return inputs_; }
  const std::vector<TensorText>& outputs() const noexcept { return outputs_; }
  // The sizes of its own parameter, which is no buffer; nullptr where it has none of this name.
  const Sizes* parameter(std::string_view name) const noexcept;
  bool has_bias() const noexcept { return parameter("bias") != nullptr; }

 private:
  static const Sizes* first_of(const std::vector<TensorText>& tensors) noexcept {
    return tensors.empty() ? nullptr : &tensors.front().sizes;
  }

  const Layer& layer_;
  std::vector<TensorText> inputs_;
  std::vector<TensorText> outputs_;
};

// What a tool says of one call.
struct Estimate {
  double count = 0;
  std::string_view remark = {};  // a sentence without its end, where the number needs one
};

// Nothing: the shapes or parameters that it needs are not known.
using ModuleFormula = std::optional<Estimate> (*)(const ModuleFacts&);

// nullptr for a class for which the tool has none. Classes are told by their exact names.
ModuleFormula moduleprofiler_formula(std::string_view type) noexcept;
ModuleFormula deeplite_formula(std::string_view type) noexcept;
// Any class: by the names of its parameters.
std::optional<Estimate> torchinfo_mult_adds(const ModuleFacts& facts);

}  // namespace layertrace::report
