// Tables for Python: layertrace.Table, and what of a Profile gives one.
#pragma once

#include <nanobind/nanobind.h>

namespace layertrace::python {

// After Profile is bound.
void bind_tables(nanobind::module_& m);

}  // namespace layertrace::python
