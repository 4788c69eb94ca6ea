// The clock that hooks read. A hook may spend some ten nanoseconds, and clock_gettime alone takes
// thirty; so hooks read the processor's time-stamp counter where it is invariant, and whoever reads
// the records turns ticks into nanoseconds. Where the counter cannot be trusted, ticks are
// CLOCK_BOOTTIME nanoseconds and the conversion is the identity; likewise on a simulated GPU whose
// clock is virtual, which is then ours, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace layertrace {

// CLOCK_BOOTTIME, the clock of Perfetto traces.
std::uint64_t boottime_ns() noexcept;

namespace detail {
extern const bool counter_is_invariant;
std::uint64_t ticks_without_counter() noexcept;
}  // namespace detail

inline std::uint64_t clock_ticks() noexcept {
#if defined(__x86_64__)
  if (detail::counter_is_invariant) [[likely]]
    return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  if (detail::counter_is_invariant) [[likely]]
    return ticks;
#endif
  return detail::ticks_without_counter();
}

// Ticks to nanoseconds: ns = base_ns + (ticks − base_ticks) · scale / 2³². Never decreasing, so
// order is kept.
class TickScale {
 public:
  // The identity: ticks are nanoseconds. For tests with a clock of their own, and for the fallback.
  TickScale() = default;
  TickScale(std::uint64_t base_ticks, std::uint64_t base_ns, double ns_per_tick);

  // Measured between the library's load and now (at least five milliseconds, which the first call
  // may wait for).
  static TickScale measure();

  std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
    const auto delta = static_cast<std::int64_t>(ticks - base_ticks_);
    return base_ns_ + static_cast<std::uint64_t>(
                          (static_cast<__int128>(delta) * static_cast<__int128>(scale_)) >> 32);
  }
  double ns_per_tick() const noexcept { return static_cast<double>(scale_) / 4294967296.0; }

 private:
  std::uint64_t base_ticks_ = 0;
  std::uint64_t base_ns_ = 0;
  std::uint64_t scale_ = std::uint64_t{1} << 32;
};

// The system's clocks at one moment, by which a trace can be laid beside one of the system's.
struct ClockReadings {
  std::uint64_t boottime_ns = 0;
  std::uint64_t monotonic_ns = 0;
  std::uint64_t monotonic_raw_ns = 0;
  std::uint64_t realtime_ns = 0;
};
// Nothing where the session's clock is virtual: its nanoseconds are nobody else's.
std::optional<ClockReadings> read_clocks() noexcept;

// "tsc", "boottime" or "virtual".
std::string_view clock_name() noexcept;

}  // namespace layertrace
