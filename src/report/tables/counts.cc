// What a convention counts in the forward of each module, as a table.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace {
namespace tables {
namespace {

struct CountRow {
  const Layer* layer = nullptr;
  double ops = 0;
  std::optional<double> activations;
};

}  // namespace

Table counts_table(const Profile& profile, const ConventionCounts& counts,
                   const TableOptions& options) {
  const std::map<std::string, double> ops(counts.by_module.begin(), counts.by_module.end());
  const std::map<std::string, double> activations(counts.activations_by_module.begin(),
                                                  counts.activations_by_module.end());
  std::vector<CountRow> rows;
  const ChosenLayers layers(profile, options);
  for (const LayerRow& row : layers.rows()) {
    const auto counted = ops.find(row.layer->path);
    if (counted == ops.end()) continue;
    const auto put_out = activations.find(row.layer->path);
    rows.push_back({row.layer, counted->second,
                    put_out != activations.end() ? std::optional(put_out->second) : std::nullopt});
  }
  Sheet<CountRow> sheet("counts", std::move(rows));
  sheet.text("module", [&](const CountRow& row) { return shown_path(row.layer->path, options); })
      .text("type", [](const CountRow& row) { return row.layer->type; })
      .real("ops", counts.unit, [](const CountRow& row) { return row.ops; });
  if (!counts.activations_by_module.empty())
    sheet.real("activations", "elements", [](const CountRow& row) { return row.activations; });
  return sheet.take();
}

}  // namespace tables

Result<Table> counts_table(const Profile& profile, Convention convention,
                           const TableOptions& options) {
  if (const auto known = tables::check_module(profile, options); !known) return known.error();
  return tables::chosen(tables::counts_table(profile, counts_by(profile, convention), options),
                        options);
}

}  // namespace layertrace
