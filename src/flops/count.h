// A number of operations, elements or bytes that stays at its largest value rather than wrap
// around: sizes come from the user's program, and a sum over a long run must not turn small.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace layertrace {

class Count {
 public:
  constexpr Count() noexcept = default;
  // Sizes and factors; one below zero is none.
  template <std::integral Integer>
  constexpr Count(
      Integer value) noexcept  // NOLINT(google-explicit-constructor): 2 * m * k reads as such
      : value_(value > 0 ? static_cast<std::uint64_t>(value) : 0) {}

  constexpr std::uint64_t value() const noexcept { return value_; }

  friend constexpr Count operator*(Count a, Count b) noexcept {
    std::uint64_t result = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &result) ? kMost : result;
  }
  friend constexpr Count operator+(Count a, Count b) noexcept {
    std::uint64_t result = 0;
    return __builtin_add_overflow(a.value_, b.value_, &result) ? kMost : result;
  }
  constexpr Count& operator*=(Count other) noexcept { return *this = *this * other; }
  constexpr Count& operator+=(Count other) noexcept { return *this = *this + other; }
  friend constexpr bool operator==(Count, Count) noexcept = default;
  friend constexpr auto operator<=>(Count, Count) noexcept = default;

 private:
  static constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t value_ = 0;
};

}  // namespace layertrace
