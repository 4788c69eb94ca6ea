// A call's arguments as one formula asks for them: by slots, whose names were looked up in the
// operator's schema once, when the formula was bound.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "flops/op_call.h"

namespace layertrace {

inline constexpr std::size_t kMostSlots = 12;
inline constexpr std::int8_t kNoArgument = -1;

// Per slot the argument's name in the schema; where operators of a family differ in it, the names
// that it may have, the first that is there being taken: "input|self".
using SlotNames = std::array<std::string_view, kMostSlots>;
using Slots = std::array<std::int8_t, kMostSlots>;  // indexes among the inputs, or kNoArgument

class Arguments {
 public:
  constexpr Arguments(OpArguments inputs, const Slots& slots, unsigned per_element) noexcept
      : inputs_(inputs), slots_(slots), per_element_(per_element) {}

  // nullptr where it is absent, and where its sizes do not tell what is computed.
  const TensorShape* tensor(std::size_t slot) const noexcept {
    const auto* tensor = find<TensorShape>(slot);
    return tensor != nullptr && tensor->is_plain ? tensor : nullptr;
  }
  std::span<const TensorShape> tensors(std::size_t slot) const noexcept {
    const auto* list = find<std::span<const TensorShape>>(slot);
    return list != nullptr ? *list : std::span<const TensorShape>();
  }
  std::span<const std::int64_t> ints(std::size_t slot) const noexcept {
    const auto* list = find<std::span<const std::int64_t>>(slot);
    return list != nullptr ? *list : std::span<const std::int64_t>();
  }
  std::optional<std::int64_t> integer(std::size_t slot) const noexcept {
    const auto* number = find<std::int64_t>(slot);
    return number != nullptr ? std::optional(*number) : std::nullopt;
  }
  // A scalar of either kind.
  double number(std::size_t slot, double otherwise) const noexcept {
    if (const auto* real = find<double>(slot)) return *real;
    if (const auto* whole = find<std::int64_t>(slot)) return static_cast<double>(*whole);
    return otherwise;
  }
  bool flag(std::size_t slot, bool otherwise = false) const noexcept {
    const auto* value = find<bool>(slot);
    return value != nullptr ? *value : otherwise;
  }
  std::string_view text(std::size_t slot) const noexcept {
    const auto* value = find<std::string_view>(slot);
    return value != nullptr ? *value : std::string_view();
  }
  // Of any kind, nested and sparse tensors too.
  bool has(std::size_t slot) const noexcept {
    const OpArgument* argument = at(slot);
    return argument != nullptr && !std::holds_alternative<std::monostate>(*argument);
  }

  OpArguments inputs() const noexcept { return inputs_; }
  // The factor that an operator's row in the table gives, where operators differ in nothing else.
  unsigned per_element() const noexcept { return per_element_; }

 private:
  const OpArgument* at(std::size_t slot) const noexcept {
    const std::int8_t index = slots_[slot];
    const bool is_there = index != kNoArgument && static_cast<std::size_t>(index) < inputs_.size();
    return is_there ? &inputs_[static_cast<std::size_t>(index)] : nullptr;
  }
  template <typename Kind>
  const Kind* find(std::size_t slot) const noexcept {
    const OpArgument* argument = at(slot);
    return argument != nullptr ? std::get_if<Kind>(argument) : nullptr;
  }

  OpArguments inputs_;
  const Slots& slots_;
  unsigned per_element_;
};

}  // namespace layertrace
