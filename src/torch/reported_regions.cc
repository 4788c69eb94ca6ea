#include "torch/reported_regions.h"

#include "record/definitions.h"
#include "torch/open_norm.h"
#include "torch/sequence.h"

namespace layertrace {

ReportedRegion describe_region(std::string_view reported) noexcept {
  constexpr std::string_view kStep = "Optimizer.step#";
  constexpr std::string_view kZeroGrad = "Optimizer.zero_grad#";
  constexpr std::string_view kDataLoader = "enumerate(DataLoader)#";
  constexpr auto kOptimizer = static_cast<std::uint8_t>(Phase::kOptimizer);
  if (reported.starts_with(kStep)) return {reported.substr(kStep.size()), kOptimizer};
  if (reported.starts_with(kZeroGrad)) return {"zero_grad", kOptimizer};
  if (reported.starts_with(kDataLoader))
    return {"DataLoader", static_cast<std::uint8_t>(Phase::kData)};
  return {reported};
}

ThreadState::Place enter_reported_region(ThreadState& thread, std::string_view reported) noexcept {
  close_abandoned_norm();
  try {
    const ReportedRegion region = describe_region(reported);
    return thread.enter_region(NameTable::instance().intern(region.name), region.phase,
                               next_sequence());
  } catch (...) {  // no memory for the name
    return {};
  }
}

}  // namespace layertrace
