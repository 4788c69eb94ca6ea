// What is fuzzed: bytes of a file, as someone else may have written it.
#pragma once

#include <cstdint>
#include <span>

namespace layertrace::fuzz {

// A trace of another profiler: imported, and what was written of it read back.
void import_bytes(std::span<const std::uint8_t> bytes);
// A .pftrace.
void load_bytes(std::span<const std::uint8_t> bytes);

}  // namespace layertrace::fuzz
