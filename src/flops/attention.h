// How many of the query's and key's positions meet under a mask.
#pragma once

#include <cstdint>
#include <optional>

#include "flops/count.h"

namespace layertrace {

// Query i and key j meet where −left ≤ j − i − shift ≤ right; a side that is not set has no limit.
struct AttentionBand {
  std::int64_t shift = 0;
  std::optional<std::int64_t> left = {};
  std::optional<std::int64_t> right = {};
};

Count attention_pairs(std::int64_t queries, std::int64_t keys, const AttentionBand& band) noexcept;

}  // namespace layertrace
