// layertrace._core: sessions and profiles for Python. What is not needed on hot paths is written in
// Python, in ../layertrace.
#include <nanobind/make_iterator.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <layertrace/binding.h>
#include <layertrace/layertrace.h>

#include "gil.h"
#include "module_calls.h"
#include "python_modules.h"

namespace nb = nanobind;

NB_MAKE_OPAQUE(std::vector<layertrace::Layer>);
NB_MAKE_OPAQUE(std::vector<layertrace::Step>);
NB_MAKE_OPAQUE(std::vector<layertrace::Kernel>);

namespace layertrace::python {
namespace {

// As the exception layertrace.Error, with the three parts as attributes.
[[noreturn]] void raise(const Error& error) {
  const nb::object type = nb::module_::import_("layertrace._errors").attr("Error");
  const nb::object exception = type(error.tried, error.cause, error.remedy);
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

// The session's calls may wait for its writer or for the disk: other threads of Python go on
// meanwhile.
template <typename Function>
auto without_gil(const Function& function) {
  const nb::gil_scoped_release release;
  return function();
}

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
                                     bool require_gpu, const std::string& timing, bool nvtx) {
  binding::Models roots;
  for (const auto& [name, module] : models) roots.emplace_back(name, module.ptr());
  Options options{.output = output,
                  .schedule = schedule,
                  .ops = ops,
                  .timing = value_or_raise(parse_timing(timing)),
                  .nvtx = nvtx,
                  .require_gpu = require_gpu,
                  .program = program,
                  .memory_cap_bytes = memory_cap_bytes};
  // Looking at the models may run Python code, and so other threads, which may come here, too.
  static auto* const kStarting = new std::mutex;
  lock_without_gil(*kStarting);
  const std::lock_guard starting(*kStarting, std::adopt_lock);
  begin_module_calls();
  const auto modules = std::make_shared<PythonModules>(name_model.ptr(), fold_wrappers,
                                                       /*tells_reported=*/!ops);
  auto session = value_or_raise(binding::start(modules, roots, options));
  set_active_modules(modules);
  return std::make_unique<PythonSession>(std::move(session));
}

TreeOptions tree_options(std::optional<int> depth, const std::string& start,
                         const std::string& sort, bool fold,
                         const std::optional<std::vector<std::string>>& columns,
                         std::optional<int> width, bool color, bool ascii) {
  TreeOptions options{.depth = depth.value_or(-1),
                      .start = start,
                      .sort = value_or_raise(parse_sort_key(sort)),
                      .fold = fold,
                      .width = width.value_or(0),
                      .color = color,
                      .ascii = ascii};
  for (const std::string& name : columns.value_or(std::vector<std::string>{}))
    options.columns.push_back(value_or_raise(parse_column(name)));
  return options;
}

nb::dict phase_dict(const std::array<PhaseStats, kPhaseCount>& phases) {
  nb::dict dict;
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    dict[std::string(phase_name(static_cast<Phase>(i))).c_str()] = phases[i];
  return dict;
}

nb::dict phase_ns_dict(const std::array<std::uint64_t, kPhaseCount>& phases) {
  nb::dict dict;
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    dict[std::string(phase_name(static_cast<Phase>(i))).c_str()] = phases[i];
  return dict;
}

// A sequence that only reads: a result does not change.
template <typename T>
void bind_sequence(nb::module_& m, const char* name) {
  using List = std::vector<T>;
  auto type =
      nb::class_<List>(m, name)
          .def("__len__", [](const List& list) { return list.size(); })
          .def(
              "__getitem__",
              [](const List& list, Py_ssize_t i) -> const T& {
                const auto size = static_cast<Py_ssize_t>(list.size());
                if (i < 0) i += size;
                if (i < 0 || i >= size) throw nb::index_error();
                return list[static_cast<std::size_t>(i)];
              },
              nb::rv_policy::reference_internal)
          .def("__getitem__",
               [](const nb::object& self, const nb::slice& slice) {
                 const auto [start, stop, step, count] = slice.compute(nb::len(self));
                 nb::list part;
                 for (std::size_t i = 0; i < count; ++i)
                   part.append(self[start + static_cast<Py_ssize_t>(i) * step]);
                 return part;
               })
          .def(
              "__iter__",
              [](const List& list) {
                return nb::make_iterator(nb::type<List>(), "Iterator", list.begin(), list.end());
              },
              nb::keep_alive<0, 1>())
          .def("__repr__", [](const nb::object& self) { return nb::repr(nb::list(self)); });
  nb::module_::import_("collections.abc").attr("Sequence").attr("register")(type);
}

// What `repr()` gives: the class and the attributes that tell one from another.
template <typename... Attributes>
auto repr_of(Attributes... names) {
  return [names...](const nb::object& self) {
    auto text = nb::cast<std::string>(self.type().attr("__name__"));
    const char* separator = "(";
    const auto add = [&](const char* name) {
      text += std::exchange(separator, ", ");
      text += name;
      text += "=";
      text += nb::repr(self.attr(name)).c_str();
    };
    (add(names), ...);
    return text + ")";
  };
}

// Where a layer is given as an index, None stands for none.
std::optional<int> index_or_none(int layer) {
  return layer < 0 ? std::nullopt : std::optional(layer);
}

KernelOptions kernel_options(const std::string& module, const std::string& sort,
                             std::optional<int> limit, std::optional<int> width, bool color,
                             bool ascii) {
  return {.module = module,
          .sort = value_or_raise(parse_kernel_sort(sort)),
          .limit = limit.value_or(0),
          .width = width.value_or(0),
          .color = color,
          .ascii = ascii};
}

// What a GPU did.
void bind_device(nb::module_& m) {
  nb::class_<DeviceStep>(m, "DeviceStep")
      .def("__repr__", repr_of("device", "busy_ns", "idle_ns", "exposed_copy_ns"))
      .def_ro("device", &DeviceStep::device)
      .def_ro("busy_ns", &DeviceStep::busy_ns)
      .def_ro("idle_ns", &DeviceStep::idle_ns)
      .def_ro("exposed_copy_ns", &DeviceStep::exposed_copy_ns);
  nb::class_<Idle>(m, "Idle")
      .def("__repr__", repr_of("layer", "phase", "cause", "ns", "gaps"))
      .def_prop_ro("layer", [](const Idle& idle) { return index_or_none(idle.layer); })
      .def_prop_ro("phase", [](const Idle& idle) { return phase_name(idle.phase); })
      .def_prop_ro("cause", [](const Idle& idle) { return idle_cause_name(idle.cause); })
      .def_ro("ns", &Idle::ns)
      .def_ro("gaps", &Idle::gaps);
  nb::class_<Kernel> kernel(m, "Kernel");
  nb::class_<Kernel::Use>(kernel, "Use")
      .def("__repr__", repr_of("layer", "phase", "count", "ns"))
      .def_prop_ro("layer", [](const Kernel::Use& use) { return index_or_none(use.layer); })
      .def_prop_ro("phase", [](const Kernel::Use& use) { return phase_name(use.phase); })
      .def_ro("count", &Kernel::Use::count)
      .def_ro("ns", &Kernel::Use::ns);
  kernel.def("__repr__", repr_of("short_name", "kind", "count", "ns"))
      .def_ro("name", &Kernel::name)
      .def_ro("short_name", &Kernel::short_name)
      .def_ro("kind", &Kernel::kind)
      .def_ro("count", &Kernel::count)
      .def_ro("ns", &Kernel::ns)
      .def_ro("min_ns", &Kernel::min_ns)
      .def_ro("max_ns", &Kernel::max_ns)
      .def_ro("bytes", &Kernel::bytes)
      .def_prop_ro("grid",
                   [](const Kernel& k) { return nb::make_tuple(k.grid[0], k.grid[1], k.grid[2]); })
      .def_prop_ro(
          "block",
          [](const Kernel& k) { return nb::make_tuple(k.block[0], k.block[1], k.block[2]); })
      .def_ro("registers", &Kernel::registers)
      .def_ro("shared_bytes", &Kernel::shared_bytes)
      .def_ro("occupancy", &Kernel::occupancy)
      .def_ro("uses", &Kernel::uses);
  bind_sequence<Kernel>(m, "Kernels");
}

void bind_profile(nb::module_& m) {
  nb::class_<Stat>(m, "Stat")
      .def("__repr__", repr_of("mean", "min", "max", "median", "stdev"))
      .def_ro("mean", &Stat::mean)
      .def_ro("min", &Stat::min)
      .def_ro("max", &Stat::max)
      .def_ro("median", &Stat::median)
      .def_ro("stdev", &Stat::stdev);
  nb::class_<PhaseStats>(m, "PhaseStats")
      .def("__repr__", repr_of("calls", "host_ns", "self_host_ns", "activities", "activity_ns",
                               "self_activity_ns", "busy_ns", "launches", "event_ns", "idle_ns"))
      .def_ro("calls", &PhaseStats::calls)
      .def_ro("host_ns", &PhaseStats::host_ns)
      .def_ro("self_host_ns", &PhaseStats::self_host_ns)
      .def_ro("activities", &PhaseStats::activities)
      .def_ro("activity_ns", &PhaseStats::activity_ns)
      .def_ro("self_activity_ns", &PhaseStats::self_activity_ns)
      .def_ro("busy_ns", &PhaseStats::busy_ns)
      .def_ro("launches", &PhaseStats::launches)
      .def_ro("event_ns", &PhaseStats::event_ns)
      .def_ro("idle_ns", &PhaseStats::idle_ns)
      .def_prop_ro("empty", &PhaseStats::empty);
  nb::class_<Layer>(m, "Layer")
      .def("__repr__", repr_of("path", "type", "calls"))
      .def_ro("path", &Layer::path)
      .def_ro("name", &Layer::name)
      .def_ro("type", &Layer::type)
      .def_prop_ro("parent", [](const Layer& layer) { return index_or_none(layer.parent); })
      .def_ro("children", &Layer::children)
      .def_ro("calls", &Layer::calls)
      .def_ro("ran", &Layer::ran)
      .def_ro("registered", &Layer::registered)
      .def_ro("shared_with", &Layer::shared_with)
      .def_prop_ro("phases", [](const Layer& layer) { return phase_dict(layer.phases); })
      .def_prop_ro("forward", [](const Layer& layer) { return layer.phase(Phase::kForward); })
      .def_prop_ro("backward", [](const Layer& layer) { return layer.phase(Phase::kBackward); })
      .def_prop_ro("recompute", [](const Layer& layer) { return layer.phase(Phase::kRecompute); });
  nb::class_<Step>(m, "Step")
      .def("__repr__", repr_of("index", "wall_ns"))
      .def_ro("index", &Step::index)
      .def_ro("start_ns", &Step::start_ns)
      .def_ro("wall_ns", &Step::wall_ns)
      .def_prop_ro("phase_ns", [](const Step& step) { return phase_ns_dict(step.phase_ns); })
      .def_ro("devices", &Step::devices);
  nb::class_<Unattributed> unattributed(m, "Unattributed");
  nb::class_<Unattributed::Name>(unattributed, "Name")
      .def("__repr__", repr_of("name", "count"))
      .def_ro("name", &Unattributed::Name::name)
      .def_ro("count", &Unattributed::Name::count);
  unattributed.def("__repr__", repr_of("cause", "count", "ns", "names"))
      .def_ro("cause", &Unattributed::cause)
      .def_ro("count", &Unattributed::count)
      .def_ro("ns", &Unattributed::ns)
      .def_ro("names", &Unattributed::names);
  nb::class_<GpuHealth>(m, "GpuHealth")
      .def("__repr__", repr_of("source", "records", "dropped"))
      .def_ro("source", &GpuHealth::source)
      .def_ro("timing", &GpuHealth::timing)
      .def_ro("cupti_version", &GpuHealth::cupti_version)
      .def_ro("records", &GpuHealth::records)
      .def_ro("dropped", &GpuHealth::dropped)
      .def_ro("buffers_lost", &GpuHealth::buffers_lost)
      .def_ro("no_buffer", &GpuHealth::no_buffer)
      .def_ro("unknown", &GpuHealth::unknown)
      .def_ro("untimed", &GpuHealth::untimed)
      .def_ro("reversed", &GpuHealth::reversed)
      .def_ro("outside_steps", &GpuHealth::outside_steps)
      .def_ro("event_pairs", &GpuHealth::event_pairs)
      .def_ro("events_missed", &GpuHealth::events_missed)
      .def_ro("events_capturing", &GpuHealth::events_capturing)
      .def_ro("early", &GpuHealth::early)
      .def_ro("earlier_graphs", &GpuHealth::earlier_graphs);
  nb::class_<Health>(m, "Health")
      .def("__repr__", repr_of("attributed_share", "activities", "nodes", "dropped", "cut"))
      .def_ro("attributed_share", &Health::attributed_share)
      .def_ro("activities", &Health::activities)
      .def_ro("activity_ns", &Health::activity_ns)
      .def_ro("unattributed", &Health::unattributed)
      .def_ro("inferred", &Health::inferred)
      .def_ro("inferred_ns", &Health::inferred_ns)
      .def_ro("nodes", &Health::nodes)
      .def_ro("unattributed_nodes", &Health::unattributed_nodes)
      .def_ro("emitted", &Health::emitted)
      .def_ro("recorded", &Health::recorded)
      .def_ro("dropped", &Health::dropped)
      .def_ro("cut_scopes", &Health::cut_scopes)
      .def_ro("thrown_scopes", &Health::thrown_scopes)
      .def_ro("cut", &Health::cut)
      .def_ro("scope_cost_ns", &Health::scope_cost_ns)
      .def_ro("op_cost_ns", &Health::op_cost_ns)
      .def_ro("writer_cpu_ns", &Health::writer_cpu_ns)
      .def_ro("tracing_share", &Health::tracing_share)
      .def_ro("gpu", &Health::gpu)
      .def_ro("notes", &Health::notes);
  nb::class_<RunInfo>(m, "RunInfo")
      .def("__repr__", repr_of("program", "created", "host", "torch_version", "simulated"))
      .def_ro("layertrace_version", &RunInfo::layertrace_version)
      .def_ro("format_version", &RunInfo::format_version)
      .def_ro("torch_version", &RunInfo::torch_version)
      .def_ro("host", &RunInfo::host)
      .def_ro("os", &RunInfo::os)
      .def_ro("cpu", &RunInfo::cpu)
      .def_ro("cpu_count", &RunInfo::cpu_count)
      .def_ro("memory_bytes", &RunInfo::memory_bytes)
      .def_ro("pid", &RunInfo::pid)
      .def_ro("program", &RunInfo::program)
      .def_ro("clock", &RunInfo::clock)
      .def_ro("created", &RunInfo::created)
      .def_ro("ops", &RunInfo::ops)
      .def_ro("device", &RunInfo::device)
      .def_ro("simulated", &RunInfo::simulated);
  bind_sequence<Layer>(m, "Layers");
  bind_sequence<Step>(m, "Steps");

  nb::class_<Profile>(m, "Profile")
      .def_ro("layers", &Profile::layers)
      .def_ro("steps", &Profile::steps)
      .def_ro("step_count", &Profile::step_count)
      .def_ro("step_ns", &Profile::step_ns)
      .def_ro("steps_marked", &Profile::steps_marked)
      .def_prop_ro("outside", [](const Profile& profile) { return phase_dict(profile.outside); })
      .def_ro("kernels", &Profile::kernels)
      .def_ro("idle", &Profile::idle)
      .def_ro("health", &Profile::health)
      .def_ro("run", &Profile::run)
      .def("find", &Profile::find, nb::arg("path"), nb::rv_policy::reference_internal)
      .def("to_json", [](const Profile& profile) { return layers_json(profile); })
      .def("to_dict",
           [](const Profile& profile) {
             return nb::module_::import_("json").attr("loads")(layers_json(profile));
           })
      .def(
          "tree",
          [](const Profile& profile, std::optional<int> depth, const std::string& start,
             const std::string& sort, bool fold,
             const std::optional<std::vector<std::string>>& columns, std::optional<int> width,
             bool color, bool ascii) {
            return tree(profile,
                        tree_options(depth, start, sort, fold, columns, width, color, ascii));
          },
          nb::kw_only(), nb::arg("depth") = nb::none(), nb::arg("start") = "",
          nb::arg("sort") = "definition", nb::arg("fold") = true, nb::arg("columns") = nb::none(),
          nb::arg("width") = nb::none(), nb::arg("color") = false, nb::arg("ascii") = false)
      .def(
          "kernels_table",
          [](const Profile& profile, const std::string& module, const std::string& sort,
             std::optional<int> limit, std::optional<int> width, bool color, bool ascii) {
            return kernels_table(profile, kernel_options(module, sort, limit, width, color, ascii));
          },
          nb::kw_only(), nb::arg("module") = "", nb::arg("sort") = "time",
          nb::arg("limit") = nb::none(), nb::arg("width") = nb::none(), nb::arg("color") = false,
          nb::arg("ascii") = false)
      .def("__str__", [](const Profile& profile) { return tree(profile); })
      .def("__repr__",
           [](const Profile& profile) {
             const std::string model = profile.layers.empty() ? "no model" : profile.layers[0].name;
             return "<layertrace.Profile of " + model + ": " +
                    std::to_string(profile.layers.size()) + " layers, " +
                    std::to_string(profile.step_count) +
                    (profile.step_count == 1 ? " step" : " steps") +
                    (profile.steps_marked ? ">" : ", which nobody marked>");
           })
      .def("_repr_html_", [](const Profile& profile) { return tree_html(profile); });
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a module that is still called while Python ends is no leak
  if (!prepare_module_calls()) throw nb::python_error();
  bind_device(m);
  bind_profile(m);

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
      .def("save", &PythonSession::save, nb::arg("path"))
      .def_prop_ro("recording", &PythonSession::recording);

  m.def("start", &start, nb::arg("models"), nb::arg("output"), nb::arg("schedule"), nb::arg("ops"),
        nb::arg("memory_cap_bytes"), nb::arg("name_model").none(), nb::arg("fold_wrappers"),
        nb::arg("program"), nb::arg("require_gpu"), nb::arg("timing"), nb::arg("nvtx"));
  m.def("module_calls", [] { return nb::borrow(module_calls_descriptor()); });
  m.def("recording", &binding::recording);
  m.def("add_parameter", [](const nb::object& module, const nb::object& parameter) {
    if (void* tensor = tensor_address(parameter.ptr()))
      binding::add_parameter(module.ptr(), tensor);
  });
  m.def(
      "watch_calls",
      [](const nb::object& watcher) {
        watch_module_calls(watcher.is_none() ? nullptr : watcher.ptr());
      },
      nb::arg("watcher").none());
  m.def("terminal_tree", [](const Profile& profile, int file_descriptor) {
    return tree(profile, for_terminal(file_descriptor));
  });

  // A region: its place on the thread's stack, 0 where nothing is recorded.
  m.def("enter_region", [](std::string_view name) -> std::uint64_t {
    return binding::recording() ? detail::enter_region(name).place : 0;
  });
  m.def("enter_reported", [](std::string_view name) -> std::uint64_t {
    return binding::recording() ? binding::enter_reported(name).place : 0;
  });
  m.def("leave_region", [](std::uint64_t place, bool thrown) {
    if (place != 0) binding::leave({place, 0}, thrown);
  });

  m.def("load", [](const std::string& path) {
    return value_or_raise(without_gil([&] { return load(path); }));
  });
  m.attr("version") = kVersion;
  m.attr("format_version") = kFormatVersion;
  m.attr("torch_version") = LAYERTRACE_TORCH_VERSION;
}

}  // namespace layertrace::python
