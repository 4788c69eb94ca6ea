// Formulas of the user's, in Python: for operators by name, and for modules by class.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>

namespace layertrace::python {

// `function(module, inputs, output)` tells what a call of a module of this class computes, or of a
// class derived from it. A nullptr takes it away; false where there was none.
bool set_module_formula(PyObject* type, PyObject* function);

// The function for a module, borrowed; nullptr where there is none. With the GIL held.
PyObject* module_formula(PyObject* module) noexcept;

// What it says of a call; nothing where it cannot tell. What it raises is told as unraisable: the
// program that is observed goes on.
std::optional<std::uint64_t> call_module_formula(PyObject* function, PyObject* module,
                                                 PyObject* args, PyObject* output) noexcept;

// A function's result as FLOPs: a whole number, not below 0; None for what cannot be told. Takes
// the reference; an error of Python's is told as unraisable, as of the formula for `what`: an
// operator's name, a class.
std::optional<std::uint64_t> as_flops(PyObject* result, const char* what) noexcept;

}  // namespace layertrace::python
