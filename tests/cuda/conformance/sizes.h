// A size for memory of which no more is asked than to be there.
#pragma once

#include <cstddef>

inline constexpr std::size_t kBytes = 4096;
