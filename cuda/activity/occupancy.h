// How many of a multiprocessor's warps a kernel can keep there at once, as far as its block's size,
// registers and shared memory allow: by the rules in the CUDA programming guide.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace layertrace::cuda {

struct MultiprocessorLimits {
  std::uint32_t threads = 0;
  std::uint32_t blocks = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
  std::uint32_t reserved_shared_bytes = 0;  // of each block, by the driver
};

struct KernelNeeds {
  std::uint32_t threads = 0;  // of a block
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
};

// In 0…1; 0 where the limits are not known, or it does not fit at all.
float occupancy(const MultiprocessorLimits& limits, const KernelNeeds& kernel) noexcept;

// The same for devices by their number, whose limits the driver is asked for once.
class Occupancies {
 public:
  float of(std::uint32_t device, const KernelNeeds& kernel);

 private:
  std::vector<MultiprocessorLimits> devices_;
  std::unordered_map<std::uint64_t, float> known_;
};

}  // namespace layertrace::cuda
