// What machine and program this is, for a trace's head.
#pragma once

#include <layertrace/profile.h>

namespace layertrace {

// Fills host, os, cpu, cpu_count, memory_bytes, pid, program, command, commit, created.
void describe_host(RunInfo& run);

}  // namespace layertrace
