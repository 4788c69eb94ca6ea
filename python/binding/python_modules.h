// Python's nn.Modules, for a session. All is called with the GIL held, but for notes() and the
// destructor.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <layertrace/binding.h>

namespace layertrace::python {

class PythonModules final : public binding::ModuleSource {
 public:
  // `name_model` is called with a module that was called outside any other and that nobody named;
  // it returns the module's name, or None to leave it unregistered. None: none is named.
  // `tells_reported`: Python's own record_function is stood in for.
  PythonModules(PyObject* name_model, bool fold_wrappers, bool tells_reported);
  ~PythonModules() override;

  std::string type_name(binding::Module module) override;
  std::vector<Child> children(binding::Module module) override;
  std::vector<OwnTensor> tensors(binding::Module module) override;
  std::string kernel_size(binding::Module module) override;
  std::shared_ptr<const void> remember(binding::Module module) override;
  bool is_same(binding::Module module, const void* remembered) override;
  bool is_replicating(binding::Module module) override;
  bool is_replica(binding::Module module) override;
  bool is_replica_of(binding::Module replica, binding::Module module) override;
  bool is_generated(binding::Module module) override;
  bool is_folded(binding::Module module, const Child& child) override;
  std::optional<std::string> name_model(binding::Module module) override;
  bool tells_reported() override { return tells_reported_; }
  std::vector<std::string> notes() override;
  void wait_for(std::mutex& mutex) override;

  // torch.compile has taken over a module of this type.
  void add_compiled(const std::string& type);

 private:
  PyObject* const name_model_;
  const bool fold_wrappers_;
  const bool tells_reported_;
  std::mutex compiled_mutex_;  // the session's end may be on any thread
  std::set<std::string> compiled_;
};

// Those of the session that is active now.
void set_active_modules(const std::shared_ptr<PythonModules>& modules);

// torch.compile has taken the module over; for the notes of the session.
void note_compiled(PyObject* module);

}  // namespace layertrace::python
