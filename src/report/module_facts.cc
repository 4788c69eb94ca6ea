#include "report/module_facts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace layertrace::report {

ModuleFacts::ModuleFacts(const Layer& layer, const CallShapes& call)
    : layer_(layer), inputs_(parse_shapes(call.input)), outputs_(parse_shapes(call.output)) {}

const Sizes* ModuleFacts::parameter(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(
      layer_.parameters, [&](const Parameter& each) { return !each.buffer && each.name == name; });
  return found == layer_.parameters.end() ? nullptr : &found->shape;
}

namespace {

using Formulas = std::pair<std::string_view, ModuleFormula>;

template <typename Table>
ModuleFormula find_formula(const Table& table, std::string_view type) noexcept {
  const auto found = std::ranges::find(table, type, [](const Formulas& row) { return row.first; });
  return found == table.end() ? nullptr : found->second;
}

double size(const Sizes& sizes, std::size_t i) { return static_cast<double>(sizes[i]); }

// ---- What both have ----

template <int kPerElement>
std::optional<Estimate> per_input_element(const ModuleFacts& facts) {
  if (facts.input() == nullptr) return {};
  return Estimate{kPerElement * product(*facts.input())};
}

std::optional<Estimate> per_output_element(const ModuleFacts& facts) {
  if (facts.output() == nullptr) return {};
  return Estimate{product(*facts.output())};
}

// ---- moduleprofiler 0.0.4 ----

std::optional<Estimate> nothing(const ModuleFacts& /*facts*/) { return Estimate{}; }

std::optional<Estimate> profiled_linear(const ModuleFacts& facts) {
  const Sizes* weight = facts.parameter("weight");
  const Sizes* input = facts.input();
  if (weight == nullptr || weight->size() != 2 || input == nullptr || input->empty()) return {};
  const double per_output = 2 * size(*weight, 1) - (facts.has_bias() ? 0 : 1);
  return Estimate{product(*input, 0, input->size() - 1) * size(*weight, 0) * per_output};
}

// Of a convolution over so many dimensions.
template <std::size_t kDimensions>
std::optional<Estimate> profiled_convolution(const ModuleFacts& facts) {
  const Sizes* weight = facts.parameter("weight");
  const Sizes* input = facts.input();
  const Sizes* output = facts.output();
  if (weight == nullptr || weight->size() != kDimensions + 2) return {};
  if (input == nullptr || input->size() < 2) return {};
  if (output == nullptr || output->size() < kDimensions) return {};
  // It takes a single image of several channels for a batch.
  const bool is_single = input->size() == kDimensions + 1;
  const double batch = input->size() == 2 ? 1 : size(*input, 0);
  const double per_output = 2 * product(*weight, 1) - (facts.has_bias() ? 0 : 1);
  return Estimate{
      batch * size(*weight, 0) * product(*output, output->size() - kDimensions) * per_output,
      is_single && kDimensions == 2 ? "moduleprofiler takes channels without a batch for one" : ""};
}

std::optional<Estimate> profiled_batch_norm(const ModuleFacts& facts) {
  const Sizes* input = facts.input();
  if (input == nullptr || input->size() < 2) return {};
  const double channels = size(*input, 1);
  const double per_channel = size(*input, 0) * product(*input, 2);
  const int per_element = facts.parameter("weight") != nullptr ? 7 : 5;
  return Estimate{channels * (per_element * per_channel + 4)};
}

std::optional<Estimate> profiled_layer_norm(const ModuleFacts& facts) {
  const Sizes* input = facts.input();
  if (input == nullptr || input->empty()) return {};
  const Sizes* weight = facts.parameter("weight");
  const std::size_t dimensions = weight == nullptr ? 1 : weight->size();
  if (dimensions > input->size()) return {};
  const std::size_t rows = input->size() - dimensions;
  const int per_element = weight == nullptr ? 5 : facts.has_bias() ? 7 : 6;
  return Estimate{
      product(*input, 0, rows) * (per_element * product(*input, rows) + 4),
      weight == nullptr ? "A norm without weights is taken over the last dimension" : ""};
}

std::optional<Estimate> profiled_softmax(const ModuleFacts& facts) {
  const Sizes* input = facts.input();
  if (input == nullptr || input->empty()) return {};
  return Estimate{product(*input, 0, input->size() - 1) * (4 * size(*input, input->size() - 1) - 1),
                  "Softmax is taken over the last dimension"};
}

template <std::size_t kDimensions>
std::optional<Estimate> profiled_average(const ModuleFacts& facts) {
  const Sizes window = parse_kernel_size(facts.layer().kernel_size);
  if (facts.output() == nullptr || window.empty() || window.size() > kDimensions) return {};
  double elements = product(window);
  for (std::size_t i = window.size(); i < kDimensions; ++i) elements *= size(window, 0);
  return Estimate{product(*facts.output()) * elements};
}

// The cells' formulas hold for one step and one layer, and take a bias for granted.
std::optional<Estimate> recurrent(const ModuleFacts& facts, double gates, double extra,
                                  bool is_cell) {
  const std::string suffix = is_cell ? "" : "_l0";
  const Sizes* of_input = facts.parameter("weight_ih" + suffix);
  const Sizes* of_hidden = facts.parameter("weight_hh" + suffix);
  const Sizes* input = facts.input();
  if (of_input == nullptr || of_input->size() != 2) return {};
  if (of_hidden == nullptr || of_hidden->size() != 2) return {};
  if (input == nullptr || input->empty()) return {};
  if (facts.parameter("weight_hr_l0") != nullptr)
    return Estimate{0, "moduleprofiler refuses an LSTM with a projection"};
  double layers = 0;
  for (const Parameter& each : facts.layer().parameters) {
    if (each.name.starts_with("weight_ih") && !each.name.ends_with("_reverse")) ++layers;
  }
  const bool is_bidirectional = facts.parameter("weight_ih_l0_reverse") != nullptr;
  const bool has_bias = is_cell || facts.parameter("bias_ih_l0") != nullptr;
  const double steps = product(*input, 0, input->size() - 1);
  const double hidden = size(*of_hidden, 1);
  const double hidden_inputs = is_bidirectional ? 3 * layers - 2 : 2 * layers - 1;
  const double per_unit =
      size(*of_input, 1) + hidden_inputs * hidden + (has_bias ? extra : extra - 1) * layers;
  return Estimate{(is_bidirectional ? 4 : 2) * gates * steps * hidden * per_unit};
}

std::optional<Estimate> profiled_lstm(const ModuleFacts& facts) {
  return recurrent(facts, 4, 3.875, false);
}

std::optional<Estimate> profiled_gru(const ModuleFacts& facts) {
  return recurrent(facts, 3, 3.5, false);
}

std::optional<Estimate> profiled_lstm_cell(const ModuleFacts& facts) {
  auto estimate = recurrent(facts, 4, 3.875, true);
  if (estimate) estimate->remark = "moduleprofiler fails at an LSTMCell; this is its formula";
  return estimate;
}

std::optional<Estimate> profiled_gru_cell(const ModuleFacts& facts) {
  return recurrent(facts, 3, 3.5, true);
}

std::optional<Estimate> profiled_transposed(const ModuleFacts& /*facts*/) {
  return Estimate{0,
                  "Of a transposed convolution moduleprofiler needs the stride and padding, "
                  "which a profile does not have; it counts as 0"};
}

constexpr std::array kModuleprofiler{
    Formulas{"Identity", nothing},
    Formulas{"Linear", profiled_linear},
    Formulas{"Conv1d", profiled_convolution<1>},
    Formulas{"Conv2d", profiled_convolution<2>},
    Formulas{"ConvTranspose1d", profiled_transposed},
    Formulas{"ConvTranspose2d", profiled_transposed},
    Formulas{"LSTM", profiled_lstm},
    Formulas{"GRU", profiled_gru},
    Formulas{"LSTMCell", profiled_lstm_cell},
    Formulas{"GRUCell", profiled_gru_cell},
    Formulas{"BatchNorm1d", profiled_batch_norm},
    Formulas{"BatchNorm2d", profiled_batch_norm},
    Formulas{"LayerNorm", profiled_layer_norm},
    Formulas{"AvgPool1d", profiled_average<1>},
    Formulas{"AvgPool2d", profiled_average<2>},
    Formulas{"AdaptiveMaxPool1d", per_output_element},
    Formulas{"AdaptiveAvgPool2d", per_output_element},
    Formulas{"MaxPool1d", per_output_element},
    Formulas{"MaxPool2d", per_output_element},
    Formulas{"ReLU", per_input_element<1>},
    Formulas{"LeakyReLU", per_input_element<4>},
    Formulas{"PReLU", per_input_element<4>},
    Formulas{"ELU", per_input_element<3>},
    Formulas{"SELU", per_input_element<7>},
    Formulas{"Sigmoid", per_input_element<3>},
    Formulas{"Tanh", per_input_element<7>},
    Formulas{"Softplus", per_input_element<5>},
    Formulas{"Softmax", profiled_softmax},
};

// ---- deeplite 1.1.12 ----

// A transposed one is counted by its output, too.
std::optional<Estimate> lite_convolution(const ModuleFacts& facts) {
  const Sizes* weight = facts.parameter("weight");
  const Sizes* bias = facts.parameter("bias");
  const Sizes* input = facts.input();
  const Sizes* output = facts.output();
  if (weight == nullptr || input == nullptr || input->empty() || output == nullptr) return {};
  const double positions = size(*input, 0) * product(*output, 2);
  return Estimate{positions * (product(*weight) + (bias == nullptr ? 0 : product(*bias))),
                  facts.layer().type.starts_with("ConvTranspose")
                      ? "deeplite counts a transposed convolution by its output"
                      : ""};
}

std::optional<Estimate> lite_batch_norm(const ModuleFacts& facts) {
  return facts.parameter("weight") == nullptr ? per_input_element<1>(facts)
                                              : per_input_element<2>(facts);
}

// The bias counts once, however many rows there are.
std::optional<Estimate> lite_linear(const ModuleFacts& facts) {
  const Sizes* input = facts.input();
  const Sizes* output = facts.output();
  if (input == nullptr || output == nullptr || output->empty()) return {};
  const double width = size(*output, output->size() - 1);
  return Estimate{product(*input) * width + (facts.has_bias() ? width : 0)};
}

// Without the channels, as deeplite has it.
std::optional<Estimate> lite_upsample(const ModuleFacts& facts) {
  const Sizes* output = facts.output();
  if (output == nullptr || output->empty()) return {};
  return Estimate{size(*output, 0) * product(*output, 2)};
}

constexpr std::array kDeeplite{
    Formulas{"Conv1d", lite_convolution},
    Formulas{"Conv2d", lite_convolution},
    Formulas{"Conv3d", lite_convolution},
    Formulas{"ConvTranspose1d", lite_convolution},
    Formulas{"ConvTranspose2d", lite_convolution},
    Formulas{"ConvTranspose3d", lite_convolution},
    Formulas{"ReLU", per_output_element},
    Formulas{"PReLU", per_output_element},
    Formulas{"ELU", per_output_element},
    Formulas{"LeakyReLU", per_output_element},
    Formulas{"ReLU6", per_output_element},
    Formulas{"MaxPool1d", per_input_element<1>},
    Formulas{"MaxPool2d", per_input_element<1>},
    Formulas{"MaxPool3d", per_input_element<1>},
    Formulas{"AvgPool1d", per_input_element<1>},
    Formulas{"AvgPool2d", per_input_element<1>},
    Formulas{"AvgPool3d", per_input_element<1>},
    Formulas{"AdaptiveMaxPool1d", per_input_element<1>},
    Formulas{"AdaptiveMaxPool2d", per_input_element<1>},
    Formulas{"AdaptiveMaxPool3d", per_input_element<1>},
    Formulas{"AdaptiveAvgPool1d", per_input_element<1>},
    Formulas{"AdaptiveAvgPool2d", per_input_element<1>},
    Formulas{"AdaptiveAvgPool3d", per_input_element<1>},
    Formulas{"BatchNorm1d", lite_batch_norm},
    Formulas{"BatchNorm2d", lite_batch_norm},
    Formulas{"BatchNorm3d", lite_batch_norm},
    Formulas{"Linear", lite_linear},
    Formulas{"Upsample", lite_upsample},
};

}  // namespace

