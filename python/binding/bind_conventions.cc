#include "bindings.h"

namespace layertrace::python {
namespace {

nb::dict counts_dict(const ConventionCounts::Counts& counts) {
  nb::dict dict;
  for (const auto& [name, count] : counts) {
    const auto size = static_cast<Py_ssize_t>(name.size());
    dict[nb::steal(PyUnicode_DecodeUTF8(name.data(), size, "replace"))] = count;
  }
  return dict;
}

}  // namespace

void bind_conventions(nb::module_& m) {
  const auto dict_of = [](ConventionCounts::Counts ConventionCounts::*counts) {
    return [counts](const ConventionCounts& self) { return counts_dict(self.*counts); };
  };
  nb::class_<ConventionCounts>(m, "ConventionCounts")
      .def("__repr__", repr_of("unit", "by_operator", "parameters", "notes"))
      .def_ro("unit", &ConventionCounts::unit)
      .def_prop_ro("by_module", dict_of(&ConventionCounts::by_module))
      .def_prop_ro("by_operator", dict_of(&ConventionCounts::by_operator))
      .def_prop_ro("activations_by_module", dict_of(&ConventionCounts::activations_by_module))
      .def_prop_ro("activations_by_operator", dict_of(&ConventionCounts::activations_by_operator))
      .def_ro("parameters", &ConventionCounts::parameters)
      .def_ro("parameter_bytes", &ConventionCounts::parameter_bytes)
      .def_ro("model_size_mb", &ConventionCounts::model_size_mb)
      .def_ro("footprint_mb", &ConventionCounts::footprint_mb)
      .def_ro("notes", &ConventionCounts::notes);
}

}  // namespace layertrace::python
