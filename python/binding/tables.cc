#include "tables.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/trace.h>

namespace nb = nanobind;

namespace layertrace::python {
namespace {

template <typename T>
T table_or_raise(Result<T> result) {
  if (result) return std::move(*result);
  const Error& error = result.error();
  const nb::object type = nb::module_::import_("layertrace._errors").attr("Error");
  PyErr_SetObject(type.ptr(), type(error.tried, error.cause, error.remedy).ptr());
  throw nb::python_error();
}

nb::object python_value(const TableColumn& column, std::size_t row) {
  struct Visitor {
    nb::object operator()(std::monostate) const { return nb::none(); }
    // Names come from users' programs and may be no UTF-8.
    nb::object operator()(const std::string& text) const {
      return nb::steal(
          PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    }
    nb::object operator()(std::int64_t integer) const { return nb::int_(integer); }
    nb::object operator()(double real) const { return nb::float_(real); }
    nb::object operator()(bool boolean) const { return nb::bool_(boolean); }
  };
  return std::visit(Visitor{}, column.values[row]);
}

nb::list column_values(const TableColumn& column) {
  nb::list values;
  for (std::size_t row = 0; row < column.values.size(); ++row)
    values.append(python_value(column, row));
  return values;
}

const TableColumn& column_of(const Table& table, const std::string& name) {
  const TableColumn* column = table.find(name);
  if (column == nullptr) throw nb::key_error(name.c_str());
  return *column;
}

nb::dict columns_dict(const Table& table) {
  nb::dict dict;
  for (const TableColumn& column : table.columns)
    dict[nb::str(column.name.data(), column.name.size())] = column_values(column);
  return dict;
}

nb::list rows_list(const Table& table) {
  nb::list rows;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    nb::dict dict;
    for (const TableColumn& column : table.columns)
      dict[nb::str(column.name.data(), column.name.size())] = python_value(column, row);
    rows.append(dict);
  }
  return rows;
}

// As Arrow's PyCapsule interface asks: a name, and an end for what nobody has taken.
template <typename T>
nb::object arrow_capsule(std::unique_ptr<T, ReleaseArrow> exported, const char* name) {
  PyObject* capsule = PyCapsule_New(exported.get(), name, [](PyObject* self) {
    ReleaseArrow()(static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))));
  });
  if (capsule == nullptr) throw nb::python_error();
  exported.release();
  return nb::steal(capsule);
}

nb::object helper(const char* name) {
  return nb::module_::import_("layertrace._tables").attr(name);
}

TableOptions table_options(const std::string& module, std::optional<int> depth,
                           const std::string& root, bool leading_dot, bool by_layer,
                           std::optional<std::vector<std::string>> columns,
                           std::optional<std::size_t> limit) {
  return {.module = module,
          .depth = depth.value_or(-1),
          .root = root,
          .leading_dot = leading_dot,
          .by_layer = by_layer,
          .columns = std::move(columns).value_or(std::vector<std::string>{}),
          .limit = limit.value_or(0)};
}

