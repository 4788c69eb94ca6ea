// The tensors that go into a module's call and come out of it: inside tuples, lists, dicts (a
// model's output of Hugging Face is one), dataclasses, and types that the program has told of.
//
// Nothing of the user's runs but the functions that he has registered, nothing is changed and no
// error comes from here. All is called with the GIL held.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace layertrace::python {

// Finds torch's classes; false with a Python error set.
bool prepare_shapes();

// The address of its c10::TensorImpl; nullptr for what is no tensor.
void* tensor_address(PyObject* object);

// `function(object)` gives the tensors in an object of this type.
void register_shapes(PyObject* type, PyObject* function);

// "float32[2, 64, 512], int64[2]". `kwargs` may be nullptr.
std::string shapes_of_call(PyObject* args, PyObject* kwargs) noexcept;
std::string shapes_of(PyObject* object) noexcept;

// What tells a call of an outermost module from those with other shapes; never 0.
std::uint64_t key_of_call(std::uint32_t layer, PyObject* module, PyObject* args,
                          PyObject* kwargs) noexcept;

}  // namespace layertrace::python
