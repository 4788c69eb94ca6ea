// Who calls the backward of a model on a GPU waits, while autograd's own threads run it. Python's
// frames tell of that call; a trace without them has nothing of it but a gap, on the thread that
// ran the forward, in which nodes run elsewhere.
#pragma once

#include <vector>

#include "kineto/structure.h"

namespace layertrace::kineto {

// In order of time. None where the trace tells of the calls itself.
std::vector<Stretch> find_waits(const Trace& trace);

}  // namespace layertrace::kineto
