// What went into each layer and came out: a row for each kind of call that was counted.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "report/shape_text.h"
#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

struct SizeRow {
  const Layer* layer = nullptr;
  const CallShapes* call = nullptr;
};

// "[16, 10], [3]": without formats. Nothing where no tensor is told.
TableValue sizes_of(const std::string& shapes) {
  std::string out;
  for (const report::TensorText& tensor : report::parse_shapes(shapes)) {
    const std::string_view separator = out.empty() ? "" : ", ";
    out += fmt::format("{}[{}]", separator, fmt::join(tensor.sizes, ", "));
  }
  return text_if_any(out);
}

}  // namespace

Table sizes_table(const Profile& profile, const TableOptions& options) {
  std::vector<SizeRow> rows;
  const ChosenLayers layers(profile, options);
  for (const LayerRow& row : layers.rows()) {
    for (const CallShapes& call : row.layer->shapes) rows.push_back({row.layer, &call});
  }
  Sheet<SizeRow> sheet("sizes", std::move(rows));
  sheet.text("module", [&](const SizeRow& row) { return shown_path(row.layer->path, options); })
      .text("type", [](const SizeRow& row) { return row.layer->type; })
      .text("input_size", [](const SizeRow& row) { return sizes_of(row.call->input); })
      .text("output_size", [](const SizeRow& row) { return sizes_of(row.call->output); })
      .text("input", [](const SizeRow& row) { return text_if_any(row.call->input); })
      .detail()
      .text("output", [](const SizeRow& row) { return text_if_any(row.call->output); })
      .detail()
      .real("calls", "per step", [](const SizeRow& row) { return row.call->calls; });
  return sheet.take();
}

}  // namespace layertrace::tables
