// What the files that bind C++ types for Python share: how errors become exceptions, sequences and
// repr().
#pragma once

#include <nanobind/make_iterator.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

NB_MAKE_OPAQUE(std::vector<layertrace::Layer>);
NB_MAKE_OPAQUE(std::vector<layertrace::Step>);
NB_MAKE_OPAQUE(std::vector<layertrace::Kernel>);
NB_MAKE_OPAQUE(std::vector<layertrace::Operator>);

namespace layertrace::python {

namespace nb = nanobind;

// One for each subject, each in a file of its own.
void bind_device(nb::module_& m);   // what a GPU did
void bind_memory(nb::module_& m);   // what allocators told
void bind_amounts(nb::module_& m);  // what operators computed and moved, and the device's peaks
void bind_layers(nb::module_& m);   // layers and steps, with their figures
void bind_health(nb::module_& m);   // what went missing, and where a run was made
void bind_profile(nb::module_& m);  // a Profile, with its reports
void bind_trees(nb::class_<Profile>& profile);  // trees of it
void bind_conventions(nb::module_& m);          // other tools' conventions
void bind_formulas(nb::module_& m);             // the user's formulas
void bind_compare(nb::module_& m);              // what changed between runs
void bind_benchmark(nb::module_& m);            // how long calls of a model take
void bind_cards(nb::module_& m);                // metrics, and models in a few figures
void bind_session(nb::module_& m);              // recording

// As the exception layertrace.Error, with the three parts as attributes.
[[noreturn]] void raise(const Error& error);

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

// Names of columns, separated by commas or one by one.
std::vector<Column> column_list(const nb::handle& columns);

// The session's calls may wait for its writer or for the disk: other threads of Python go on
// meanwhile.
template <typename Function>
auto without_gil(const Function& function) {
  const nb::gil_scoped_release release;
  return function();
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

// "3.11.7", of "3.11.7 (main, …".
inline std::string python_version() {
  const std::string_view whole = Py_GetVersion();
  return std::string(whole.substr(0, whole.find(' ')));
}

// By the name of the phase.
nb::dict phase_dict(const std::array<PhaseStats, kPhaseCount>& phases);

// Where a layer is given as an index, None stands for none.
inline std::optional<int> index_or_none(int layer) {
  return layer < 0 ? std::nullopt : std::optional(layer);
}

}  // namespace layertrace::python
