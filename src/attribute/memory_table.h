// Memory, by layer and phase.
//
// An allocator tells of blocks taken and given back, on whatever thread that happens. A block is
// charged to who took it; who gave it back only says what it was for: one that a forward took and a
// backward gives back was kept for that. So this unit remembers the blocks of a step until they are
// given back or the step ends.
//
// Only some steps are counted, and blocks come and go unseen in the others: what was there before
// is not known, and all levels are above the one at which the counting began.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/memory_curve.h"
#include "attribute/span.h"

namespace layertrace {

class MemoryTable {
 public:
  // The blocks that are remembered take about `memory_bytes` at most.
  MemoryTable(const Dictionary& dictionary, std::size_t memory_bytes)
      : dictionary_(dictionary), most_blocks_(std::max<std::size_t>(memory_bytes / 64, 1024)) {}

  void begin_step(std::uint64_t ns);
  void end_step();
  // The step that runs is not recorded to its end.
  void drop_step();
  void counting(const CountingSpan& span);
  void memory(const MemorySpan& span);
  // No backward is open any more.
  void end_backward();

  // Does this step's memory matter? If not, the following need not be called.
  bool is_counting() const noexcept { return step_.state == State::kOn; }
  // A layer is open in this phase, now: after it was entered, and after memory was taken.
  void visit(LayerId layer, Phase phase);

  // Fills in what layers, phases and devices come to, in a profile that has its layers.
  void fill(Profile& profile) const;
  std::vector<std::string> notes() const;

 private:
  // Layers take the memory of one kind of device: adding a GPU's and the host's tells nothing.
  enum Kind : std::uint8_t { kHost, kGpu, kKinds };
  enum class State : std::uint8_t { kUntold, kOff, kOn };
  struct Block {
    std::uint64_t bytes = 0;
    std::uint64_t step = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
  };
  struct Sum {
    std::uint64_t allocated = 0;
    std::uint64_t freed = 0;
    std::uint64_t kept = 0;
    std::int64_t peak = 0;
  };
  using Sums = std::unordered_map<std::uint64_t, std::array<Sum, kKinds>>;  // by layer and phase
  struct Device {
    std::uint64_t allocated = 0;
    std::uint64_t freed = 0;
    std::int64_t live = 0;
    std::int64_t peak = 0;
    LayerId peak_layer = kNoLayer;
    Phase peak_phase = Phase::kOther;
    std::uint64_t peak_ns = 0;
    MemoryCurve curve;
  };
  using Devices = std::map<int, Device>;
  using Bytes = std::array<std::int64_t, kKinds>;
  struct Step {
    State state = State::kUntold;
    std::uint64_t start_ns = 0;
    Sums sums;
    Devices devices;
    Bytes live{};
    Bytes of_backward{};  // of these, allocated by a backward
    Bytes gradients{};    // the same, when a backward was over
  };

  static Kind kind_of(const MemorySpan& span) noexcept {
    return span.device == kHostDevice ? kHost : kGpu;
  }
  static std::uint64_t key_of(const MemorySpan& span) noexcept {
    return span.address ^ std::uint64_t{span.device + 1} << 56;  // beyond where addresses go
  }
  static std::uint64_t slot_of(LayerId layer, Phase phase) noexcept {
    return std::uint64_t{index(layer)} << 8 | static_cast<std::uint64_t>(phase);
  }
  void take(const MemorySpan& span, Device& device);
  void give_back(const MemorySpan& span, Device& device);
  void forget(const Block& block, Kind kind);
  void forget_blocks();
  void add_sums(const Sums& sums);
  void add_devices(const Devices& devices);
  void fill_layers(Profile& profile, Kind kind) const;
  void fill_devices(Profile& profile) const;

  const Dictionary& dictionary_;
  const std::size_t most_blocks_;
  std::unordered_map<std::uint64_t, Block> blocks_;  // by device and address
  Bytes of_optimizers_{};                            // among the blocks
  std::uint64_t not_followed_ = 0;
  Step step_;
  std::uint64_t steps_ = 0;  // that were counted
  Sums sums_;
  Devices devices_;
  Bytes gradients_{};
  Bytes optimizers_{};
};

}  // namespace layertrace
