#include "base/clock.h"

#include <cstdlib>
#include <ctime>

#include "base/simulation.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace layertrace {
namespace {

// For a machine whose counter says that it is invariant and is not; and for tests.
bool counter_is_unwanted() noexcept {
  const char* wanted = std::getenv("LAYERTRACE_CLOCK");
  return wanted != nullptr && std::string_view(wanted) == "boottime";
}

bool invariant_counter() noexcept {
  if (simulation().virtual_clock != nullptr || counter_is_unwanted()) return false;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kAdvancedPowerLeaf = 0x80000007;
  constexpr unsigned kInvariantTscBit = 1U << 8;
  return __get_cpuid(kAdvancedPowerLeaf, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kInvariantTscBit) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

std::uint64_t read_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

struct Instant {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// The tightest of a few readings, as for all clocks here: an interrupt between two would skew them.
Instant now(clockid_t clock) noexcept {
  Instant best{};
  std::uint64_t best_window = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::uint64_t before = clock_ticks();
    const std::uint64_t ns = read_ns(clock);
    const std::uint64_t after = clock_ticks();
    if (after - before < best_window) {
      best_window = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

}  // namespace

namespace detail {
const bool counter_is_invariant = invariant_counter();
}

namespace {
// The counter's rate is taken against a clock that, like the counter, does not tell of a time when
// the machine was asleep.
constexpr clockid_t kRateClock = CLOCK_MONOTONIC_RAW;

// Read when the library is loaded: by the time a session starts, the baseline is long enough.
const Instant kLoaded = now(kRateClock);
const std::uint64_t kLoadedBoottimeNs = boottime_ns();

// Some counters do run on, others start again at 0: what was read before a sleep is worth nothing.
bool slept_since_load() noexcept {
  constexpr std::uint64_t kAsleepNs = 10'000'000;
  const std::uint64_t awake_ns = read_ns(kRateClock) - kLoaded.ns;
  return boottime_ns() - kLoadedBoottimeNs > awake_ns + awake_ns / 1000 + kAsleepNs;
}
}  // namespace

std::uint64_t boottime_ns() noexcept { return read_ns(CLOCK_BOOTTIME); }

std::uint64_t detail::ticks_without_counter() noexcept {
  const auto virtual_clock = simulation().virtual_clock;
  return virtual_clock != nullptr ? virtual_clock() : boottime_ns();
}

TickScale::TickScale(std::uint64_t base_ticks, std::uint64_t base_ns, double ns_per_tick)
    : base_ticks_(base_ticks),
      base_ns_(base_ns),
      scale_(static_cast<std::uint64_t>(ns_per_tick * 4294967296.0)) {}

TickScale TickScale::measure() {
  if (!detail::counter_is_invariant) return {};
  constexpr std::uint64_t kShortestBaselineNs = 5'000'000;
  const Instant first = slept_since_load() ? now(kRateClock) : kLoaded;
  Instant last = now(kRateClock);
  while (last.ns - first.ns < kShortestBaselineNs) last = now(kRateClock);
  const double rate =
      static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  const Instant anchor = now(CLOCK_BOOTTIME);
  return {anchor.ticks, anchor.ns, rate};
}

std::optional<ClockReadings> read_clocks() noexcept {
  if (simulation().virtual_clock != nullptr) return std::nullopt;
  ClockReadings best;
  std::uint64_t best_window = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::uint64_t before = read_ns(CLOCK_BOOTTIME);
    const ClockReadings now{.boottime_ns = 0,
                            .monotonic_ns = read_ns(CLOCK_MONOTONIC),
                            .monotonic_raw_ns = read_ns(CLOCK_MONOTONIC_RAW),
                            .realtime_ns = read_ns(CLOCK_REALTIME)};
    const std::uint64_t window = read_ns(CLOCK_BOOTTIME) - before;
    if (window < best_window) {
      best_window = window;
      best = now;
      best.boottime_ns = before + window / 2;
    }
  }
  return best;
}

std::string_view clock_name() noexcept {
  if (simulation().virtual_clock != nullptr) return "virtual";
  return detail::counter_is_invariant ? "tsc" : "boottime";
}

}  // namespace layertrace
