#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "formulas.h"

namespace layertrace::python {
namespace {

nb::object as_object(const FormulaArgument& argument) {
  nb::list shapes;
  for (const auto& shape : argument.shapes) shapes.append(nb::tuple(nb::cast(shape)));
  if (argument.shapes.size() == 1) return shapes[0];
  if (!argument.shapes.empty()) return shapes;
  if (argument.number && argument.integers.empty()) return nb::cast(*argument.number);
  if (argument.integers.size() == 1) return nb::cast(argument.integers[0]);
  return argument.integers.empty() ? nb::none() : nb::cast(argument.integers);
}

// On whichever thread runs operators, with or without the GIL.
std::optional<std::uint64_t> call_formula(PyObject* function, const OperatorCall& call) {
  const nb::gil_scoped_acquire gil;
  nb::dict arguments;
  for (const FormulaArgument& argument : call.arguments)
    arguments[nb::cast(argument.name)] = as_object(argument);
  return as_flops(PyObject_CallFunctionObjArgs(function, arguments.ptr(), nullptr),
                  call.name.c_str());
}

FormulaArgument from_object(const std::string& name, const nb::handle& value) {
  FormulaArgument argument;
  argument.name = name;
  if (nb::isinstance<nb::bool_>(value)) {
    argument.integers = {nb::cast<bool>(value) ? 1 : 0};
  } else if (nb::isinstance<nb::int_>(value)) {
    argument.integers = {nb::cast<std::int64_t>(value)};
    argument.number = static_cast<double>(argument.integers[0]);
  } else if (nb::isinstance<nb::float_>(value)) {
    argument.number = nb::cast<double>(value);
  } else if (nb::isinstance<nb::tuple>(value)) {
    argument.shapes = {nb::cast<std::vector<std::int64_t>>(value)};
  } else if (!value.is_none()) {
    for (const nb::handle each : nb::borrow<nb::list>(value)) {
      if (nb::isinstance<nb::tuple>(each)) {
        argument.shapes.push_back(nb::cast<std::vector<std::int64_t>>(each));
      } else {
        argument.integers.push_back(nb::cast<std::int64_t>(each));
      }
    }
  }
  return argument;
}

}  // namespace

void bind_formulas(nb::module_& m) {
  m.def("add_formula", [](const std::string& op, nb::object function) {
    // Kept for good: a thread may be about to call it.
    PyObject* kept = function.release().ptr();
    const auto added =
        add_formula(op, [kept](const OperatorCall& call) { return call_formula(kept, call); });
    if (!added) raise(added.error());
  });
  m.def("remove_formula", [](const std::string& op) { return remove_formula(op); });
  m.def(
      "set_module_formula",
      [](const nb::object& type, const nb::object& function) {
        return set_module_formula(type.ptr(), function.is_none() ? nullptr : function.ptr());
      },
      nb::arg("type"), nb::arg("function").none());
  m.def("count_call", [](const std::string& op, const nb::dict& arguments) {
    OperatorCall call{.name = op, .arguments = {}};
    for (const auto& [name, value] : arguments)
      call.arguments.push_back(from_object(nb::cast<std::string>(name), value));
    return count_call(call);
  });
}

}  // namespace layertrace::python
