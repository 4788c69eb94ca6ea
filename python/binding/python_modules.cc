#include "python_modules.h"

#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace layertrace::python {
namespace {

PyObject* as_object(binding::Module module) {
  return const_cast<PyObject*>(static_cast<const PyObject*>(module));
}

// A value of the module's own __dict__, borrowed; nullptr if there is none. Goes past __getattr__:
// nothing of the user's runs.
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

// The values of one of the module's tables. A ScriptModule's are no dicts: it is opaque.
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

}  // namespace

void* tensor_address(PyObject* tensor) {
  PyObject* address = PyObject_GetAttrString(tensor, "_cdata");
  void* result = address != nullptr ? PyLong_AsVoidPtr(address) : nullptr;
  Py_XDECREF(address);
  if (result == nullptr) PyErr_Clear();
  return result;
}

namespace {

bool is_compiled(binding::Module module) {
  PyObject* own = own_value(module, "_compiled_call_impl");
  return (own != nullptr && own != Py_None) || class_name(as_object(module)) == "OptimizedModule";
}

// Types of modules that torch.compile has taken over in this session. Its end may be on any thread.
struct CompiledTypes {
  std::mutex mutex;
  std::set<std::string> names;
};
CompiledTypes& compiled_types() {
  static auto* types = new CompiledTypes;
  return *types;
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
  CompiledTypes& types = compiled_types();
  const std::lock_guard lock(types.mutex);
  types.names.insert(class_name(module));
}

PythonModules::PythonModules(PyObject* name_model, bool fold_wrappers)
    : name_model_(Py_NewRef(name_model)), fold_wrappers_(fold_wrappers) {
  const std::lock_guard lock(compiled_types().mutex);
  compiled_types().names.clear();
}

// May be the last thing a process does: then Python is gone, and nobody needs the reference back.
PythonModules::~PythonModules() {
  if (Py_IsInitialized() == 0) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(name_model_);
  PyGILState_Release(gil);
}

std::string PythonModules::type_name(binding::Module module) {
  std::string name = class_name(as_object(module));
  if (is_compiled(module)) note_compiled(as_object(module));
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

std::vector<void*> PythonModules::parameters(binding::Module module) {
  std::vector<void*> tensors;
  const auto add = [&](PyObject* parameter) {
    if (void* tensor = tensor_address(parameter)) tensors.push_back(tensor);
  };
  PyObject* table = own_value(module, "_parameters");
  if (table != nullptr && PyDict_Check(table)) {
    for_each_item(module, "_parameters",
                  [&](const char* /*name*/, PyObject* parameter) { add(parameter); });
    return tensors;
  }
  // A ScriptModule: opaque, and so all that is below it is its own.
  PyObject* all = PyObject_CallMethod(as_object(module), "parameters", nullptr);
  PyObject* iterator = all != nullptr ? PyObject_GetIter(all) : nullptr;
  while (PyObject* parameter = iterator != nullptr ? PyIter_Next(iterator) : nullptr) {
    add(parameter);
    Py_DECREF(parameter);
  }
  Py_XDECREF(iterator);
  Py_XDECREF(all);
  PyErr_Clear();
  return tensors;
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
  PyErr_Clear();  // a name that cannot be told is no name
  Py_XDECREF(name);
  return result;
}

std::vector<std::string> PythonModules::notes() {
  std::vector<std::string> notes;
  CompiledTypes& types = compiled_types();
  const std::lock_guard lock(types.mutex);
  notes.reserve(types.names.size());
  for (const std::string& type : types.names) {
    notes.push_back(type +
                    " runs as torch.compile has compiled it: its time is its own, and is not "
                    "divided among the layers inside");
  }
  return notes;
}

}  // namespace layertrace::python
