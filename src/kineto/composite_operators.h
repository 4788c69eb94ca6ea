// Operators that only call others and have no kernel of their own: what they take is what those
// take. A trace does not tell them apart, so this is a list.
#pragma once

#include <string_view>

namespace layertrace::kineto {

// Others than PyTorch's own are taken for composite: an annotation, a function of the user's.
bool is_composite_operator(std::string_view name) noexcept;

}  // namespace layertrace::kineto
