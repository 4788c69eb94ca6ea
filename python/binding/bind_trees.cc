// Trees of a profile: their options come as keywords, which are many.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.h"

namespace layertrace::python {
namespace {

std::string class_name(const nb::handle& object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

template <typename T>
T as(const std::string& name, const nb::handle& value, const char* wanted) {
  T result{};
  if (!nb::try_cast<T>(value, result))
    throw nb::type_error((name + " is a " + class_name(value) + "; it takes " + wanted).c_str());
  return result;
}

std::string text(const std::string& name, const nb::handle& value) {
  return as<std::string>(name, value, "a text");
}

bool set_option(TreeOptions& options, const std::string& name, const nb::handle& value) {
  if (name == "depth") {
    options.depth = as<int>(name, value, "a whole number");
  } else if (name == "start") {
    options.start = text(name, value);
  } else if (name == "sort") {
    options.sort = value_or_raise(parse_sort_key(text(name, value)));
  } else if (name == "fold") {
    options.fold = as<bool>(name, value, "True or False");
  } else if (name == "columns") {
    options.columns = column_list(value);
  } else if (name == "view") {
    options.view = value_or_raise(parse_view(text(name, value)));
  } else if (name == "style") {
    options.style = value_or_raise(parse_tree_style(text(name, value)));
  } else if (name == "match") {
    options.match = text(name, value);
  } else if (name == "type") {
    options.type = text(name, value);
  } else if (name == "min_share") {
    options.min_share = as<double>(name, value, "a number");
  } else if (name == "trainable") {
    options.trainable = as<bool>(name, value, "True or False");
  } else if (name == "width") {
    options.width = as<int>(name, value, "a whole number");
  } else if (name == "color") {
    options.color = as<bool>(name, value, "True or False");
  } else if (name == "ascii") {
    options.ascii = as<bool>(name, value, "True or False");
  } else {
    return false;
  }
  return true;
}

// None stands for the default.
TreeOptions tree_options(const char* function, const nb::kwargs& given) {
  TreeOptions options;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (!value.is_none() && !set_option(options, name, value)) {
      throw nb::type_error(
          (std::string(function) + "() got an unexpected keyword argument '" + name + "'").c_str());
    }
  }
  return options;
}

// What the modules say of themselves, by path: of a model, or of several by name.
ExtraReprs extra_reprs(const nb::object& model) {
  ExtraReprs extra;
  const auto add = [&](const std::string& prefix, const nb::handle& root) {
    for (const nb::handle each : nb::iter(root.attr("named_modules")())) {
      const auto path = nb::cast<std::string>(each[0]);
      std::string full = prefix;
      if (!prefix.empty() && !path.empty()) full += '.';
      full += path;
      extra[full] = nb::cast<std::string>(each[1].attr("extra_repr")());
    }
  };
  if (nb::isinstance<nb::dict>(model)) {
    for (const auto& [name, root] : nb::borrow<nb::dict>(model))
      add(nb::cast<std::string>(name), root);
  } else if (!model.is_none()) {
    add("", model);
  }
  return extra;
}

}  // namespace

std::vector<Column> column_list(const nb::handle& columns) {
  const bool is_text = nb::isinstance<nb::str>(columns);
  const nb::object names = is_text ? columns.attr("split")(",") : nb::borrow(columns);
  const auto refuse = [](const nb::handle& given) {
    const std::string text =
        R"(columns are names, as in "type,forward" or ["type", "forward"]; this is a )" +
        class_name(given);
    throw nb::type_error(text.c_str());
  };
  if (!nb::isinstance<nb::iterable>(names)) refuse(columns);
  std::vector<Column> parsed;
  for (const nb::handle name : nb::iter(names)) {
    if (!nb::isinstance<nb::str>(name)) refuse(name);
    parsed.push_back(value_or_raise(parse_column(nb::cast<std::string>(name.attr("strip")()))));
  }
  return parsed;
}

void bind_trees(nb::class_<Profile>& profile) {
  profile
      .def("tree",
           [](const Profile& self, const nb::kwargs& options) {
             return tree(self, tree_options("tree", options));
           })
      .def(
          "repr_tree",
          [](const Profile& self, const nb::object& model, const nb::kwargs& options) {
            return repr_tree(self, tree_options("repr_tree", options), extra_reprs(model));
          },
          nb::arg("model") = nb::none(), nb::arg("options"))
      .def("nested", [](const Profile& self, const nb::kwargs& given) {
        const TreeOptions options = tree_options("nested", given);
        const nb::object nested =
            nb::module_::import_("json").attr("loads")(nested_json(self, options));
        // A dict of an error would be taken for layers.
        if (!options.start.empty() && self.find(options.start) == nullptr) {
          raise({"cannot show " + options.start, nb::cast<std::string>(nested["error"]),
                 "Give the path of a layer"});
        }
        return nested;
      });
}

}  // namespace layertrace::python
