#include "roofline/roofline.h"

#include <array>
#include <string_view>

namespace layertrace {

std::string_view roof_name(Roof roof) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"none", "compute", "memory"};
  return kNames[static_cast<std::size_t>(roof)];
}

namespace roofline {

double mixed_peak(const FlopsByDtype& flops, const DevicePeaks& peaks) noexcept {
  double total = 0;
  double least_s = 0;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (!(flops[i] > 0)) continue;
    const double peak = peaks.peak(static_cast<Dtype>(i));
    if (!(peak > 0)) return 0;
    total += flops[i];
    least_s += flops[i] / peak;
  }
  return least_s > 0 ? total / least_s : 0;
}

}  // namespace roofline
}  // namespace layertrace
