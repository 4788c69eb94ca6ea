// `layertrace info`: what a trace holds, as text.
#pragma once

#include <string>

#include <layertrace/trace.h>

namespace layertrace::tools {

std::string describe(const TraceInfo& info);

}  // namespace layertrace::tools
