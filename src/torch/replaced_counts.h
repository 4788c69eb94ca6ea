// A user may say what a call of a module computes, in place of what is counted inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace layertrace {

// What the innermost module's call has computed, under the module's type, where operators have
// their names. Nothing: that is not known.
void tell_replaced(std::string_view type, std::optional<std::uint64_t> flops) noexcept;

}  // namespace layertrace
