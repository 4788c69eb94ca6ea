#include "python_modules.h"

#include <string_view>
#include <utility>

#include "call_shapes.h"
#include "gil.h"

namespace layertrace::python {
namespace {

PyObject* as_object(binding::Module module) {
  return const_cast<PyObject*>(static_cast<const PyObject*>(module));
}

// A value of the module's own __dict__, borrowed; nullptr if there is none. Goes past __getattr__:
// nothing of the user's runs here.
PyObject* own_value(binding::Module module, const char* name) {
  PyObject** dict = _PyObject_GetDictPtr(as_object(module));
  if (dict == nullptr || *dict == nullptr) return nullptr;
  PyObject* value = PyDict_GetItemString(*dict, name);
  if (value == nullptr) PyErr_Clear();
  return value;
}

std::string class_name(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return std::string(name.substr(name.rfind('.') + 1));
}

// The values of one of the module's tables. A ScriptModule's are no dicts: it is opaque. The
// function must not run Python code, which might change the table.
template <typename Function>
void for_each_item(binding::Module module, const char* table, const Function& function) {
  PyObject* dict = own_value(module, table);
  if (dict == nullptr || !PyDict_Check(dict)) return;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &key, &value) != 0;) {
    if (value == Py_None) continue;
    const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
    if (name == nullptr) {
      PyErr_Clear();
      continue;
    }
    function(name, value);
  }
}

// The tensors of one of its tables. Held while they are asked: a tensor's class may have Python
// code of its own.
void add_tensors(binding::Module module, const char* table, bool is_buffer,
                 std::vector<binding::ModuleSource::OwnTensor>& tensors) {
  std::vector<std::pair<std::string, PyObject*>> own;
  for_each_item(module, table, [&](const char* name, PyObject* tensor) {
    own.emplace_back(name, Py_NewRef(tensor));
  });
  for (auto& [name, tensor] : own) {
    if (void* address = tensor_address(tensor))
      tensors.push_back({std::move(name), address, is_buffer});
    Py_DECREF(tensor);
  }
}

// As `module.<method>()` names them: of a ScriptModule, which is opaque, so that all that is below
// it is its own.
void add_named(binding::Module module, const char* method, bool is_buffer,
               std::vector<binding::ModuleSource::OwnTensor>& tensors) {
  PyObject* all = PyObject_CallMethod(as_object(module), method, nullptr);
  PyObject* iterator = all != nullptr ? PyObject_GetIter(all) : nullptr;
  while (PyObject* named = iterator != nullptr ? PyIter_Next(iterator) : nullptr) {
    const char* name = nullptr;
    PyObject* tensor = nullptr;
    if (PyArg_ParseTuple(named, "sO", &name, &tensor) != 0) {
      if (void* address = tensor_address(tensor)) tensors.push_back({name, address, is_buffer});
    }
    PyErr_Clear();
    Py_DECREF(named);
  }
  Py_XDECREF(iterator);
  Py_XDECREF(all);
  PyErr_Clear();
}

// "3" of an int.
std::string size_text(PyObject* size) {
  const long value = PyLong_Check(size) ? PyLong_AsLong(size) : -1;
  PyErr_Clear();
  return value >= 0 ? std::to_string(value) : std::string();
}

// One number stands for as many as the module's class has dimensions: MaxPool2d.
int dimensions(std::string_view type) {
  const bool has_them = type.size() > 2 && type.back() == 'd';
  const char digit = has_them ? type[type.size() - 2] : '1';
  return digit == '2' || digit == '3' ? digit - '0' : 1;
}

bool is_compiled(binding::Module module) {
  PyObject* own = own_value(module, "_compiled_call_impl");
  return (own != nullptr && own != Py_None) || class_name(as_object(module)) == "OptimizedModule";
}

// Of the active session; guarded by the GIL.
std::weak_ptr<PythonModules>& active_modules() {
  static auto* modules = new std::weak_ptr<PythonModules>;
  return *modules;
}

// Wrappers, and the name by which each holds what it wraps.
struct Wrapper {
  std::string_view type;
  std::string_view child;
};
constexpr Wrapper kWrappers[] = {
    {"DataParallel", "module"},
    {"DistributedDataParallel", "module"},
    {"FullyShardedDataParallel", "_fsdp_wrapped_module"},
    {"CheckpointWrapper", "_checkpoint_wrapped_module"},
    {"OffloadWrapper", "_checkpoint_wrapped_module"},
    {"OptimizedModule", "_orig_mod"},
};

}  // namespace

void note_compiled(PyObject* module) {
  if (const auto modules = active_modules().lock()) modules->add_compiled(class_name(module));
}

void set_active_modules(const std::shared_ptr<PythonModules>& modules) {
  active_modules() = modules;
}

PythonModules::PythonModules(PyObject* name_model, bool fold_wrappers, bool tells_reported)
    : name_model_(Py_NewRef(name_model)),
      fold_wrappers_(fold_wrappers),
      tells_reported_(tells_reported) {}

