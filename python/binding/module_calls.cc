#include "module_calls.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <layertrace/binding.h>

#include "call_shapes.h"
#include "formulas.h"
#include "python_modules.h"

namespace layertrace::python {
namespace {

// Which layer a module was found to be, seen from a caller. Direct-mapped; guarded by the GIL. Two
// in a line of the cache: a call finds its entry where nothing has been for a whole step.
struct alignas(32) CacheEntry {
  PyObject* module = nullptr;
  PyObject* reference = nullptr;  // weak: tells whether the module at the address is still the same
  std::uint32_t session = 0;
  std::uint32_t caller = 0;
  std::uint32_t layer = 0;
  bool folded = false;
};
static_assert(sizeof(CacheEntry) == 32);
constexpr std::size_t kCacheSize = 4096;
std::array<CacheEntry, kCacheSize> cache;
std::uint32_t session = 0;

CacheEntry& cache_entry(PyObject* module, std::uint32_t caller) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  const std::uint64_t key = reinterpret_cast<std::uintptr_t>(module) + caller;
  return cache[(key * kMix) >> 52];
}

binding::Found find_slow(PyObject* module, std::uint32_t caller) {
  binding::Found found = binding::find(module);  // may run Python code, and so other threads
  // Called by another than what it is folded into (a checkpoint's recomputation): it is the layer.
  found.folded = found.folded && caller == found.layer;
  if (found.for_now) return found;
  PyObject* reference = PyWeakref_NewRef(module, nullptr);
  if (reference == nullptr) {
    PyErr_Clear();
    return found;
  }
  CacheEntry& entry = cache_entry(module, caller);
  PyObject* old = std::exchange(entry.reference, reference);
  entry.module = module;
  entry.session = session;
  entry.caller = caller;
  entry.layer = found.layer;
  entry.folded = found.folded;
  Py_XDECREF(old);
  return found;
}

binding::Found find(PyObject* module, std::uint32_t caller) {
  const CacheEntry& entry = cache_entry(module, caller);
  if (entry.module == module && entry.caller == caller && entry.session == session &&
      PyWeakref_GET_OBJECT(entry.reference) == module) [[likely]] {
    return {entry.layer, entry.folded};
  }
  return find_slow(module, caller);
}

// ---- the callable that stands for one call of one module ----

struct BoundCall {
  PyObject_HEAD PyObject* module;
  PyObject* compiled;  // what the module's own compile() has put there; nullptr without
  PyObject* plain;  // while spare: the module that it was last for, if that had nothing of its own
};

constexpr std::size_t kSpareCalls = 64;
std::array<BoundCall*, kSpareCalls> spare_calls;
std::size_t spare_call_count = 0;
PyObject* call_impl_name = nullptr;
PyObject* attribute_name = nullptr;

void forget_plain() {
  for (std::size_t i = 0; i < spare_call_count; ++i) spare_calls[i]->plain = nullptr;
}

void call_dealloc(PyObject* self) {
  auto* bound = reinterpret_cast<BoundCall*>(self);
  bound->plain = bound->compiled == nullptr ? bound->module : nullptr;
  Py_CLEAR(bound->module);
  Py_CLEAR(bound->compiled);
  if (spare_call_count < kSpareCalls) {
    spare_calls[spare_call_count++] = bound;
  } else {
    PyObject_Free(bound);
  }
}

// `module._call_impl(*args, **kwargs)`.
PyObject* call_impl(PyObject* module, PyObject* args, PyObject* kwargs) {
  constexpr Py_ssize_t kFew = 14;
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count <= kFew && (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0)) [[likely]] {
    std::array<PyObject*, kFew + 2> stack;
    stack[1] = module;
    for (Py_ssize_t i = 0; i < count; ++i)
      stack[static_cast<std::size_t>(i) + 2] = PyTuple_GET_ITEM(args, i);
    return PyObject_VectorcallMethod(
        call_impl_name, stack.data() + 1,
        static_cast<std::size_t>(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  }
  PyObject* method = PyObject_GetAttr(module, call_impl_name);
  if (method == nullptr) return nullptr;
  PyObject* result = PyObject_Call(method, args, kwargs);
  Py_DECREF(method);
  return result;
}

// As `nn.Module.__call__` would have gone on.
PyObject* go_on(const BoundCall& bound, PyObject* args, PyObject* kwargs) {
  if (bound.compiled != nullptr) {
    note_compiled(bound.module);
    return PyObject_Call(bound.compiled, args, kwargs);
  }
  return call_impl(bound.module, args, kwargs);
}

// ---- watching ----

PyObject* watcher = nullptr;
thread_local int watched_depth = 0;

// What a watcher raises is its own affair, but for what is meant for the program: KeyboardInterrupt
// and its like. Then false, unless the program has raised something already.
bool tell_watcher(PyObject* module, bool entering) {
  PyObject* function = Py_XNewRef(watcher);
  if (function == nullptr) return true;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result =
      PyObject_CallFunctionObjArgs(function, module, entering ? Py_True : Py_False, nullptr);
  const bool is_programs =
      result == nullptr && type == nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0;
  if (result == nullptr && !is_programs) PyErr_WriteUnraisable(function);
  Py_XDECREF(result);
  Py_DECREF(function);
  if (is_programs) return false;
  PyErr_Restore(type, value, traceback);
  return true;
}

PyObject* call_in_scope(const BoundCall& bound, PyObject* args, PyObject* kwargs);

PyObject* call_watched(const BoundCall& bound, PyObject* args, PyObject* kwargs) {
  if (watched_depth == 0 && !tell_watcher(bound.module, true)) return nullptr;
  ++watched_depth;
  PyObject* result = call_in_scope(bound, args, kwargs);
  if (--watched_depth == 0 && !tell_watcher(bound.module, false)) Py_CLEAR(result);
  return result;
}

// ---- calling ----

PyObject* call_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const auto& bound = *reinterpret_cast<BoundCall*>(self);
  if (watcher != nullptr) [[unlikely]]
    return call_watched(bound, args, kwargs);
  return call_in_scope(bound, args, kwargs);
}

// The same, and says what goes in and what comes out.
// What a formula of the user's says of the call takes the place of what is counted inside.
PyObject* go_on_by_formula(PyObject* formula, const BoundCall& bound, PyObject* args,
                           PyObject* kwargs) {
  if (!binding::begin_replacing()) return go_on(bound, args, kwargs);
  PyObject* result = go_on(bound, args, kwargs);
  if (result == nullptr) {
    binding::end_replacing();
    return nullptr;
  }
  const auto flops = call_module_formula(formula, bound.module, args, result);
  binding::end_replacing(Py_TYPE(bound.module)->tp_name, flops);
  return result;
}

PyObject* go_on_told(const BoundCall& bound, PyObject* args, PyObject* kwargs) {
  binding::note_shapes(shapes_of_call(args, kwargs), /*is_output=*/false);
  PyObject* formula = module_formula(bound.module);
  PyObject* result = formula != nullptr ? go_on_by_formula(formula, bound, args, kwargs)
                                        : go_on(bound, args, kwargs);
  if (result != nullptr) binding::note_shapes(shapes_of(result), /*is_output=*/true);
  return result;
}

PyObject* call_in_scope(const BoundCall& bound, PyObject* args, PyObject* kwargs) {
  if (!binding::recording()) return go_on(bound, args, kwargs);
  const std::uint32_t caller = binding::current_layer();
  const binding::Found found = find(bound.module, caller);
  if (found.folded) return go_on(bound, args, kwargs);
  if (caller == binding::kNoLayer && binding::wants_calls())
    binding::meet_call(key_of_call(found.layer, bound.module, args, kwargs));
  const auto entry = binding::enter(found.layer, bound.module);
  if (entry.place == 0) return go_on(bound, args, kwargs);
  PyObject* result =
      binding::counting() ? go_on_told(bound, args, kwargs) : go_on(bound, args, kwargs);
  binding::leave(entry, result == nullptr);
  return result;
}

PyTypeObject call_type{};

// ---- the descriptor ----

// It must come before the modules' own values, so that the call of a module with one is seen, too;
// so it has to hand those out, and to take them.

PyObject** own_dict(PyObject* module) { return _PyObject_GetDictPtr(module); }

// What the module itself has under this name, borrowed; nullptr if there is nothing, or None.
PyObject* own_compiled(PyObject* module) {
  PyObject** dict = own_dict(module);
  if (dict == nullptr || *dict == nullptr) return nullptr;
  PyObject* value = PyDict_GetItemWithError(*dict, attribute_name);
  return value == Py_None ? nullptr : value;
}

PyObject* descriptor_get(PyObject* /*self*/, PyObject* module, PyObject* /*type*/) {
  if (module == nullptr) Py_RETURN_NONE;
  // nn.Module.__call__ asks twice, and then the answer is known.
  const bool is_plain = spare_call_count != 0 && spare_calls[spare_call_count - 1]->plain == module;
  if (!is_plain && binding::recording()) [[likely]]  // the call will want it, in a moment
    __builtin_prefetch(&cache_entry(module, binding::current_layer()));
  PyObject* compiled = is_plain ? nullptr : own_compiled(module);
  if (compiled == nullptr && !is_plain && PyErr_Occurred() != nullptr) return nullptr;
  if (!binding::recording() && watcher == nullptr)
    return Py_NewRef(compiled != nullptr ? compiled : Py_None);
  BoundCall* bound = nullptr;
  if (spare_call_count != 0) {
    bound = spare_calls[--spare_call_count];
    PyObject_Init(reinterpret_cast<PyObject*>(bound), &call_type);
  } else {
    bound = PyObject_New(BoundCall, &call_type);
    if (bound == nullptr) return nullptr;
  }
  bound->module = Py_NewRef(module);
  bound->compiled = Py_XNewRef(compiled);
  return reinterpret_cast<PyObject*>(bound);
}

int descriptor_set(PyObject* /*self*/, PyObject* module, PyObject* value) {
  forget_plain();
  PyObject* dict = PyObject_GenericGetDict(module, nullptr);
  if (dict == nullptr) return -1;
  const int result = value != nullptr ? PyDict_SetItem(dict, attribute_name, value)
                                      : PyDict_DelItem(dict, attribute_name);
  Py_DECREF(dict);
  if (result < 0 && value == nullptr && PyErr_ExceptionMatches(PyExc_KeyError) != 0)
    PyErr_SetObject(PyExc_AttributeError, attribute_name);
  return result;
}

PyTypeObject descriptor_type{};
PyObject* descriptor = nullptr;

}  // namespace

