// Tells what a file that is not ours looks like, so that the error can say so.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace layertrace {

// "it looks like JSON (a Chrome or torch.profiler trace)"; never empty.
std::string describe_foreign(std::span<const std::uint8_t> bytes);

}  // namespace layertrace
