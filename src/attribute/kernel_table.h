// What kernels a device ran, how often, how long, and for whom: sums by name, and for each by layer
// and phase. Sums do not depend on the order in which activities come.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

// Sets a kernel's sums, and what is told of its longest launch, by those that it serves.
void add_up_uses(Kernel& kernel);

class KernelTable {
 public:
  // Further names become one.
  explicit KernelTable(std::size_t most_names = std::size_t{1} << 15) : most_names_(most_names) {}

  // `outside`: no step asked for it.
  void add(const DeviceSpan& span, bool outside = false);
  void merge(const KernelTable& other, bool outside = false);
  // Sets all sums to nothing. What will come again is known already.
  void clear();

  // Those that took longest first.
  std::vector<Kernel> kernels(const std::vector<std::string>& names) const;

 private:
  // Of several launches that took as long, the one to tell of must not depend on which came first.
  struct LaunchShape {
    std::array<std::uint32_t, 3> grid{};
    std::array<std::uint32_t, 3> block{};
    std::uint32_t registers = 0;
    std::uint32_t shared_bytes = 0;
    float occupancy = 0;

    auto operator<=>(const LaunchShape&) const = default;
  };
  struct Use {
    std::uint64_t key = 0;  // kernel, layer and phase
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
    std::uint64_t min_ns = ~std::uint64_t{0};
    std::uint64_t max_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t outside_count = 0;
    std::uint64_t outside_ns = 0;
    LaunchShape longest = {};
    std::uint32_t next = 0;  // the use that came after this one, the last time
  };
  struct Entry {
    NameId name = kNoName;
    DeviceKind kind = DeviceKind::kKernel;
  };

  std::uint32_t entry_of(NameId name, DeviceKind kind);
  Use& use_of(std::uint64_t key);
  static void take_longest(Use& use, const LaunchShape& launch, std::uint64_t ns);

  std::size_t most_names_;
  std::unordered_map<std::uint64_t, std::uint32_t> entry_ids_;  // by name and kind
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::uint32_t> use_ids_;  // by key
  std::vector<Use> uses_;
  std::uint32_t last_use_ = 0;
};

}  // namespace layertrace
