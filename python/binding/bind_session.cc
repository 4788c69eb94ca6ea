#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/binding.h>

#include "bindings.h"
#include "call_shapes.h"
#include "gil.h"
#include "module_calls.h"
#include "python_modules.h"

namespace layertrace::python {
namespace {

class PythonSession {
 public:
  explicit PythonSession(Session session)
      : session_(std::make_unique<Session>(std::move(session))) {}
  // Stops the recording if nobody has, which waits for the writer.
  ~PythonSession() {
    const nb::gil_scoped_release release;
    session_.reset();
  }
  PythonSession(PythonSession&&) = delete;
  PythonSession(const PythonSession&) = delete;
  PythonSession& operator=(PythonSession&&) = delete;
  PythonSession& operator=(const PythonSession&) = delete;

  void step() {
    without_gil([&] { session_->step(); });
  }
  Profile stop() {
    return value_or_raise(without_gil([&] { return session_->stop(); }));
  }
  Profile profile() const {
    return value_or_raise(without_gil([&] { return session_->profile(); }));
  }
  void add_metric(const MetricInfo& info, double value) {
    const auto added = without_gil([&] { return session_->add_metric({info, value}); });
    if (!added) raise(added.error());
  }
  void save(const std::string& path) const {
    const auto saved = without_gil([&] { return session_->save(path); });
    if (!saved) raise(saved.error());
  }
  bool recording() const {
    return without_gil([&] { return session_->recording(); });
  }

 private:
  std::unique_ptr<Session> session_;
};

std::unique_ptr<PythonSession> start(const std::vector<std::pair<std::string, nb::object>>& models,
                                     const std::string& output, const Schedule& schedule, bool ops,
                                     std::size_t memory_cap_bytes, const nb::object& name_model,
                                     bool fold_wrappers, const std::string& program,
                                     bool require_gpu, const std::string& timing, bool nvtx,
                                     const std::string& count, const std::string& device_peaks,
                                     bool summary, const std::string& run_name, bool meta) {
  binding::Models roots;
  for (const auto& [name, module] : models) roots.emplace_back(name, module.ptr());
  Options options{.output = output,
                  .schedule = schedule,
                  .ops = ops,
                  .count = value_or_raise(parse_counting(count)),
                  .summary = summary,
                  .meta = meta,
                  .device_peaks = device_peaks,
                  .timing = value_or_raise(parse_timing(timing)),
                  .nvtx = nvtx,
                  .require_gpu = require_gpu,
                  .name = run_name,
                  .program = program,
                  .python_version = python_version(),
                  .memory_cap_bytes = memory_cap_bytes};
  // Looking at the models may run Python code, and so other threads, which may come here, too.
  static auto* const kStarting = new std::mutex;
  lock_without_gil(*kStarting);
  const std::lock_guard starting(*kStarting, std::adopt_lock);
  begin_module_calls();
  if (!prepare_shapes()) throw nb::python_error();
  const auto modules = std::make_shared<PythonModules>(name_model.ptr(), fold_wrappers,
                                                       /*tells_reported=*/!ops);
  auto session = value_or_raise(binding::start(modules, roots, options));
  set_active_modules(modules);
  return std::make_unique<PythonSession>(std::move(session));
}

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<Schedule>(m, "Schedule")
      .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>(),
           nb::arg("skip") = 0, nb::arg("warmup") = 0, nb::arg("record") = 0, nb::arg("repeat") = 1)
      .def("__repr__", repr_of("skip", "warmup", "record", "repeat"))
      .def_ro("skip", &Schedule::skip)
      .def_ro("warmup", &Schedule::warmup)
      .def_ro("record", &Schedule::record)
      .def_ro("repeat", &Schedule::repeat);

  nb::class_<PythonSession>(m, "Session")
      .def("step", &PythonSession::step)
      .def("stop", &PythonSession::stop)
      .def("profile", &PythonSession::profile)
      .def("add_metric", &PythonSession::add_metric)
      .def("save", &PythonSession::save, nb::arg("path"))
      .def_prop_ro("recording", &PythonSession::recording);

  m.def("start", &start, nb::arg("models"), nb::arg("output"), nb::arg("schedule"), nb::arg("ops"),
        nb::arg("memory_cap_bytes"), nb::arg("name_model").none(), nb::arg("fold_wrappers"),
        nb::arg("program"), nb::arg("require_gpu"), nb::arg("timing"), nb::arg("nvtx"),
        nb::arg("count"), nb::arg("device_peaks"), nb::arg("summary"), nb::arg("name") = "",
        nb::arg("meta") = false);
}

}  // namespace layertrace::python
