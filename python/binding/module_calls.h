// How the calls of Python's modules are seen: `nn.Module.__call__` asks its class for
// `_compiled_call_impl` first, which is None unless someone has compiled the module. While a
// session is active, a descriptor stands there. It says what stood there before while nothing is
// recorded; else it gives a callable that enters the module's scope and goes on as PyTorch would
// have.
//
// No module is touched, no hook is registered (a hook would send each call down PyTorch's slow
// path), and every module of the process is reached.
#pragma once

#include <Python.h>

namespace layertrace::python {

// Readies the types; false with a Python error set. Call once, with the GIL.
bool prepare_module_calls();

// The descriptor: one for the process, borrowed.
PyObject* module_calls_descriptor();

// Calls `watcher(module, entering)` where an outermost module call begins and where it ends,
// recorded or not; nullptr for none.
void watch_module_calls(PyObject* watcher);

// Layers of earlier sessions are forgotten.
void begin_module_calls();

}  // namespace layertrace::python
