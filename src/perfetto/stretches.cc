#include "perfetto/stretches.h"

#include <algorithm>
#include <cstddef>

namespace layertrace {

bool Stretches::take_between(std::uint64_t start_ns, std::uint64_t end_ns) {
  const auto next =
      std::upper_bound(stretches_.begin(), stretches_.end(), start_ns,
                       [](std::uint64_t ns, const Stretch& each) { return ns < each.end_ns; });
  if (start_ns < forgotten_ns_ || end_ns >= next->start_ns) return false;
  if (next != stretches_.begin() && std::prev(next)->end_ns == start_ns) {
    std::prev(next)->end_ns = end_ns;
    return true;
  }
  stretches_.insert(next, {start_ns, end_ns});
  if (stretches_.size() > kMost) forget_oldest();
  return true;
}

void Stretches::forget_oldest() {
  const auto kept = stretches_.begin() + static_cast<std::ptrdiff_t>(stretches_.size() / 2);
  forgotten_ns_ = std::prev(kept)->end_ns;
  stretches_.erase(stretches_.begin(), kept);
}

}  // namespace layertrace
