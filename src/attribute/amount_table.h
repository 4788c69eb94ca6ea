// What operators computed, by layer, phase and operator.
//
// Counting costs more than recording, and most steps are alike: so only some are counted, and the
// others taken to be like them. A step is a row of stretches, each with a key (what the model was
// called with); stretches of one key are alike. What was counted in those of a key, over how many
// were counted, stands for each that was not.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

// Sums by layer, phase and operator.
class AmountSums {
 public:
  struct Sum {
    std::uint64_t calls = 0;
    std::uint64_t uncounted = 0;
    Amounts amounts;
  };

  void add(LayerId layer, Phase phase, const OpAmounts& amounts);
  void merge(const AmountSums& other);
  bool empty() const noexcept { return sums_.empty(); }

  // Calls visit(layer, phase, operator, sum).
  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& [key, sum] : sums_) visit(layer_of(key), phase_of(key), name_of(key), sum);
  }

 private:
  // A layer's number has 24 bits, a name's 32.
  static constexpr std::uint32_t kNobody = 0xffffffU;
  static std::uint64_t key_of(LayerId layer, Phase phase, NameId name) noexcept {
    const std::uint32_t number = layer == kNoLayer ? kNobody : index(layer) & kNobody;
    return std::uint64_t{index(name)} << 32 | std::uint64_t{number} << 8 |
           static_cast<std::uint64_t>(phase);
  }
  static LayerId layer_of(std::uint64_t key) noexcept {
    const auto number = static_cast<std::uint32_t>(key >> 8 & kNobody);
    return number == kNobody ? kNoLayer : LayerId{number};
  }
  static Phase phase_of(std::uint64_t key) noexcept { return static_cast<Phase>(key & 0xffU); }
  static NameId name_of(std::uint64_t key) noexcept {
    return NameId{static_cast<std::uint32_t>(key >> 32)};
  }

  std::unordered_map<std::uint64_t, Sum> sums_;
};

// Stretches of one key.
struct Alike {
  std::uint64_t stretches = 0;
  std::uint64_t counted = 0;
  AmountSums sums;  // of those that were counted
};
// By key. Of a program that never ends a step there may be very many stretches, and keys: those
// beyond a number are not known.
inline constexpr std::size_t kMostKeys = 256;
using AlikeByKey = std::unordered_map<std::uint64_t, Alike>;

// The stretches of one step.
class CountedStep {
 public:
  void counting(const CountingSpan& span);
  void amounts(const AmountsSpan& span);
  // All of them; false where some are not among them.
  bool add_to(AlikeByKey& alike) const;

 private:
  static constexpr std::size_t kMostOpen = 64;  // for what comes a little later
  struct Stretch {
    std::uint64_t start_ns = 0;
    std::uint64_t key = 0;
    bool is_counted = false;
    AmountSums sums;
  };
  Stretch& stretch_at(std::uint64_t ns);
  static bool add(const Stretch& stretch, AlikeByKey& alike);

  std::vector<Stretch> stretches_;  // the last ones, in order of time
  AlikeByKey earlier_;
  bool has_lost_ = false;
};

class AmountTable {
 public:
  void add(const CountedStep& step);
  // Fills in what layers, phases and operators come to, in a profile that has its layers.
  void fill(Profile& profile, const Dictionary& dictionary) const;

 private:
  std::uint64_t steps_ = 0;
  std::uint64_t known_steps_ = 0;  // of which all is known
  AlikeByKey alike_;
};

}  // namespace layertrace
