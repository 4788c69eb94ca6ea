// What the faces of the machine show to programs: everything else in their libraries is hidden.
#pragma once

#define SIMGPU_API extern "C" __attribute__((visibility("default")))
