// Cards as tables: values in the units that people are shown, and as they are for programs.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/cards/judge.h"
#include "report/cards/metric_columns.h"
#include "report/cards/notes.h"
#include "report/cards/units.h"
#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace {
namespace cards {

std::string_view better_side(const MetricInfo& info) noexcept {
  const bool is_told =
      info.comparison != MetricComparison::kNone || info.better != Better::kAsCompared;
  return !is_told ? "" : is_low_better(info) ? "low" : "high";
}

Table metrics_table(std::string name, const std::vector<MetricValue>& metrics) {
  tables::Sheet<MetricValue> sheet(std::move(name), metrics);
  sheet.text("key", [](const MetricValue& each) { return each.info.key; })
      .detail()
      .text("metric", [](const MetricValue& each) { return name_of(each.info); })
      .real("value", "",
            [](const MetricValue& each) {
              if (!each.value) return TableValue();
              return tables::cell(*each.value / shown_unit(each.info, *each.value).size);
            })
      .text("unit",
            [](const MetricValue& each) {
              return tables::text_if_any(shown_unit(each.info, each.value.value_or(0)).name);
            })
      .real("base_value", "", [](const MetricValue& each) { return tables::cell(each.value); })
      .detail()
      .text("base_unit",
            [](const MetricValue& each) { return tables::text_if_any(each.info.unit); })
      .detail()
      .text("comparison",
            [](const MetricValue& each) { return metric_comparison_name(each.info.comparison); })
      .detail()
      .text("better",
            [](const MetricValue& each) {
              return tables::text_if_any(std::string(better_side(each.info)));
            })
      .detail()
      .text("description",
            [](const MetricValue& each) { return tables::text_if_any(each.info.description); })
      .detail();
  return sheet.take();
}

}  // namespace cards

Table tables::metrics_table(const Profile& profile, const TableOptions& /*options*/) {
  return cards::metrics_table("metrics", profile.metrics);
}

namespace cards {
namespace {

// A detail, the same in each row.
void add_detail(Table& table, const char* name, ColumnKind kind, const TableValue& value,
                const char* unit = "") {
  table.columns.push_back({name, unit, kind, true, std::vector<TableValue>(table.rows(), value)});
}

// Where it was made, as tables of times have it.
void add_run(Table& table, const Profile* summary) {
  const RunInfo run = summary != nullptr ? summary->run : RunInfo();
  const auto text = [&](const char* name, const std::string& value) {
    add_detail(table, name, ColumnKind::kText, tables::text_if_any(value));
  };
  const auto count = [&](const char* name, const char* unit, std::uint64_t value) {
    add_detail(table, name, ColumnKind::kInteger, value != 0 ? tables::cell(value) : TableValue(),
               unit);
  };
  text("host_name", run.host);
  text("os", run.os);
  text("cpu", run.cpu);
  count("cpu_count", "", run.cpu_count);
  count("memory_bytes", "bytes", run.memory_bytes);
  text("torch_version", run.torch_version);
  text("layertrace_version", run.layertrace_version);
  text("python_version", run.python_version);
  text("command", run.command);
  text("commit", run.commit);
  text("run_name", run.name);
  text("created", run.created);
}

}  // namespace
}  // namespace cards

Table card_table(const ModelCard& card) {
  Table table = cards::metrics_table("card", card.metrics);
  const auto add = [&](const char* name, ColumnKind kind, const TableValue& value) {
    cards::add_detail(table, name, kind, value);
  };
  add("model", ColumnKind::kText, tables::cell(card.name));
  add("device", ColumnKind::kText, tables::text_if_any(card.device));
  add("batch_size", ColumnKind::kInteger,
      card.batch_size != 0 ? tables::cell(card.batch_size) : TableValue());
  add("convention", ColumnKind::kText, tables::cell(card.convention));
  add("simulated", ColumnKind::kBoolean, tables::cell(!card.simulated.empty()));
  table.note = tables::note_of(cards::note_lines(card));
  cards::add_run(table, card.summary.get());
  return table;
}

Table card_table(const CardComparison& comparison) {
  using Row = ComparedMetric;
  tables::Sheet<Row> sheet("cards", comparison.rows);
  sheet.text("key", [](const Row& row) { return row.info.key; }).detail();
  sheet.text("metric", [](const Row& row) { return cards::name_of(row.info); });
  sheet.text("unit", [](const Row& row) { return tables::text_if_any(cards::unit_of(row).name); });
  for (std::size_t i = 0; i < comparison.cards.size(); ++i) {
    const std::string& name = comparison.cards[i].name;
    sheet.real(name, "", [&](const Row& row) {
      const auto& value = row.models[i].value;
      return value ? tables::cell(*value / cards::unit_of(row).size) : TableValue();
    });
    if (i == 0) continue;
    const std::string of = comparison.cards.size() == 2 ? "" : " of " + name;
    sheet.real("score" + of, "", [&](const Row& row) {
      const auto& score = row.models[i].score;
      const bool is_difference = row.info.comparison == MetricComparison::kDifference;
      if (!score) return TableValue();
      return tables::cell(is_difference ? *score / cards::unit_of(row).size : *score);
    });
    sheet.text("verdict" + of, [&](const Row& row) { return verdict_name(row.models[i].verdict); });
  }
  sheet.text("comparison",
             [](const Row& row) { return metric_comparison_name(row.info.comparison); });
  sheet.detail();
  const bool is_any_simulated = std::ranges::any_of(
      comparison.cards, [](const ModelCard& card) { return !card.simulated.empty(); });
  sheet.boolean("simulated", [=](const Row& /*row*/) { return is_any_simulated; });
  sheet.detail();
  Table table = sheet.take();
  table.note = tables::note_of(cards::note_lines(comparison));
  // All are of one process: what the first was made with, the others were, too.
  cards::add_run(table, comparison.cards.empty() ? nullptr : comparison.cards[0].summary.get());
  return table;
}

}  // namespace layertrace
