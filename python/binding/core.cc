// layertrace._core: sessions and profiles for Python. What is not needed on hot paths is written in
// Python, in ../layertrace.
#include <cstdint>
#include <string>
#include <string_view>

#include <layertrace/binding.h>

#include "bindings.h"
#include "call_shapes.h"
#include "module_calls.h"
#include "pictures.h"
#include "python_modules.h"
#include "tables.h"

namespace layertrace::python {

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("layertrace._errors").attr("Error");
  const nb::object exception = type(error.tried, error.cause, error.remedy);
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a module that is still called while Python ends is no leak
  if (!prepare_module_calls()) throw nb::python_error();
  bind_device(m);
  bind_amounts(m);
  bind_conventions(m);
  bind_formulas(m);
  bind_memory(m);
  bind_layers(m);
  bind_health(m);
  bind_profile(m);
  bind_pictures(m);
  bind_tables(m);
  bind_benchmark(m);
  bind_compare(m);
  bind_cards(m);
  bind_session(m);

  m.def("module_calls", [] { return nb::borrow(module_calls_descriptor()); });
  m.def("recording", &binding::recording);
  m.def("add_parameter",
        [](const nb::object& module, const std::string& name, const nb::object& parameter) {
          if (void* tensor = tensor_address(parameter.ptr()))
            binding::add_parameter(module.ptr(), {name, tensor});
        });
  m.def("tell_optimizer", [](const nb::object& optimizer, std::uint64_t state_bytes) {
    binding::tell_optimizer(optimizer.ptr(), state_bytes);
  });
  m.def("forget_optimizer", [](std::uintptr_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is there any more, by its id it is known
    binding::tell_optimizer(reinterpret_cast<const void*>(address), 0);
  });
  m.def("register_shapes", [](const nb::object& type, const nb::object& function) {
    register_shapes(type.ptr(), function.ptr());
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
  m.def("import_trace", [](const std::string& path, const std::string& output) {
    return value_or_raise(without_gil([&] { return import_trace(path, {.output = output}); }));
  });
  m.attr("version") = kVersion;
  m.attr("format_version") = kFormatVersion;
  m.attr("torch_version") = LAYERTRACE_TORCH_VERSION;
}

}  // namespace layertrace::python