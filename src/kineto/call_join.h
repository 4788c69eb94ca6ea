// Which call asked for what a device did? Both have the same correlation id; one launch of a graph
// may ask for hundreds of kernels. Old traces have it as External id too, which elsewhere is the
// number of an operator: that is not looked at.
#pragma once

#include <cstdint>

#include "kineto/events.h"

namespace layertrace::kineto {

struct JoinedCalls {
  std::uint64_t first_correlation = 0;  // of all calls; 0 without any
  std::int64_t first_ns = 0;            // of the host's events
};

// Host events must be in order of time. Puts the device's into the order in which they are to be
// handed on: behind their calls, others by their own time.
JoinedCalls join_calls(Trace& trace);

}  // namespace layertrace::kineto
