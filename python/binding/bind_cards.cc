// Metrics, model cards, and models side by side.
#include <nanobind/stl/map.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"

namespace layertrace::python {
namespace {

// An object of Python's that is let go of on whichever thread.
using Shared = std::shared_ptr<nb::object>;

Shared share(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            const nb::gil_scoped_acquire gil;
            delete held;
          }};
}

// What metrics of Python's are given, and what they raise.
struct Context {
  nb::object input;   // a layertrace.MetricInput
  nb::object raised;  // a list
};

// What is raised goes to the context as it is, and on as its text: the core knows no Python.
template <typename Call>
auto in_python(Context& context, const Call& call) {
  const nb::gil_scoped_acquire gil;
  try {
    return call();
  } catch (nb::python_error& error) {
    context.raised.attr("append")(error.value());
    const auto type = nb::cast<std::string>(error.type().attr("__name__"));
    throw std::runtime_error(type + ": " + nb::str(error.value()).c_str());
  }
}

using Values = std::vector<std::optional<double>>;

MetricsFunction metric_function(nb::object function) {
  return [held = share(std::move(function))](const MetricInput& input) {
    if (input.context == nullptr) throw std::runtime_error("it is Python's, and the model is not");
    Context& context = *static_cast<Context*>(input.context);
    return in_python(context, [&] { return nb::cast<Values>((*held)(context.input)); });
  };
}

// Numbers with their names, as a dict.
nb::dict scales_dict(const MetricInfo& info) {
  nb::dict scales;
  for (const MetricUnit& scale : info.scales) scales[nb::cast(scale.name)] = scale.size;
  return scales;
}

MetricInfo metric_info(const std::string& key, const std::string& name,
                       const std::string& description, const std::string& unit,
                       const std::string& shown_in, const std::map<std::string, double>& scales,
                       const std::string& comparison, const std::string& better) {
  MetricInfo info{.key = key,
                  .name = name.empty() ? key : name,
                  .description = description,
                  .unit = unit,
                  .shown_in = shown_in,
                  .comparison = value_or_raise(parse_metric_comparison(comparison)),
                  .better = value_or_raise(parse_better(better))};
  for (const auto& [scale, size] : scales) info.scales.push_back({scale, size});
  return info;
}

// The attributes of an info, of the object itself or of what it has.
template <typename Type, typename Info>
void bind_info(Type& type, Info info_of) {
  using T = Type::Type;
  const auto add = [&](const char* name, auto read) {
    type.def_prop_ro(name, [=](const T& self) { return read(info_of(self)); });
  };
  add("key", [](const MetricInfo& info) { return info.key; });
  add("name", [](const MetricInfo& info) { return info.name.empty() ? info.key : info.name; });
  add("description", [](const MetricInfo& info) { return info.description; });
  add("unit", [](const MetricInfo& info) { return info.unit; });
  add("shown_in", [](const MetricInfo& info) { return info.shown_in; });
  add("scales", scales_dict);
  add("comparison", [](const MetricInfo& info) { return metric_comparison_name(info.comparison); });
  add("better", [](const MetricInfo& info) { return better_name(info.better); });
}

void bind_metrics(nb::module_& m) {
  nb::class_<MetricInfo> info(m, "MetricInfo");
  info.def(
      "__init__",
      [](MetricInfo* self, const std::string& key, const std::string& name,
         const std::string& description, const std::string& unit, const std::string& shown_in,
         const std::map<std::string, double>& scales, const std::string& comparison,
         const std::string& better) {
        new (self) MetricInfo(
            metric_info(key, name, description, unit, shown_in, scales, comparison, better));
      },
      nb::arg("key"), nb::kw_only(), nb::arg("name") = "", nb::arg("description") = "",
      nb::arg("unit") = "", nb::arg("shown_in") = "",
      nb::arg("scales") = std::map<std::string, double>(), nb::arg("comparison") = "none",
      nb::arg("better") = "");
  bind_info(info, std::identity());
  info.def("__repr__", repr_of("key", "name", "unit", "comparison"));
  nb::class_<MetricValue> value(m, "MetricValue");
  bind_info(value, [](const MetricValue& self) -> const MetricInfo& { return self.info; });
  value.def_ro("value", &MetricValue::value)
      .def_prop_ro("shown_value",
                   [](const MetricValue& self) -> std::optional<double> {
                     if (!self.value) return std::nullopt;
                     return *self.value / shown_unit(self.info, *self.value).size;
                   })
      .def_prop_ro("shown_unit",
                   [](const MetricValue& self) {
                     return shown_unit(self.info, self.value.value_or(0)).name;
                   })
      .def("__repr__", repr_of("key", "value", "unit"));
  m.def("add_metric", [](const std::vector<MetricInfo>& infos, nb::object function, bool override) {
    const auto added =
        add_metric(infos, metric_function(std::move(function)), {.override = override});
    if (!added) raise(added.error());
  });
  m.def("remove_metric", [](const std::string& key) { return remove_metric(key); });
  m.def("metrics", &metrics);
  m.def(
      "check_metrics",
      [](const std::vector<std::string>& keys) {
        const auto checked = check_metrics(keys);
        if (!checked) raise(checked.error());
      },
      nb::arg("keys"));
}

