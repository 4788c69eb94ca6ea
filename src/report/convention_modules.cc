// Tools that attach hooks to modules, and count by a module's class and shapes.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "report/convention_parts.h"
#include "report/module_facts.h"

namespace layertrace::report {
namespace {

constexpr double kMb = 1024.0 * 1024.0;

double forward_calls(const Layer& layer) { return layer.phase(Phase::kForward).calls.mean; }

bool has_forward_calls(const Layer& layer) { return layer.registered && forward_calls(layer) > 0; }

// Only what is registered: a tool finds modules by going through the model.
bool is_leaf(const Profile& profile, const Layer& layer) {
  return std::ranges::none_of(layer.children, [&](int child) {
    return profile.layers[static_cast<std::size_t>(child)].registered;
  });
}

bool has_parameters(const Layer& layer) {
  return std::ranges::any_of(layer.parameters, [](const Parameter& each) { return !each.buffer; });
}

class ModuleSums {
 public:
  explicit ModuleSums(const Profile& profile) : profile_(profile), sums_(profile.layers.size()) {}

  void add(std::size_t layer, double count) {
    sums_[layer] += count;
    by_class_[profile_.layers[layer].type] += count;
  }

  void scale(double factor) {
    for (double& sum : sums_) sum *= factor;
    for (auto& [name, sum] : by_class_) sum *= factor;
  }

  ConventionCounts counts(std::string_view unit, Remarks& remarks) const {
    if (!without_formula_.empty()) {
      remarks.add(fmt::format("There is no formula for: {}.", fmt::join(without_formula_, ", ")));
    }
    ConventionCounts counts;
    counts.unit = unit;
    counts.by_module = by_module(profile_, sums_);
    counts.by_operator = by_size(by_class_);
    counts.notes = remarks.sentences();
    return counts;
  }

  void no_formula(const Layer& layer) {
    if (layer.type != "Sequential") without_formula_.insert(layer.type);  // an empty one
  }

 private:
  const Profile& profile_;
  LayerCounts sums_;
  std::map<std::string, double> by_class_;
  std::set<std::string> without_formula_;
};

constexpr std::string_view kUnknown = "What a formula needs is not known, and counts as 0";

// Those that keep the last call's number only.
template <typename FindFormula>
void add_last_calls(const Profile& profile, FindFormula find_formula, ModuleSums& sums,
                    Remarks& remarks) {
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const Layer& layer = profile.layers[i];
    if (!has_forward_calls(layer)) continue;
    const ModuleFormula formula = find_formula(layer.type);
    if (formula == nullptr) {
      if (is_leaf(profile, layer)) sums.no_formula(layer);
      continue;
    }
    if (layer.shapes.empty()) {
      remarks.add(kUnknown, layer.path);
      continue;
    }
    const auto estimate = formula(ModuleFacts(layer, layer.shapes.front()));
    remarks.add(estimate ? estimate->remark : kUnknown, layer.path);
    if (estimate) sums.add(i, estimate->count);
    if (layer.shapes.size() > 1) {
      remarks.add("Of calls with different shapes the tool counts the last, this the most frequent",
                  layer.path);
    } else if (forward_calls(layer) > 1) {
      remarks.add("Of several calls one counts", layer.path);
    }
  }
}

}  // namespace

