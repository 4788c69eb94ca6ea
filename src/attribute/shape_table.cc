#include "attribute/shape_table.h"

#include <algorithm>

namespace layertrace {

void ShapeTable::leave(Lane lane, std::size_t depth) {
  if (lane >= open_.size()) return;
  std::vector<Call>& open = open_[lane];
  while (!open.empty() && open.back().depth > depth) open.pop_back();
}

void ShapeTable::add(Lane lane, std::size_t depth, const ShapesSpan& span) {
  if (open_.size() <= lane) open_.resize(lane + 1);
  std::vector<Call>& open = open_[lane];
  constexpr std::size_t kMostOpen = 4096;
  if (open.size() == kMostOpen) open.clear();
  if (!span.is_output) {
    open.push_back({span.layer, span.shapes, depth});
    return;
  }
  const auto call = std::find_if(open.rbegin(), open.rend(),
                                 [&](const Call& each) { return each.layer == span.layer; });
  if (call == open.rend()) return;
  const NameId input = call->input;
  open.erase(std::prev(call.base()), open.end());
  if (rows_.size() <= index(span.layer)) rows_.resize(index(span.layer) + 1);
  std::vector<Row>& rows = rows_[index(span.layer)];
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.input == input && row.output == span.shapes;
  });
  if (same != rows.end()) {
    ++same->calls;
  } else if (rows.size() < kMostRows) {
    rows.push_back({input, span.shapes, 1});
  } else {
    rows.back() = {kNoName, kNoName, rows.back().calls + 1};
  }
}

void ShapeTable::fill(Profile& profile, const std::vector<std::string>& names) const {
  const auto text = [&](NameId name) {
    return name != kNoName && index(name) < names.size() ? names[index(name)] : std::string("…");
  };
  for (std::size_t i = 0; i < rows_.size() && i < profile.layers.size(); ++i) {
    Layer& layer = profile.layers[i];
    double counted = 0;
    for (const Row& row : rows_[i]) counted += static_cast<double>(row.calls);
    for (const Row& row : rows_[i]) {
      // Of all calls a step, the share that these had among those that were looked at.
      const double calls = layer.calls * static_cast<double>(row.calls) / counted;
      layer.shapes.push_back({text(row.input), text(row.output), calls});
    }
    std::ranges::stable_sort(layer.shapes, std::ranges::greater(), &CallShapes::calls);
  }
}

}  // namespace layertrace
