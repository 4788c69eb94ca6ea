// The metrics that users gave to runs, held against the first run's.
#pragma once

#include <vector>

#include <layertrace/report.h>

namespace layertrace::comparison {

// Adds rows, what not all runs have, and what to bear in mind.
void compare_metrics(const std::vector<Profile>& runs, Comparison& out);

// (after − before) / before; infinite from 0.
double relative(double before, double after);

}  // namespace layertrace::comparison
