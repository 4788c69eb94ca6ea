// What must be known of the built-in metrics elsewhere.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace layertrace::cards {

// Nothing of none.
std::optional<double> median(std::vector<double> values);

// Whose figures depend on the convention, and on what the model ran on.
bool is_by_convention(std::string_view key) noexcept;
bool is_timed(std::string_view key) noexcept;

}  // namespace layertrace::cards
