#include "kineto/accounts.h"

#include <algorithm>
#include <string>

namespace layertrace::kineto {

std::string_view reason_text(Reason reason) noexcept {
  switch (reason) {
    case Reason::kPythonFrame:
      return "a Python frame that is no module's call";
    case Reason::kIdleCall:
      return "a call that asked a device for nothing that is in the trace";
    case Reason::kSynchronisation:
      return "a device's view of a wait";
    case Reason::kDeviceAnnotation:
      return "an annotation again, as it fell on a device";
    case Reason::kOverhead:
      return "the profiler's own overhead";
    case Reason::kMarker:
      return "a marker of the recording as a whole";
    case Reason::kInstant:
      return "an instant that is no report of memory";
    case Reason::kHostMemory:
      return "a report of the host's memory";
    case Reason::kCounter:
      return "a counter";
    case Reason::kUnknownCategory:
      return "unknown category";
    case Reason::kUnknownKind:
      return "unknown kind of event";
    case Reason::kNoTime:
      return "without a start or a duration";
    case Reason::kNotANumber:
      return "a time that is no number";
    case Reason::kNegative:
      return "negative duration";
    case Reason::kOutOfRange:
      return "a time out of range";
    case Reason::kUnpaired:
      return "a begin or an end without the other";
    case Reason::kTooMany:
      return "of too many threads or events";
  }
  return "";
}

std::vector<Unattributed> Accounts::listed(const Counts& counts) {
  std::vector<Unattributed> result;
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    if (counts[i] == 0) continue;
    result.push_back({std::string(reason_text(static_cast<Reason>(i))), counts[i], 0, {}});
  }
  std::ranges::stable_sort(
      result, [](const Unattributed& a, const Unattributed& b) { return a.count > b.count; });
  return result;
}

SourceEvents Accounts::summary(std::uint64_t events) const {
  return {.events = events, .kept = kept_, .merged = merged_, .left_out = listed(left_out_)};
}

}  // namespace layertrace::kineto
