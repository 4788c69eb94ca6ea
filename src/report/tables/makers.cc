#include "report/tables/makers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/ledger.h"
#include "report/lookup.h"
#include "report/text.h"

namespace layertrace {
namespace tables {

// Parents come before children.
ChosenLayers::ChosenLayers(const Profile& profile, const TableOptions& options)
    : chosen_(profile.layers.size()),
      is_whole_(options.module.empty() && options.depth < 0 && !options.trainable) {
  std::vector<int> depths(profile.layers.size());
  std::vector<int> below(profile.layers.size(), -1);  // the layer that is asked for
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const Layer& layer = profile.layers[i];
    const bool is_root = layer.parent < 0;
    const auto parent = static_cast<std::size_t>(is_root ? 0 : layer.parent);
    depths[i] = is_root ? 0 : depths[parent] + 1;
    const bool is_start = options.module.empty() ? is_root : layer.path == options.module;
    if (is_start) {
      below[i] = 0;
    } else if (!is_root && below[parent] >= 0) {
      below[i] = below[parent] + 1;
    }
    chosen_[i] = below[i] >= 0 && (options.depth < 0 || below[i] <= options.depth) &&
                 (!options.trainable || layer.params_trainable != 0);
    if (chosen_[i]) rows_.push_back({&layer, i, depths[i]});
  }
}

std::string shown_path(const std::string& path, const TableOptions& options) {
  if (path.empty()) return options.root;
  return options.leading_dot ? "." + path : path;
}

TableValue shown_path(const Profile& profile, int layer, const TableOptions& options) {
  if (layer < 0) return {};
  return shown_path(profile.layers[static_cast<std::size_t>(layer)].path, options);
}

Result<void> check_module(const Profile& profile, const TableOptions& options) {
  if (options.module.empty() || profile.find(options.module) != nullptr) return {};
  std::string cause = report::unknown_layer(profile, options.module, false);
  cause.pop_back();  // the end of its line
  return Error{"cannot make a table of " + report::clean(options.module, false), cause,
               "Give the path of a layer"};
}

Result<Table> chosen(Table table, const TableOptions& options) {
  if (!options.columns.empty()) {
    std::vector<TableColumn> columns;
    for (const std::string& name : options.columns) {
      const TableColumn* column = table.find(name);
      if (column == nullptr) {
        std::string known;
        for (const TableColumn& each : table.columns)
          known += (known.empty() ? "" : ", ") + each.name;
        return Error{fmt::format("cannot show \"{}\" of the table {}", report::clean(name, false),
                                 table.name),
                     "no such column", "Use one of: " + known};
      }
      columns.push_back(*column);
      columns.back().detail = false;
    }
    table.columns = std::move(columns);
  }
  for (TableColumn& column : table.columns) {
    if (options.limit > 0 && column.values.size() > options.limit)
      column.values.resize(options.limit);
  }
  return table;
}

std::string note_of(const std::vector<std::string>& lines) {
  std::string note;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    if (!note.empty()) note += '\n';
    note += report::clean(line, false);  // a name with a line break must not end it
  }
  return note;
}

namespace {

Table make(const Profile& profile, TableKind kind, const TableOptions& options) {
  switch (kind) {
    case TableKind::kLayers:
      return layers_table(profile, options);
    case TableKind::kKernels:
      return kernels_table(profile, options);
    case TableKind::kOperators:
      return operators_table(profile, options);
    case TableKind::kSteps:
      return steps_table(profile, options);
    case TableKind::kParameters:
      return parameters_table(profile, options);
    case TableKind::kSizes:
      return sizes_table(profile, options);
    case TableKind::kLedger:
      return ledger_table(profile, options);
    case TableKind::kMetrics:
      return metrics_table(profile, options);
    case TableKind::kCalls:
      break;
  }
  return {};
}

}  // namespace
}  // namespace tables

Result<Table> table(const Profile& profile, TableKind kind, const TableOptions& options) {
  if (kind == TableKind::kCalls) {
    return Error{"cannot make a table of single calls", "a profile keeps their sums only",
                 "Save the run, and read them from its file with calls()"};
  }
  if (const auto known = tables::check_module(profile, options); !known) return known.error();
  Table made = tables::make(profile, kind, options);
  const bool has_times = kind != TableKind::kParameters && kind != TableKind::kSizes;
  if (has_times) made.note = report::simulation_note(profile.run, /*ascii=*/false);
  return tables::chosen(std::move(made), options);
}

}  // namespace layertrace
