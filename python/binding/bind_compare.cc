#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "bindings.h"

namespace layertrace::python {
namespace {

// A run's figure that is not there is None.
std::optional<double> if_known(const ComparedFigure& figure, double value) {
  return figure.known && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

void bind_compare(nb::module_& m) {
  nb::class_<ComparedFigure>(m, "ComparedFigure")
      .def("__repr__", repr_of("value", "low", "high", "change", "verdict"))
      .def_prop_ro("value", [](const ComparedFigure& f) { return if_known(f, f.value); })
      .def_prop_ro("low", [](const ComparedFigure& f) { return if_known(f, f.low); })
      .def_prop_ro("high", [](const ComparedFigure& f) { return if_known(f, f.high); })
      .def_prop_ro("change", [](const ComparedFigure& f) { return if_known(f, f.change); })
      .def_prop_ro("verdict", [](const ComparedFigure& f) { return verdict_name(f.verdict); });
  nb::class_<ComparedRow>(m, "ComparedRow")
      .def("__repr__", repr_of("kind", "name", "metric", "runs"))
      .def_ro("kind", &ComparedRow::kind)
      .def_ro("name", &ComparedRow::name)
      .def_ro("type", &ComparedRow::type)
      .def_ro("metric", &ComparedRow::metric)
      .def_ro("unit", &ComparedRow::unit)
      .def_ro("runs", &ComparedRow::runs);
  nb::class_<NotInAll>(m, "NotInAll")
      .def("__repr__", repr_of("kind", "name", "runs"))
      .def_ro("kind", &NotInAll::kind)
      .def_ro("name", &NotInAll::name)
      .def_ro("runs", &NotInAll::runs);
  nb::class_<Comparison>(m, "Comparison")
      .def("__repr__",
           [](const Comparison& comparison) {
             return "<layertrace.Comparison of " + std::to_string(comparison.names.size()) +
                    " runs>";
           })
      .def("__str__", [](const Comparison& comparison) { return comparison_text(comparison); })
      .def("_repr_html_",
           [](const Comparison& comparison) { return to_html(comparison_table(comparison)); })
      .def_ro("names", &Comparison::names)
      .def_ro("rows", &Comparison::rows)
      .def_ro("not_in_all", &Comparison::not_in_all)
      .def_ro("notes", &Comparison::notes)
      .def_ro("simulated", &Comparison::simulated)
      .def(
          "text",
          [](const Comparison& comparison, bool all, int width, bool color, bool ascii) {
            return comparison_text(comparison,
                                   {.all = all, .width = width, .color = color, .ascii = ascii});
          },
          nb::kw_only(), nb::arg("all") = false, nb::arg("width") = 0, nb::arg("color") = false,
          nb::arg("ascii") = false)
      .def("table", &comparison_table)
      .def(
          "check",
          [](const Comparison& comparison, const std::string& text) -> std::optional<std::string> {
            const Condition condition = value_or_raise(parse_condition(text));
            std::string reason = value_or_raise(check_condition(comparison, condition));
            return reason.empty() ? std::nullopt : std::optional(std::move(reason));
          },
          nb::arg("condition"));
  m.def(
      "compare",
      [](const std::vector<const Profile*>& runs, std::vector<std::string> names,
         std::vector<std::string> files, double min_change, double error_rate) {
        std::vector<Profile> copies;
        copies.reserve(runs.size());
        for (const Profile* run : runs) copies.push_back(*run);
        CompareOptions options;
        options.names = std::move(names);
        options.files = std::move(files);
        options.min_change = min_change;
        options.error_rate = error_rate;
        return without_gil([&] { return compare(copies, options); });
      },
      nb::arg("runs"), nb::arg("names"), nb::arg("files"), nb::arg("min_change"),
      nb::arg("error_rate"));
}

}  // namespace layertrace::python
