// What an autograd node is called and what kind it is, by its class: asking the node itself makes a
// string each time.
#pragma once

#include <cstdint>

#include "record/ids.h"

namespace torch::autograd {
struct Node;
}

namespace layertrace {

struct NodeDescription {
  NameId name = kNoName;
  std::uint8_t flags = 0;   // kAccumulates, kEngineRoot
  std::uint64_t value = 0;  // for the record: a packed NodeRef or the parameter's address
};

NodeDescription describe(const torch::autograd::Node& node) noexcept;

}  // namespace layertrace