ConventionCounts torchinfo_counts(const Profile& profile) {
  ModuleSums sums(profile);
  Remarks remarks;
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const Layer& layer = profile.layers[i];
    if (!has_forward_calls(layer) || !has_parameters(layer)) continue;
    if (!is_leaf(profile, layer)) {
      remarks.add("Parameters of a module that has others inside count nothing", layer.path);
      continue;
    }
    if (layer.shapes.empty()) remarks.add(kUnknown, layer.path);
    // Calls in the backward (checkpointing) are no calls to it.
    const double of_forward = layer.calls > 0 ? forward_calls(layer) / layer.calls : 0;
    for (const CallShapes& call : layer.shapes) {
      const auto estimate = torchinfo_mult_adds(ModuleFacts(layer, call));
      remarks.add(estimate ? estimate->remark : kUnknown, layer.path);
      if (estimate) sums.add(i, estimate->count * call.calls * of_forward);
    }
    const bool has_shared = std::ranges::any_of(
        layer.parameters, [](const Parameter& each) { return !each.shared_with.empty(); });
    if (has_shared) {
      remarks.add("torchinfo's sum of parameters counts a shared one at each place, ours once",
                  layer.path);
    }
  }
  return sums.counts("mult-adds", remarks);
}

ConventionCounts moduleprofiler_counts(const Profile& profile) {
  ModuleSums sums(profile);
  Remarks remarks;
  add_last_calls(profile, moduleprofiler_formula, sums, remarks);
  return sums.counts("operations", remarks);
}

// ---- deeplite ----

namespace {

// Their outputs are not kept: their last module's are.
bool is_sequence(const Profile& profile, const Layer& layer) {
  if (layer.type == "Sequential" || layer.type == "ModuleList") return true;
  // A class derived from Sequential has parts that are named by their numbers.
  for (std::size_t i = 0; i < layer.children.size(); ++i) {
    const auto child = static_cast<std::size_t>(layer.children[i]);
    if (profile.layers[child].name != std::to_string(i)) return false;
  }
  return !layer.children.empty();
}

double lite_parameters(const ModuleFacts& facts) {
  const Layer& layer = facts.layer();
  if (layer.type.starts_with("BatchNorm")) {
    const Sizes* input = facts.input();
    return input == nullptr || input->size() < 2 ? 0 : 2 * static_cast<double>((*input)[1]);
  }
  if (layer.type != "Linear" && !layer.type.starts_with("Conv")) return 0;
  double parameters = 0;
  for (const Parameter& each : layer.parameters) {
    if (!each.buffer && each.trainable) parameters += product(each.shape);
  }
  return parameters;
}

double elements(const std::vector<TensorText>& tensors) {
  double sum = 0;
  for (const TensorText& each : tensors) sum += product(each.sizes);
  return sum;
}

}  // namespace

ConventionCounts deeplite_counts(const Profile& profile) {
  ModuleSums sums(profile);
  Remarks remarks;
  add_last_calls(profile, deeplite_formula, sums, remarks);

  double parameters = 0;
  double input_elements = 0;
  double output_elements = 0;
  double batch = 0;
  for (const Layer& layer : profile.layers) {
    if (!has_forward_calls(layer) || layer.shapes.empty()) continue;
    const ModuleFacts facts(layer, layer.shapes.front());
    if (deeplite_formula(layer.type) != nullptr) {
      parameters += lite_parameters(facts);
    } else if (has_parameters(layer)) {
      remarks.add("deeplite does not know of its parameters", layer.path);
    }
    if (!is_sequence(profile, layer)) output_elements += elements(facts.outputs());
    if (layer.parent < 0) {
      input_elements += elements(facts.inputs());
      if (facts.input() != nullptr && !facts.input()->empty())
        batch += static_cast<double>(facts.input()->front());
      if (facts.inputs().size() > 1)
        remarks.add("deeplite multiplies the sizes of several inputs, this adds them", layer.path);
    }
  }
  if (batch == 0) batch = 1;
  if (batch > 1) {
    sums.scale(1 / batch);
    remarks.add("MACs and outputs are for one sample of the batch.");
  }
  ConventionCounts counts = sums.counts("MACs", remarks);
  counts.parameters = parameters;
  counts.parameter_bytes = 4 * parameters;
  counts.model_size_mb = counts.parameter_bytes / kMb;
  counts.footprint_mb =
      *counts.model_size_mb + 4 * (input_elements + output_elements / batch) / kMb;
  return counts;
}

}  // namespace layertrace::report