void PythonModules::add_compiled(const std::string& type) {
  const std::lock_guard lock(compiled_mutex_);
  compiled_.insert(type);
}

void PythonModules::wait_for(std::mutex& mutex) { lock_without_gil(mutex); }

// May be the last thing a process does: then Python is gone, and nobody needs the reference back.
PythonModules::~PythonModules() {
  if (Py_IsInitialized() == 0) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(name_model_);
  PyGILState_Release(gil);
}

std::string PythonModules::type_name(binding::Module module) {
  std::string name = class_name(as_object(module));
  if (is_compiled(module)) add_compiled(name);
  if (!fold_wrappers_) return name;
  for (const Child& child : children(module)) {
    if (is_folded(module, child)) return type_name(child.module);
  }
  return name;
}

std::vector<PythonModules::Child> PythonModules::children(binding::Module module) {
  std::vector<Child> children;
  for_each_item(module, "_modules",
                [&](const char* name, PyObject* child) { children.push_back({name, child}); });
  return children;
}

std::vector<PythonModules::OwnTensor> PythonModules::tensors(binding::Module module) {
  std::vector<OwnTensor> tensors;
  PyObject* table = own_value(module, "_parameters");
  if (table != nullptr && PyDict_Check(table)) {
    add_tensors(module, "_parameters", false, tensors);
    add_tensors(module, "_buffers", true, tensors);
  } else {
    add_named(module, "named_parameters", false, tensors);
    add_named(module, "named_buffers", true, tensors);
  }
  return tensors;
}

std::string PythonModules::kernel_size(binding::Module module) {
  PyObject* size = own_value(module, "kernel_size");
  if (size == nullptr) return {};
  const bool is_tuple = PyTuple_Check(size) != 0;
  const int count = is_tuple ? static_cast<int>(PyTuple_GET_SIZE(size))
                             : dimensions(class_name(as_object(module)));
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string each = size_text(is_tuple ? PyTuple_GET_ITEM(size, i) : size);
    if (each.empty()) return {};
    text += (i == 0 ? "" : " × ") + each;
  }
  return text;
}

std::shared_ptr<const void> PythonModules::remember(binding::Module module) {
  PyObject* reference = PyWeakref_NewRef(as_object(module), nullptr);
  if (reference == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  return {reference, [](PyObject* object) {
            if (Py_IsInitialized() == 0) return;
            const PyGILState_STATE gil = PyGILState_Ensure();
            Py_DECREF(object);
            PyGILState_Release(gil);
          }};
}

bool PythonModules::is_same(binding::Module module, const void* remembered) {
  if (remembered == nullptr) return false;
  auto* reference = const_cast<PyObject*>(static_cast<const PyObject*>(remembered));
  return PyWeakref_GET_OBJECT(reference) == as_object(module);
}

bool PythonModules::is_replicating(binding::Module module) {
  return class_name(as_object(module)) == "DataParallel";
}

bool PythonModules::is_replica(binding::Module module) {
  PyObject* flag = own_value(module, "_is_replica");
  return flag == Py_True;
}

// A replica's __dict__ is a copy of its original's, with the same tables of hooks.
bool PythonModules::is_replica_of(binding::Module replica, binding::Module module) {
  PyObject* hooks = own_value(replica, "_forward_hooks");
  return hooks != nullptr && hooks == own_value(module, "_forward_hooks");
}

bool PythonModules::is_generated(binding::Module module) {
  return class_name(as_object(module)).starts_with("GraphModule");
}

bool PythonModules::is_folded(binding::Module module, const Child& child) {
  if (!fold_wrappers_) return false;
  const std::string type = class_name(as_object(module));
  for (const Wrapper& wrapper : kWrappers) {
    if (type == wrapper.type && child.name == wrapper.child) return true;
  }
  return false;
}

std::optional<std::string> PythonModules::name_model(binding::Module module) {
  if (name_model_ == Py_None) return std::nullopt;
  PyObject* name = PyObject_CallOneArg(name_model_, as_object(module));
  std::optional<std::string> result;
  if (name != nullptr && PyUnicode_Check(name)) {
    if (const char* text = PyUnicode_AsUTF8(name)) result = text;
  }
  // A name that cannot be told is no name; but Ctrl-C is for the program.
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0)
    PyErr_SetInterrupt();
  PyErr_Clear();
  Py_XDECREF(name);
  return result;
}

std::vector<std::string> PythonModules::notes() {
  std::vector<std::string> notes;
  const std::lock_guard lock(compiled_mutex_);
  notes.reserve(compiled_.size());
  for (const std::string& type : compiled_) {
    notes.push_back(type +
                    " runs as torch.compile has compiled it: its time is its own, and is not "
                    "divided among the layers inside");
  }
  return notes;
}

}  // namespace layertrace::python
