// The ids that records carry. Distinct types, so that a layer is never looked up as a name.
#pragma once

#include <cstdint>

namespace layertrace {

enum class LayerId : std::uint32_t {};
enum class NameId : std::uint32_t {};

inline constexpr LayerId kNoLayer{0xffffffffU};
inline constexpr NameId kNoName{0xffffffffU};

constexpr std::uint32_t index(LayerId id) noexcept { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(NameId id) noexcept { return static_cast<std::uint32_t>(id); }

}  // namespace layertrace
