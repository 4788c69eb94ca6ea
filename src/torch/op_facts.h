// What an operator is, by how PyTorch has registered it.
#pragma once

#include <cstdint>

#include "record/ids.h"

namespace at {
class RecordFunction;
}

namespace layertrace {

// As an operator's record has them.
struct OpFacts {
  NameId name = kNoName;
  std::uint8_t flags = 0;
};

// Does no work of its own, only calls other operators (aten::linear) or makes a view by calling one
// (aten::transpose). An operator whose one kernel serves all backends is not among them:
// mkldnn_convolution has just that, and works for long.
bool is_composite(const at::RecordFunction& fn);

// A copy of an operator's name that stays: as the table of names has it, or, where that is full,
// one of some more.
const char* kept_text(NameId name, const char* text);

}  // namespace layertrace
