#include "session/cost.h"

#include <algorithm>

#include "base/clock.h"
#include "capture/recorder.h"

namespace layertrace {

double measure_scope_cost() {
  constexpr int kRounds = 5;
  constexpr int kScopes = 400;
  const recorder::Scratch scratch;
  ThreadState& thread = *recorder::this_thread();
  double best_ns = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t start_ns = boottime_ns();
    for (int i = 0; i < kScopes; ++i)
      thread.leave(thread.enter_scope(LayerId{0}, nullptr, 0), 0, false);
    best_ns = std::min(best_ns, static_cast<double>(boottime_ns() - start_ns) / kScopes);
  }
  return best_ns;
}

}  // namespace layertrace
