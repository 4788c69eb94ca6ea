#include "pictures.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <string>
#include <vector>

#include <layertrace/report.h>

#include "bindings.h"

namespace layertrace::python {
namespace {

// A method of Profile that is written in Python, in layertrace/_pictures.py.
void add_method(const nb::object& type, const char* name) {
  type.attr(name) = nb::cpp_function(
      [name](const nb::handle& self, const nb::args& args, const nb::kwargs& kwargs) {
        return nb::module_::import_("layertrace._pictures").attr(name)(self, *args, **kwargs);
      },
      nb::name(name), nb::scope(type), nb::is_method());
}

}  // namespace

void bind_pictures(nb::module_& m) {
  nb::class_<MemoryPoint>(m, "MemoryPoint")
      .def("__repr__",
           [](const MemoryPoint& point) {
             return "<layertrace.MemoryPoint ns=" + std::to_string(point.ns) +
                    ", bytes=" + std::to_string(point.bytes) + ">";
           })
      .def_ro("ns", &MemoryPoint::ns)
      .def_ro("bytes", &MemoryPoint::bytes)
      .def_prop_ro("layer",
                   [](const MemoryPoint& point) {
                     return point.layer < 0 ? std::nullopt : std::optional(point.layer);
                   })
      .def_prop_ro("phase", [](const MemoryPoint& point) { return phase_name(point.phase); });

  m.def(
      "graph_dot",
      [](const Profile& profile, std::optional<int> depth, const std::string& start, bool fold,
         const nb::object& columns, bool trainable) {
        return graph_dot(
            profile, {.depth = depth.value_or(-1),
                      .start = start,
                      .fold = fold,
                      .columns = columns.is_none() ? std::vector<Column>() : column_list(columns),
                      .trainable = trainable});
      },
      nb::arg("profile"), nb::arg("depth").none(), nb::arg("start"), nb::arg("fold"),
      nb::arg("columns").none(), nb::arg("trainable"));
  // Its one error, a trace that is too large, is told in Python, before the trace is read.
  m.def(
      "report_html",
      [](const Profile& profile, const std::string& title, const std::string& trace_file,
         const nb::bytes& trace) {
        const auto page = report_html(profile, {.title = title,
                                                .trace_file = trace_file,
                                                .trace = std::string(trace.c_str(), trace.size())});
        if (!page) throw nb::value_error(page.error().message().c_str());
        return *page;
      },
      nb::arg("profile"), nb::arg("title"), nb::arg("trace_file"), nb::arg("trace"));
  m.attr("largest_embedded_trace") = kLargestEmbeddedTrace;

  const nb::object profile = m.attr("Profile");
  for (const char* name : {"graph", "report", "plot"}) add_method(profile, name);
}

}  // namespace layertrace::python
