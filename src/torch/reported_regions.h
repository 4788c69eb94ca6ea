// What PyTorch says of itself by its own record_function(): "Optimizer.step#Adam.step",
// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__". Others are the user's.
#pragma once

#include <cstdint>
#include <string_view>

#include "capture/recorder.h"

namespace layertrace {

struct ReportedRegion {
  std::string_view name;
  std::uint8_t phase = kNoPhase;
};
ReportedRegion describe_region(std::string_view reported) noexcept;

// Depth 0 where there is no memory for it.
ThreadState::Place enter_reported_region(ThreadState& thread, std::string_view reported) noexcept;

}  // namespace layertrace