void bind_table_type(nb::module_& m) {
  nb::class_<TableColumn>(m, "TableColumn")
      .def_ro("name", &TableColumn::name)
      .def_ro("unit", &TableColumn::unit)
      .def_prop_ro("kind", [](const TableColumn& column) { return column_kind_name(column.kind); })
      .def_ro("detail", &TableColumn::detail)
      .def_prop_ro("values", column_values)
      .def("__repr__", [](const TableColumn& column) {
        return "TableColumn(name='" + column.name + "', unit='" + column.unit + "', kind='" +
               std::string(column_kind_name(column.kind)) + "')";
      });
  nb::class_<Table>(m, "Table")
      .def_ro("name", &Table::name)
      .def_ro("note", &Table::note)
      .def_ro("columns", &Table::columns)
      .def_prop_ro("column_names",
                   [](const Table& table) {
                     nb::list names;
                     for (const TableColumn& column : table.columns) names.append(column.name);
                     return names;
                   })
      .def("__len__", &Table::rows)
      .def("__bool__", [](const Table& /*table*/) { return true; })
      .def("__getitem__",
           [](const Table& table, const std::string& name) {
             return column_values(column_of(table, name));
           })
      .def("rows", rows_list)
      .def("to_dict", columns_dict)
      .def("to_json", &to_json)
      .def("to_csv", &to_csv)
      .def("to_markdown", &to_markdown)
      .def("to_html", &to_html)
      .def("to_latex", &to_latex)
      .def("to_parquet",
           [](const Table& table) {
             const std::string bytes = to_parquet(table);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("to_pandas", [](const nb::object& self) { return helper("to_pandas")(self); })
      .def(
          "save",
          [](const nb::object& self, const nb::object& path) { helper("save")(self, path); },
          nb::arg("path"))
      .def("__arrow_c_schema__",
           [](const Table& table) { return arrow_capsule(arrow_schema(table), "arrow_schema"); })
      .def(
          "__arrow_c_stream__",
          [](const Table& table, const nb::object& /*requested_schema*/) {
            return arrow_capsule(arrow_stream(table), "arrow_array_stream");
          },
          nb::arg("requested_schema") = nb::none())
      .def("__str__", &to_markdown)
      .def("__repr__",
           [](const Table& table) {
             return "<layertrace.Table " + table.name + ": " + std::to_string(table.rows()) +
                    " rows, " + std::to_string(table.columns.size()) + " columns>";
           })
      .def("_repr_html_", &to_html);
}

// A function as a method of Profile, which is bound elsewhere.
template <typename Function, typename... Extra>
void add_method(const nb::object& type, const char* name, Function&& function,
                const Extra&... extra) {
  type.attr(name) = nb::cpp_function(std::forward<Function>(function), nb::is_method(),
                                     nb::scope(type), nb::name(name), extra...);
}

}  // namespace

void bind_tables(nb::module_& m) {
  bind_table_type(m);
  const nb::object profile = m.attr("Profile");
  add_method(
      profile, "table",
      [](const Profile& self, const std::string& kind, const std::string& module,
         std::optional<int> depth, const std::string& root, bool leading_dot, bool by_layer,
         std::optional<std::vector<std::string>> columns, std::optional<std::size_t> limit,
         bool trainable) {
        const TableKind parsed = table_or_raise(parse_table_kind(kind));
        TableOptions options =
            table_options(module, depth, root, leading_dot, by_layer, std::move(columns), limit);
        options.trainable = trainable;
        return table_or_raise(table(self, parsed, options));
      },
      nb::arg("kind"), nb::kw_only(), nb::arg("module") = "", nb::arg("depth") = nb::none(),
      nb::arg("root") = "", nb::arg("leading_dot") = false, nb::arg("by_layer") = false,
      nb::arg("columns") = nb::none(), nb::arg("limit") = nb::none(), nb::arg("trainable") = false);
  add_method(
      profile, "counts_table",
      [](const Profile& self, const std::string& convention, const std::string& module,
         std::optional<int> depth, const std::string& root, bool leading_dot,
         std::optional<std::vector<std::string>> columns, std::optional<std::size_t> limit) {
        return table_or_raise(counts_table(
            self, table_or_raise(parse_convention(convention)),
            table_options(module, depth, root, leading_dot, false, std::move(columns), limit)));
      },
      nb::arg("convention") = "layertrace", nb::kw_only(), nb::arg("module") = "",
      nb::arg("depth") = nb::none(), nb::arg("root") = "", nb::arg("leading_dot") = false,
      nb::arg("columns") = nb::none(), nb::arg("limit") = nb::none());
  add_method(
      profile, "counts_json",
      [](const Profile& self, const std::string& convention) {
        return counts_json(self, table_or_raise(parse_convention(convention)));
      },
      nb::arg("convention") = "layertrace");
  m.def(
      "calls",
      [](const std::string& path, const std::string& module, std::optional<int> depth,
         const std::string& root, bool leading_dot, std::optional<std::vector<std::string>> columns,
         std::optional<std::size_t> limit) {
        const TableOptions options =
            table_options(module, depth, root, leading_dot, false, std::move(columns), limit);
        return table_or_raise([&] {
          const nb::gil_scoped_release release;
          return calls(path, options);
        }());
      },
      nb::arg("path"), nb::kw_only(), nb::arg("module") = "", nb::arg("depth") = nb::none(),
      nb::arg("root") = "", nb::arg("leading_dot") = false, nb::arg("columns") = nb::none(),
      nb::arg("limit") = nb::none());
}

}  // namespace layertrace::python
