// What of a Profile is drawn: a graph, a page, and memory over a step.
#pragma once

#include <nanobind/nanobind.h>

namespace layertrace::python {

// Once Profile is bound.
void bind_pictures(nanobind::module_& m);

}  // namespace layertrace::python
