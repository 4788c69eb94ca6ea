// How long operators took on the host, by name. An operator may call others of its own (a
// convolution calls oneDNN's): some are counted on their own, of others only the outer one is. So
// time is kept by stack, and what an operator did that is not in the list is the next one's around
// it that is.
#pragma once

#include <cstdint>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

class OperatorTimes {
 public:
  // Names a stack of operators. The empty one is 0.
  using Stack = std::uint32_t;

  // Where an operator begins inside that stack. How many stacks are told apart is bounded: further
  // ones are as the one around.
  Stack enter(Stack around, NameId name);
  // One of that name that was entered so has ended, with so much time of its own.
  void add(Stack stack, NameId name, std::uint64_t self_ns) noexcept {
    nodes_[stack].self_ns += self_ns;
    if (nodes_[stack].name == name) ++nodes_[stack].calls;
  }

  // Adds times to those that were counted; where none were, lists all. `steps`: by so many the
  // times are divided.
  void fill(std::vector<Operator>& operators, const Dictionary& dictionary, double steps) const;

 private:
  static constexpr std::size_t kMostNodes = std::size_t{1} << 16;
  static constexpr unsigned kMostSiblings = 64;  // inside one other; they are searched in turn

  struct Node {
    std::uint64_t self_ns = 0;
    std::uint64_t calls = 0;
    Stack around = 0;
    NameId name = kNoName;
    Stack first = 0;  // inside it
    Stack next = 0;   // beside it
  };
  Stack add_node(Stack around, NameId name);
  std::vector<Operator> list(const Dictionary& dictionary, double steps) const;

  std::vector<Node> nodes_{1};
  std::vector<Stack> outermost_;  // by name
};

}  // namespace layertrace
