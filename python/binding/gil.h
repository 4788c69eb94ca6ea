// Waiting, without keeping Python's other threads from running.
#pragma once

#include <Python.h>

#include <mutex>

namespace layertrace::python {

inline void lock_without_gil(std::mutex& mutex) {
  if (mutex.try_lock()) return;
  if (PyGILState_Check() == 0) return mutex.lock();
  PyThreadState* thread = PyEval_SaveThread();
  mutex.lock();
  PyEval_RestoreThread(thread);
}

}  // namespace layertrace::python
