// Parameters and buffers: a row for each tensor of each module, or a row for each module with all
// that is below it. Neither needs a call of the model.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/tables/makers.h"
#include "report/tables/sheet.h"

namespace layertrace::tables {
namespace {

// Of all models of the run.
std::uint64_t all_params(const Profile& profile) {
  std::uint64_t sum = 0;
  for (const Layer& layer : profile.layers) sum += layer.parent < 0 ? layer.params : 0;
  return sum;
}

TableValue share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? TableValue() : cell(static_cast<double>(part) / static_cast<double>(whole));
}

struct TensorRow {
  const Layer* layer = nullptr;
  const Parameter* tensor = nullptr;

  bool is_first() const { return tensor->shared_with.empty(); }
  std::uint64_t params(bool trainable) const {
    return !tensor->buffer && tensor->trainable == trainable ? tensor->elements : 0;
  }
};

Table by_tensor(const Profile& profile, const TableOptions& options) {
  std::vector<TensorRow> rows;
  const ChosenLayers layers(profile, options);
  for (const LayerRow& row : layers.rows()) {
    for (const Parameter& tensor : row.layer->parameters) rows.push_back({row.layer, &tensor});
  }
  const std::uint64_t whole = all_params(profile);
  constexpr std::uint64_t kBits = 8;
  Sheet<TensorRow> sheet("parameters", std::move(rows));
  sheet.text("module", [&](const TensorRow& row) { return shown_path(row.layer->path, options); })
      .text("type", [](const TensorRow& row) { return row.layer->type; })
      .text("name", [](const TensorRow& row) { return row.tensor->name; })
      .text("shape",
            [](const TensorRow& row) {
              return fmt::format("[{}]", fmt::join(row.tensor->shape, ", "));
            })
      .text("dtype", [](const TensorRow& row) { return row.tensor->dtype; })
      .boolean("trainable", [](const TensorRow& row) { return row.tensor->trainable; })
      .detail()
      .boolean("buffer", [](const TensorRow& row) { return row.tensor->buffer; })
      .integer("trainable_params", "elements",
               [](const TensorRow& row) { return row.params(true); })
      .integer("nontrainable_params", "elements",
               [](const TensorRow& row) { return row.params(false); })
      .integer("bits", "bits", [=](const TensorRow& row) { return row.tensor->bytes * kBits; })
      .detail()
      .integer("bytes", "bytes", [](const TensorRow& row) { return row.tensor->bytes; })
      .real("share", "share",
            [=](const TensorRow& row) {
              const bool counts = row.is_first() && !row.tensor->buffer;
              return counts ? share_of(row.tensor->elements, whole) : cell(0.0);
            })
      .text("shared_with",
            [](const TensorRow& row) { return text_if_any(row.tensor->shared_with); });
  return sheet.take();
}

// The formats of the parameters of each layer and of those below it.
std::vector<std::vector<std::string>> formats_below(const Profile& profile, bool trainable) {
  std::vector<std::vector<std::string>> formats(profile.layers.size());
  for (std::size_t i = profile.layers.size(); i-- > 0;) {  // children come after parents
    const auto add = [](std::vector<std::string>& to, const std::string& format) {
      if (std::ranges::find(to, format) == to.end()) to.push_back(format);
    };
    const Layer& layer = profile.layers[i];
    for (const Parameter& each : layer.parameters) {
      if (!each.buffer && each.trainable == trainable) add(formats[i], each.dtype);
    }
    if (layer.parent < 0) continue;
    for (const std::string& format : formats[i])
      add(formats[static_cast<std::size_t>(layer.parent)], format);
  }
  for (auto& each : formats) std::ranges::sort(each);
  return formats;
}

TableValue joined(const std::vector<std::string>& formats) {
  return formats.empty() ? TableValue() : cell(fmt::format("{}", fmt::join(formats, ", ")));
}

Table by_module(const Profile& profile, const TableOptions& options) {
  constexpr std::uint64_t kBits = 8;
  const std::uint64_t whole = all_params(profile);
  const auto trainable = formats_below(profile, true);
  const auto nontrainable = formats_below(profile, false);
  const ChosenLayers layers(profile, options);
  Sheet<LayerRow> sheet("parameters", layers.rows());
  sheet.text("module", [&](const LayerRow& row) { return shown_path(row.layer->path, options); })
      .text("type", [](const LayerRow& row) { return row.layer->type; })
      .integer("trainable_params", "elements",
               [](const LayerRow& row) { return row.layer->params_trainable; })
      .text("trainable_dtype", [&](const LayerRow& row) { return joined(trainable[row.index]); })
      .integer("nontrainable_params", "elements",
               [](const LayerRow& row) { return row.layer->params - row.layer->params_trainable; })
      .text("nontrainable_dtype",
            [&](const LayerRow& row) { return joined(nontrainable[row.index]); })
      .integer("bits", "bits", [=](const LayerRow& row) { return row.layer->param_bytes * kBits; })
      .detail()
      .integer("bytes", "bytes", [](const LayerRow& row) { return row.layer->param_bytes; })
      .integer("buffer_bytes", "bytes", [](const LayerRow& row) { return row.layer->buffer_bytes; })
      .detail()
      .real("share", "share",
            [=](const LayerRow& row) { return share_of(row.layer->params, whole); })
      .text("shared_with", [](const LayerRow& row) { return text_if_any(row.layer->shared_with); })
      .detail();
  return sheet.take();
}

}  // namespace

Table parameters_table(const Profile& profile, const TableOptions& options) {
  return options.by_layer ? by_module(profile, options) : by_tensor(profile, options);
}

}  // namespace layertrace::tables
