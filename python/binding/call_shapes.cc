#include "call_shapes.h"

#include <cstddef>
#include <cstring>

#include <layertrace/binding.h>

namespace layertrace::python {
namespace {

// Of torch and of Python, held for as long as the process lives.
PyTypeObject* tensor_type = nullptr;
PyTypeObject* parameter_type = nullptr;
PyTypeObject* user_dict_type = nullptr;
PyObject* cdata_name = nullptr;
PyObject* data_name = nullptr;
PyObject* fields_name = nullptr;
PyObject* training_name = nullptr;
PyObject* registered = nullptr;  // functions by type

PyTypeObject* import_type(const char* module, const char* name) {
  PyObject* imported = PyImport_ImportModule(module);
  PyObject* type = imported != nullptr ? PyObject_GetAttrString(imported, name) : nullptr;
  Py_XDECREF(imported);
  if (type != nullptr && !PyType_Check(type)) {
    PyErr_Format(PyExc_TypeError, "%s.%s is no class", module, name);
    Py_CLEAR(type);
  }
  return reinterpret_cast<PyTypeObject*>(type);
}

// ---- Tensors ----

// Where an object of torch.Tensor holds the address of its c10::TensorImpl; 0 while that is not
// known. Asking it for `_cdata` costs more, and may run Python code of the tensor's class.
std::size_t address_place = 0;

void* address_at(PyObject* tensor, std::size_t place) {
  void* address = nullptr;
  std::memcpy(static_cast<void*>(&address), reinterpret_cast<const char*>(tensor) + place,
              sizeof(address));
  return address;
}

// It is behind the object's head, in some versions of torch with a word between (seen: none in
// 2.15).
void learn_place(PyObject* tensor, const void* address) {
  if (Py_TYPE(tensor) != tensor_type && Py_TYPE(tensor) != parameter_type) return;
  for (const std::size_t place : {sizeof(PyObject), sizeof(PyObject) + sizeof(void*)}) {
    const bool is_inside =
        place + sizeof(void*) <= static_cast<std::size_t>(tensor_type->tp_basicsize);
    if (address_place == 0 && is_inside && address_at(tensor, place) == address)
      address_place = place;
  }
}

void* ask_address(PyObject* tensor) {
  PyObject* address = PyObject_GetAttr(tensor, cdata_name);
  void* result = address != nullptr ? PyLong_AsVoidPtr(address) : nullptr;
  Py_XDECREF(address);
  if (result == nullptr) PyErr_Clear();
  if (result != nullptr) learn_place(tensor, result);
  return result;
}

// ---- What holds tensors ----

// The function for its type, or the nearest above that has one; borrowed.
PyObject* registered_function(PyObject* object) {
  if (registered == nullptr) return nullptr;
  PyObject* types = Py_TYPE(object)->tp_mro;
  for (Py_ssize_t i = 0; types != nullptr && i < PyTuple_GET_SIZE(types); ++i) {
    PyObject* function = PyDict_GetItemWithError(registered, PyTuple_GET_ITEM(types, i));
    if (function != nullptr) return function;
    PyErr_Clear();
  }
  return nullptr;
}

// What the object itself has under this name, in its __dict__ or in a slot; new, or nullptr.
PyObject* own_value(PyObject* object, PyObject* name) {
  PyObject** dict = _PyObject_GetDictPtr(object);
  PyObject* value = nullptr;
  if (dict != nullptr && *dict != nullptr) value = PyDict_GetItemWithError(*dict, name);
  if (value != nullptr) return Py_NewRef(value);
  PyObject* slot = _PyType_Lookup(Py_TYPE(object), name);
  if (slot != nullptr && Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
    value =
        PyMemberDescr_Type.tp_descr_get(slot, object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  }
  PyErr_Clear();
  return value;
}

// Visits tensors in the order in which they stand. Bounded: beyond that, it is cut.
template <typename Visit>
class Walk {
 public:
  explicit Walk(Visit visit) : visit_(visit) {}

  void look_at(PyObject* object, int depth = 0) {
    if (object == Py_None || is_cut_) return;
    if (PyObject_TypeCheck(object, tensor_type)) return meet(object);
    if (++objects_ > kMostObjects) return cut();
    if (PyObject* function = registered_function(object)) {
      call(function, object, depth);
    } else if (PyTuple_Check(object)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
        descend(PyTuple_GET_ITEM(object, i), depth);
    } else if (PyList_Check(object)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i)
        descend(PyList_GET_ITEM(object, i), depth);
    } else if (PyDict_Check(object)) {
      look_into_dict(object, depth);
    } else if (PyObject_TypeCheck(object, user_dict_type)) {
      look_at_own(object, data_name, depth);
    } else if (PyObject* fields = _PyType_Lookup(Py_TYPE(object), fields_name)) {
      look_at_fields(object, fields, depth);
    }
  }
  void look_into_dict(PyObject* dict, int depth = 0) {
    PyObject* value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, nullptr, &value) != 0;) descend(value, depth);
  }

