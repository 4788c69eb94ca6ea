// What recording itself costs, measured on the machine it runs on.
#pragma once

namespace layertrace {

// One module scope, entry and exit, in nanoseconds: the best of a few short rounds into memory of
// its own.
double measure_scope_cost();

}  // namespace layertrace
