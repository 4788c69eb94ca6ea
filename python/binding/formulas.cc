#include "formulas.h"

#include <cmath>

namespace layertrace::python {
namespace {

PyObject* formulas = nullptr;  // {class: function}; made with the first

// 2e3, too, which people write for 2,000; not 0.5.
PyObject* whole_number(PyObject* result) noexcept {
  if (!PyFloat_Check(result)) return PyNumber_Index(result);
  const double value = PyFloat_AS_DOUBLE(result);
  if (std::isfinite(value) && value == std::floor(value)) return PyLong_FromDouble(value);
  PyErr_Format(PyExc_ValueError, "a formula gives a whole number of FLOPs; this is %R", result);
  return nullptr;
}

// "Exception ignored in: 'layertrace: the formula for mylib::attend'".
void tell_unraisable(const char* what) noexcept {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* place = PyUnicode_FromFormat("layertrace: the formula for %s", what);
  PyErr_Restore(type, value, trace);
  PyErr_WriteUnraisable(place);
  Py_XDECREF(place);
}

}  // namespace

bool set_module_formula(PyObject* type, PyObject* function) {
  if (formulas == nullptr) formulas = PyDict_New();
  if (formulas == nullptr) return false;
  const int result = function != nullptr ? PyDict_SetItem(formulas, type, function)
                                         : PyDict_DelItem(formulas, type);
  if (result < 0) PyErr_Clear();
  return result == 0;
}

PyObject* module_formula(PyObject* module) noexcept {
  if (formulas == nullptr || PyDict_GET_SIZE(formulas) == 0) [[likely]]
    return nullptr;
  PyObject* classes = Py_TYPE(module)->tp_mro;
  for (Py_ssize_t i = 0; classes != nullptr && i < PyTuple_GET_SIZE(classes); ++i) {
    PyObject* found = PyDict_GetItemWithError(formulas, PyTuple_GET_ITEM(classes, i));
    if (found != nullptr) return found;
    PyErr_Clear();
  }
  return nullptr;
}

std::optional<std::uint64_t> call_module_formula(PyObject* function, PyObject* module,
                                                 PyObject* args, PyObject* output) noexcept {
  PyObject* kept = Py_NewRef(function);  // it may take itself away
  PyObject* result = PyObject_CallFunctionObjArgs(kept, module, args, output, nullptr);
  const auto flops = as_flops(result, Py_TYPE(module)->tp_name);
  Py_DECREF(kept);
  return flops;
}

std::optional<std::uint64_t> as_flops(PyObject* result, const char* what) noexcept {
  if (result == Py_None) {
    Py_DECREF(result);
    return std::nullopt;
  }
  PyObject* whole = result != nullptr ? whole_number(result) : nullptr;
  Py_XDECREF(result);
  const std::uint64_t flops = whole != nullptr ? PyLong_AsUnsignedLongLong(whole) : 0;
  Py_XDECREF(whole);
  if (PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {  // meant for the program
      PyErr_Clear();
      PyErr_SetInterrupt();
    } else {
      tell_unraisable(what);
    }
    return std::nullopt;
  }
  return flops;
}

}  // namespace layertrace::python