// What a card and several side by side have in common.
template <typename T>
void bind_reports(nb::class_<T>& type) {
  type.def(
          "text",
          [](const T& self, bool color, bool ascii) {
            return card_text(self, {.color = color, .ascii = ascii});
          },
          nb::kw_only(), nb::arg("color") = false, nb::arg("ascii") = false)
      .def("table", [](const T& self) { return card_table(self); })
      .def("to_json", [](const T& self) { return card_json(self); })
      .def(
          "to_dict",
          [](const T& self) { return nb::module_::import_("json").attr("loads")(card_json(self)); })
      .def("__str__", [](const T& self) { return card_text(self); })
      .def("_repr_html_", [](const T& self) { return to_html(card_table(self)); });
}

const MetricValue& metric_of(const ModelCard& card, const std::string& key) {
  for (const MetricValue& metric : card.metrics) {
    if (metric.info.key == key) return metric;
  }
  throw nb::key_error(key.c_str());
}

CardComparison compare_all(const std::vector<const ModelCard*>& cards) {
  std::vector<ModelCard> copies;
  copies.reserve(cards.size());
  for (const ModelCard* card : cards) copies.push_back(*card);
  return compare_cards(std::move(copies));
}

void bind_card_type(nb::module_& m) {
  nb::class_<ModelCard> card(m, "ModelCard");
  card.def_ro("name", &ModelCard::name)
      .def_ro("device", &ModelCard::device)
      .def_prop_ro("batch_size",
                   [](const ModelCard& self) -> std::optional<std::uint64_t> {
                     return self.batch_size != 0 ? std::optional(self.batch_size) : std::nullopt;
                   })
      .def_ro("convention", &ModelCard::convention)
      .def_ro("simulated", &ModelCard::simulated)
      .def_ro("metrics", &ModelCard::metrics)
      .def_prop_ro("failures",
                   [](const ModelCard& self) {
                     nb::list failures;
                     for (const Error& failure : self.failures)
                       failures.append(nb::make_tuple(failure.tried, failure.cause));
                     return failures;
                   })
      .def_ro("notes", &ModelCard::notes)
      .def_prop_ro(
          "summary", [](const ModelCard& self) -> const Profile* { return self.summary.get(); },
          nb::rv_policy::reference_internal)
      .def("__getitem__",
           [](const ModelCard& self, const std::string& key) { return metric_of(self, key).value; })
      .def("metric", &metric_of, nb::arg("key"), nb::rv_policy::reference_internal)
      .def("compare",
           [](const ModelCard& self, const nb::args& others) {
             std::vector<const ModelCard*> cards = {&self};
             for (const nb::handle other : others) cards.push_back(nb::cast<ModelCard*>(other));
             return compare_all(cards);
           })
      .def("__repr__", repr_of("name", "device", "batch_size", "metrics"));
  bind_reports(card);
}

void bind_comparison_types(nb::module_& m) {
  nb::class_<ComparedMetric::Side>(m, "ComparedValue")
      .def_ro("value", &ComparedMetric::Side::value)
      .def_ro("score", &ComparedMetric::Side::score)
      .def_prop_ro("verdict",
                   [](const ComparedMetric::Side& self) { return verdict_name(self.verdict); })
      .def("__repr__", repr_of("value", "score", "verdict"));
  nb::class_<ComparedMetric> row(m, "ComparedMetric");
  bind_info(row, [](const ComparedMetric& self) -> const MetricInfo& { return self.info; });
  row.def_ro("models", &ComparedMetric::models).def("__repr__", repr_of("key", "models"));
  nb::class_<CardComparison> comparison(m, "CardComparison");
  comparison.def_ro("cards", &CardComparison::cards)
      .def_ro("rows", &CardComparison::rows)
      .def_ro("notes", &CardComparison::notes)
      .def("__repr__", repr_of("rows", "notes"));
  bind_reports(comparison);
}

}  // namespace

void bind_cards(nb::module_& m) {
  bind_metrics(m);
  bind_card_type(m);
  bind_comparison_types(m);
  m.def("compare_cards", &compare_all);
  m.def(
      "make_card",
      [](nb::object input, nb::object raised, const Profile& summary, const std::string& name,
         const std::string& device, std::uint64_t batch_size, std::optional<double> input_bytes,
         std::vector<double> call_s, nb::object evaluate, std::vector<std::string> metrics,
         const std::string& convention) {
        Context context{std::move(input), std::move(raised)};
        MetricInput metric_input;
        metric_input.summary = &summary;
        metric_input.convention = value_or_raise(parse_convention(convention));
        metric_input.batch_size = batch_size;
        metric_input.input_bytes = input_bytes;
        metric_input.call_s = std::move(call_s);
        metric_input.context = &context;
        if (!evaluate.is_none()) {
          metric_input.evaluate = [&] {
            return in_python(context, [&] { return nb::cast<double>(evaluate()); });
          };
        }
        const CardOptions options{.name = name, .metrics = std::move(metrics)};
        return value_or_raise(make_card(metric_input, device, options));
      },
      nb::arg("input"), nb::arg("raised"), nb::arg("summary"), nb::arg("name"), nb::arg("device"),
      nb::arg("batch_size"), nb::arg("input_bytes").none(), nb::arg("call_s"),
      nb::arg("evaluate").none(), nb::arg("metrics"), nb::arg("convention"));
}

}  // namespace layertrace::python
