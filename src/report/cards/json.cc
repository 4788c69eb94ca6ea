// Cards for programs; docs/card.md describes the keys.
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/json.h"
#include "report/cards/metric_columns.h"
#include "report/cards/units.h"
#include "report/tables/json.h"
#include "report/text.h"

namespace layertrace {
namespace report {

Json metric_json(const MetricInfo& info, const std::optional<double>& value) {
  const MetricUnit shown = shown_unit(info, value.value_or(0));
  Json out = Json::object();
  out["key"] = info.key;
  out["name"] = cards::name_of(info);
  out["description"] = text_or_null(info.description);
  out["value"] = value ? number(*value) : Json(nullptr);
  out["unit"] = text_or_null(info.unit);
  out["shown_value"] = value ? number(*value / shown.size) : Json(nullptr);
  out["shown_unit"] = text_or_null(shown.name);
  out["comparison"] = metric_comparison_name(info.comparison);
  out["better"] = text_or_null(std::string(cards::better_side(info)));
  return out;
}

}  // namespace report

namespace cards {
namespace {

using report::Json;

// What each layer is and computes in a call, as the table of layers has it.
Json layer_rows(const ModelCard& card) {
  Json layers = Json::array();
  if (card.summary == nullptr) return layers;
  const TableOptions options{.columns = {"path", "type", "calls", "params", "params_trainable",
                                         "param_bytes", "buffer_bytes", "kernel_size",
                                         "input_shapes", "output_shapes", "flops", "macs",
                                         "activations", "memory_peak_bytes"}};
  const auto rows = table(*card.summary, TableKind::kLayers, options);
  for (std::size_t row = 0; rows && row < rows->rows(); ++row)
    layers.push_back(tables::row_json(*rows, row));
  return layers;
}

Json card_object(const ModelCard& card) {
  Json metrics = Json::array();
  for (const MetricValue& metric : card.metrics)
    metrics.push_back(report::metric_json(metric.info, metric.value));
  Json failures = Json::array();
  for (const Error& failure : card.failures) failures.push_back(failure.message());
  return {{"name", card.name},
          {"device", report::text_or_null(card.device)},
          {"batch_size", card.batch_size != 0 ? Json(card.batch_size) : Json(nullptr)},
          {"convention", card.convention},
          {"simulated", card.simulated},
          {"metrics", std::move(metrics)},
          {"failures", std::move(failures)},
          {"notes", card.notes},
          {"run", card.summary != nullptr ? report::run_json(card.summary->run) : Json(nullptr)},
          {"layers", layer_rows(card)}};
}

Json row_object(const ComparedMetric& row) {
  Json models = Json::array();
  for (const ComparedMetric::Side& side : row.models) {
    models.push_back({{"value", side.value ? report::number(*side.value) : Json(nullptr)},
                      {"score", side.score ? report::number(*side.score) : Json(nullptr)},
                      {"verdict", verdict_name(side.verdict)}});
  }
  Json out = report::metric_json(row.info, std::nullopt);
  for (const char* key : {"value", "shown_value", "shown_unit"}) out.erase(key);
  out["models"] = std::move(models);
  return out;
}

}  // namespace
}  // namespace cards

std::string card_json(const ModelCard& card) {
  return report::dump(cards::card_object(card)) + '\n';
}

std::string card_json(const CardComparison& comparison) {
  return "{\"cards\":" + report::dump_lines(comparison.cards, cards::card_object) +
         ",\n\"rows\":" + report::dump_lines(comparison.rows, cards::row_object) +
         ",\n\"notes\":" + report::dump(comparison.notes) + "}\n";
}

}  // namespace layertrace