bool prepare_module_calls() {
  if (descriptor != nullptr) return true;
  call_type.tp_name = "layertrace._core.ModuleCall";
  call_type.tp_doc = "One call of a module, in its scope.";
  call_type.tp_basicsize = sizeof(BoundCall);
  call_type.tp_flags = Py_TPFLAGS_DEFAULT;
  call_type.tp_dealloc = &call_dealloc;
  call_type.tp_call = &call_call;
  descriptor_type.tp_name = "layertrace._core.ModuleCalls";
  descriptor_type.tp_doc = "Stands on nn.Module while a session is active.";
  descriptor_type.tp_basicsize = sizeof(PyObject);
  descriptor_type.tp_flags = Py_TPFLAGS_DEFAULT;
  descriptor_type.tp_descr_get = &descriptor_get;
  descriptor_type.tp_descr_set = &descriptor_set;
  if (PyType_Ready(&call_type) < 0 || PyType_Ready(&descriptor_type) < 0) return false;
  call_impl_name = PyUnicode_InternFromString("_call_impl");
  attribute_name = PyUnicode_InternFromString("_compiled_call_impl");
  descriptor = PyObject_New(PyObject, &descriptor_type);
  return call_impl_name != nullptr && attribute_name != nullptr && descriptor != nullptr;
}

PyObject* module_calls_descriptor() {
  forget_plain();  // while it was away, a module may have been compiled
  return descriptor;
}

void watch_module_calls(PyObject* function) {
  PyObject* before = std::exchange(watcher, Py_XNewRef(function));
  Py_XDECREF(before);
}

void begin_module_calls() { ++session; }

}  // namespace layertrace::python
