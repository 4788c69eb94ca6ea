#include <layertrace/profile.h>

#include <algorithm>
#include <array>

#include "attribute/span.h"

namespace layertrace {

std::string_view phase_name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kLoss:
      return "loss";
    case Phase::kBackward:
      return "backward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kCommunication:
      return "communication";
    case Phase::kData:
      return "data";
    case Phase::kOther:
      break;
  }
  return "other";
}

std::string_view metric_comparison_name(MetricComparison comparison) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"none", "ratio", "reciprocal", "difference"};
  return kNames[static_cast<std::size_t>(comparison)];
}

std::string_view better_name(Better better) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"", "high", "low"};
  return kNames[static_cast<std::size_t>(better)];
}

std::string_view cause_text(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNone:
      break;
    case Cause::kNoScope:
      return "ran outside any module and any known phase";
    case Cause::kThreadNoScope:
      return "ran before its thread entered any module";
    case Cause::kMadeOutside:
      return "backward of operators outside any module";
    case Cause::kMadeBefore:
      return "backward of operators that ran before the recording began";
    case Cause::kForgotten:
      return "backward of a forward call too long ago to be remembered";
    case Cause::kUnknownThread:
      return "backward of operators of a thread that was not recorded";
    case Cause::kForeignLeaf:
      return "gradient of a tensor that no registered module owns";
    case Cause::kBetweenNodes:
      return "the autograd engine's own, between nodes";
    case Cause::kAfterLayers:
      return "after the last layer of a module without a scope: its own, or the loss";
    case Cause::kInferred:
      return "between two layers of it (inferred)";
    case Cause::kNoLaunch:
      return "asked of the device by a call that was not recorded";
    case Cause::kOldScope:
      return "asked of the device in a scope that is too long ago to be remembered";
    case Cause::kEarlierGraph:
      return "of a CUDA graph that was captured while nothing was recorded";
    case Cause::kNoCorrelation:
      return "no correlation id: nothing ties it to the call that asked for it";
    case Cause::kBeforeWindow:
      return "asked of the device before the recording began";
    case Cause::kSharedCorrelation:
      return "has the correlation id of something else that the device did";
  }
  return "";
}

std::string_view idle_cause_name(IdleCause cause) noexcept {
  switch (cause) {
    case IdleCause::kLaunch:
      break;
    case IdleCause::kSynchronisation:
      return "synchronisation";
    case IdleCause::kCopy:
      return "copy";
    case IdleCause::kData:
      return "data";
  }
  return "launch";
}

const Layer* Profile::find(std::string_view path) const noexcept {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const Layer& layer) { return layer.path == path; });
  return found == layers.end() ? nullptr : &*found;
}

}  // namespace layertrace
