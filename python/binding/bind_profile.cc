#include <optional>
#include <string>

#include "bindings.h"

namespace layertrace::python {
namespace {

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

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<Profile> type(m, "Profile");
  bind_trees(type);
  type.def_ro("layers", &Profile::layers)
      .def_ro("steps", &Profile::steps)
      .def_ro("step_count", &Profile::step_count)
      .def_ro("step_ns", &Profile::step_ns)
      .def_ro("steps_marked", &Profile::steps_marked)
      .def_prop_ro("outside", [](const Profile& profile) { return phase_dict(profile.outside); })
      .def_ro("kernels", &Profile::kernels)
      .def_ro("idle", &Profile::idle)
      .def_ro("device_memory", &Profile::device_memory)
      .def_ro("gradient_bytes", &Profile::gradient_bytes)
      .def_ro("optimizer_bytes", &Profile::optimizer_bytes)
      .def_ro("optimizer_state_bytes", &Profile::optimizer_state_bytes)
      .def("forecast", &forecast)
      .def_ro("operators", &Profile::operators)
      .def_ro("counted_share", &Profile::counted_share)
      .def_ro("device", &Profile::device)
      .def_ro("mfu", &Profile::mfu)
      .def_ro("hfu", &Profile::hfu)
      .def_ro("health", &Profile::health)
      .def_ro("run", &Profile::run)
      .def_ro("metrics", &Profile::metrics)
      .def("find", &Profile::find, nb::arg("path"), nb::rv_policy::reference_internal)
      .def("to_json", [](const Profile& profile) { return layers_json(profile); })
      .def("to_dict",
           [](const Profile& profile) {
             return nb::module_::import_("json").attr("loads")(layers_json(profile));
           })
      .def(
          "kernels_table",
          [](const Profile& profile, const std::string& module, const std::string& sort,
             std::optional<int> limit, std::optional<int> width, bool color, bool ascii) {
            return kernels_table(profile, kernel_options(module, sort, limit, width, color, ascii));
          },
          nb::kw_only(), nb::arg("module") = "", nb::arg("sort") = "time",
          nb::arg("limit") = nb::none(), nb::arg("width") = nb::none(), nb::arg("color") = false,
          nb::arg("ascii") = false)
      .def(
          "counts",
          [](const Profile& profile, const std::string& convention) {
            return counts_by(profile, value_or_raise(parse_convention(convention)));
          },
          nb::arg("convention") = "layertrace")
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

}  // namespace layertrace::python