  bool is_cut() const { return is_cut_; }

 private:
  static constexpr int kMostDepth = 6;
  static constexpr int kMostTensors = 64;
  static constexpr int kMostObjects = 1024;

  void cut() { is_cut_ = true; }

  void meet(PyObject* object) {
    if (++tensors_ > kMostTensors) return cut();
    if (void* tensor = tensor_address(object)) visit_(tensor);
  }

  // Held meanwhile: a registered function may take it away.
  void descend(PyObject* object, int depth) {
    if (is_cut_ || object == Py_None) return;
    if (depth == kMostDepth) return cut();
    Py_INCREF(object);
    look_at(object, depth + 1);
    Py_DECREF(object);
  }

  void look_at_own(PyObject* object, PyObject* name, int depth) {
    PyObject* value = own_value(object, name);
    if (value != nullptr) descend(value, depth);
    Py_XDECREF(value);
  }

  void look_at_fields(PyObject* object, PyObject* fields, int depth) {
    if (!PyDict_Check(fields)) return;
    PyObject* name = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(fields, &at, &name, nullptr) != 0;)
      look_at_own(object, name, depth);
  }

  // What the function raises is nobody's business but its own; but Ctrl-C is for the program.
  void call(PyObject* function, PyObject* object, int depth) {
    Py_INCREF(function);
    PyObject* found = PyObject_CallOneArg(function, object);
    PyObject* iterator = found != nullptr ? PyObject_GetIter(found) : nullptr;
    while (PyObject* each = iterator != nullptr && !is_cut_ ? PyIter_Next(iterator) : nullptr) {
      descend(each, depth);
      Py_DECREF(each);
    }
    Py_XDECREF(iterator);
    Py_XDECREF(found);
    Py_DECREF(function);
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0)
      PyErr_SetInterrupt();
    PyErr_Clear();
  }

  Visit visit_;
  int tensors_ = 0;
  int objects_ = 0;
  bool is_cut_ = false;
};

std::string described(PyObject* object, PyObject* kwargs) noexcept {
  try {
    std::string text;
    const auto separate = [&] { text += text.empty() ? "" : ", "; };
    Walk walk([&](const void* tensor) {
      separate();
      binding::append_shape(text, tensor);
    });
    walk.look_at(object);
    if (kwargs != nullptr) walk.look_into_dict(kwargs);
    if (walk.is_cut()) separate(), text += "…";
    return text;
  } catch (...) {  // no memory for the text
    return {};
  }
}

}  // namespace

bool prepare_shapes() {
  if (tensor_type != nullptr) return true;
  cdata_name = PyUnicode_InternFromString("_cdata");
  data_name = PyUnicode_InternFromString("data");
  fields_name = PyUnicode_InternFromString("__dataclass_fields__");
  training_name = PyUnicode_InternFromString("training");
  user_dict_type = import_type("collections", "UserDict");
  parameter_type = import_type("torch.nn", "Parameter");
  if (cdata_name == nullptr || data_name == nullptr || fields_name == nullptr ||
      training_name == nullptr || user_dict_type == nullptr || parameter_type == nullptr)
    return false;
  tensor_type = import_type("torch", "Tensor");
  return tensor_type != nullptr;
}

void* tensor_address(PyObject* object) {
  if (tensor_type == nullptr || !PyObject_TypeCheck(object, tensor_type)) return nullptr;
  return address_place != 0 ? address_at(object, address_place) : ask_address(object);
}

void register_shapes(PyObject* type, PyObject* function) {
  if (registered == nullptr) registered = PyDict_New();
  if (registered == nullptr || PyDict_SetItem(registered, type, function) < 0) PyErr_Clear();
}

std::string shapes_of_call(PyObject* args, PyObject* kwargs) noexcept {
  return described(args, kwargs);
}

std::string shapes_of(PyObject* object) noexcept { return described(object, nullptr); }

std::uint64_t key_of_call(std::uint32_t layer, PyObject* module, PyObject* args,
                          PyObject* kwargs) noexcept {
  PyObject* training = own_value(module, training_name);
  std::uint64_t key = binding::begin_key(layer, training == Py_True);
  Py_XDECREF(training);
  Walk walk([&](const void* tensor) { key = binding::mix_shape(key, tensor); });
  walk.look_at(args);
  if (kwargs != nullptr) walk.look_into_dict(kwargs);
  return key;
}

}  // namespace layertrace::python