ModuleFormula moduleprofiler_formula(std::string_view type) noexcept {
  return find_formula(kModuleprofiler, type);
}

ModuleFormula deeplite_formula(std::string_view type) noexcept {
  return find_formula(kDeeplite, type);
}

// ---- torchinfo 1.8.0 ----

std::optional<Estimate> torchinfo_mult_adds(const ModuleFacts& facts) {
  const bool is_convolution = facts.layer().type.find("Conv") != std::string::npos;
  const Sizes* output = facts.output();
  Estimate estimate;
  for (const Parameter& each : facts.layer().parameters) {
    if (each.buffer) continue;
    std::string_view name = each.name;
    if (name.ends_with("_orig")) name.remove_suffix(5);  // pruned: the mask is not known here
    const bool is_plain = name == "weight" || name == "bias";
    if (!is_plain && name.find("weight") == std::string_view::npos &&
        name.find("bias") == std::string_view::npos)
      continue;
    if (output == nullptr || output->empty()) return {};
    const double parameters = product(each.shape);
    if (!is_plain) {
      estimate.count += product(*output, 0, 2) * parameters;
    } else if (is_convolution) {
      estimate.count += size(*output, 0) * product(*output, 2) * parameters;
      if (name == "weight" && each.shape.size() == 2)
        estimate.remark = "torchinfo takes a class with Conv in its name for a convolution";
    } else {
      estimate.count += size(*output, 0) * parameters;
      if (name == "weight" && each.shape.size() == 2 && output->size() > 2)
        estimate.remark = "torchinfo ignores the length of a sequence";
    }
    if (each.name.size() != name.size()) estimate.remark = "A pruned weight counts as a whole";
  }
  return estimate;
}

}  // namespace layertrace::report
