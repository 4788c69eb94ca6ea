// Recurrent layers: at each of T·B places, each layer and direction multiplies by W_ih, W_hh and,
// with a projection, W_hr: 2·T·B·(numel(W_ih) + numel(W_hh) + numel(W_hr)). All matrices among the
// weights are that, and all vectors biases, so neither layers nor directions need be told apart.
//
// A fused backward is twice that, once for what goes back through the products and once for the
// weights, less the input's part of the first layer where the input needs no gradient, and less
// that of W_hh in the first of the T steps where the first state needs none: what went back would
// be for nobody. A backward of single steps does not make it, and a library's is counted alike.
//
// aux_flops: what the gates do, per place and hidden unit, and what biases add to it:
//   - LSTM 19 (8): 4 sums, 3 sigmoids of 3, 2 tanh, 4 for the cell and the output. Backward 23 (4).
//   - GRU 14 (6): 3 sums, 2 sigmoids of 3, 1 tanh, 4 for the state. Backward 16 (4).
//   - RNN 2 (2): 1 sum, 1 tanh or ReLU. Backward 3 (1).
#include <algorithm>

#include "flops/families.h"

namespace layertrace {
namespace {

struct Cell {
  int gates;
  int forward;
  int forward_bias;
  int backward;
  int backward_bias;
};
constexpr Cell kRnnCell = {1, 2, 2, 3, 1};
constexpr Cell kLstmCell = {4, 19, 8, 23, 4};
constexpr Cell kGruCell = {3, 14, 6, 16, 4};

const Cell& cell_of_gates(unsigned gates) {
  return gates == 4 ? kLstmCell : gates == 3 ? kGruCell : kRnnCell;
}
// cuDNN's, MIOpen's and oneDNN's numbers: RNN with ReLU, with tanh, LSTM, GRU.
const Cell& cell_of_mode(std::int64_t mode) {
  return mode == 2 ? kLstmCell : mode == 3 ? kGruCell : kRnnCell;
}

bool is_matrix(const TensorShape& weight) { return weight.is_plain && weight.sizes.size() == 2; }

// Without the last dimension: time and batch in either order, or what is packed of both.
std::optional<Count> places_of(const TensorShape* input) {
  if (input == nullptr || input->sizes.size() < 2) return {};
  return elements(input->sizes.first(input->sizes.size() - 1));
}

struct Layers {
  Count places = {};
  Count weights = {};        // elements of all matrices
  Count hidden = {};         // units of all layers and directions
  Count input_weights = {};  // elements of the matrices that meet the layers' input
  Count state_weights = {};  // elements of the matrices that meet the state before
  bool has_biases = false;
};

// From a flat list of weights: per layer and direction W_ih, W_hh, biases if any, W_hr if any.
// `stride` is how many each has.
std::optional<Layers> layers_of(const TensorShape* input, std::span<const TensorShape> weights,
                                std::size_t stride, bool bidirectional, int gates) {
  const auto places = places_of(input);
  if (!places || stride < 2 || weights.empty() || weights.size() % stride != 0) return {};
  Layers layers{.places = *places};
  for (std::size_t first = 0; first < weights.size(); first += stride) {
    const TensorShape& w_ih = weights[first];
    const TensorShape& w_hh = weights[first + 1];
    if (!is_matrix(w_ih) || !is_matrix(w_hh) || w_ih.sizes[0] != w_hh.sizes[0]) return {};
    layers.hidden += w_hh.sizes[0] / gates;
    layers.state_weights += elements(w_hh);
    for (const TensorShape& weight : weights.subspan(first, stride)) {
      if (is_matrix(weight)) {
        layers.weights += elements(weight);
      } else {
        layers.has_biases = true;
      }
    }
  }
  if (weights[0].sizes[1] != input->sizes.back()) return {};
  layers.input_weights = elements(weights[0]);
  if (bidirectional && weights.size() > stride) layers.input_weights += elements(weights[stride]);
  return layers;
}

OpCost layers_cost(const Layers& layers, const Cell& cell) {
  const int gates = cell.forward + (layers.has_biases ? cell.forward_bias : 0);
  return contraction_cost(layers.places * layers.weights, layers.places * layers.hidden * gates);
}

// What the backward is to make. `batch`: how many first states there are; 0 if one is not given.
struct Gradients {
  bool input = true;
  bool state = true;
  bool weights = true;
  Count batch = {};
};

// The state has (layers,) batch, units; without a batch there is one.
Count batch_of(const TensorShape* state) {
  if (state == nullptr) return 0;
  return state->sizes.size() >= 2 ? state->sizes[state->sizes.size() - 2] : 1;
}

OpCost layers_backward_cost(const Layers& layers, const Cell& cell, const Gradients& makes) {
  Count macs = layers.places * layers.weights;
  const auto leave_out = [&](Count part) {
    macs = macs.value() - std::min(macs.value(), part.value());
  };
  if (!makes.input) leave_out(layers.places * layers.input_weights);
  if (!makes.state) leave_out(makes.batch * layers.state_weights);
  const bool makes_weights = makes.weights;
  if (makes_weights) macs += layers.places * layers.weights;
  const int gates = cell.backward + (layers.has_biases && makes_weights ? cell.backward_bias : 0);
  return contraction_cost(macs, layers.places * layers.hidden * gates);
}

// ---- lstm, gru, rnn_tanh, rnn_relu ----

constexpr SlotNames kLayers = {"input|data", "params", "num_layers", "bidirectional"};

std::optional<Layers> layers_of(const Arguments& arguments) {
  const auto params = arguments.tensors(1);
  const bool bidirectional = arguments.flag(3);
  const std::int64_t count = arguments.integer(2).value_or(1) * (bidirectional ? 2 : 1);
  if (count < 1 || params.size() % static_cast<std::size_t>(count) != 0) return {};
  return layers_of(arguments.tensor(0), params, params.size() / static_cast<std::size_t>(count),
                   bidirectional, static_cast<int>(arguments.per_element()));
}

// per_element: how many gates there are.
std::optional<OpCost> recurrent_cost(const Arguments& arguments) {
  const auto layers = layers_of(arguments);
  if (!layers) return {};
  return layers_cost(*layers, cell_of_gates(arguments.per_element()));
}

std::optional<OpCost> recurrent_backward_cost(const Arguments& arguments) {
  const auto layers = layers_of(arguments);
  if (!layers) return {};
  return layers_backward_cost(*layers, cell_of_gates(arguments.per_element()), {});
}

// One step. Slots: input, w_ih, w_hh, b_ih. per_element: gates.
std::optional<OpCost> cell_cost(const Arguments& arguments) {
  const TensorShape* input = arguments.tensor(0);
  const TensorShape* w_ih = arguments.tensor(1);
  const TensorShape* w_hh = arguments.tensor(2);
  if (input == nullptr || w_ih == nullptr || w_hh == nullptr || input->sizes.empty()) return {};
  if (!is_matrix(*w_ih) || !is_matrix(*w_hh) || input->sizes.back() != w_ih->sizes[1]) return {};
  return layers_cost({.places = elements(input->sizes.first(input->sizes.size() - 1)),
                      .weights = elements(*w_ih) + elements(*w_hh),
                      .hidden = w_hh->sizes[0] / arguments.per_element(),
                      .input_weights = {},
                      .has_biases = arguments.has(3)},
                     cell_of_gates(arguments.per_element()));
}

// ---- cuDNN, MIOpen ----

constexpr SlotNames kLibraryLayers = {
    "input", "weight", "weight_stride0", "mode", "bidirectional", "output_mask", "hx"};

std::optional<Layers> library_layers_of(const Arguments& arguments, const Cell& cell) {
  const auto stride = arguments.integer(2);
  if (!stride || *stride < 2) return {};
  return layers_of(arguments.tensor(0), arguments.tensors(1), static_cast<std::size_t>(*stride),
                   arguments.flag(4), cell.gates);
}

std::optional<OpCost> library_cost(const Arguments& arguments) {
  const Cell& cell = cell_of_mode(arguments.integer(3).value_or(0));
  const auto layers = library_layers_of(arguments, cell);
  if (!layers) return {};
  return layers_cost(*layers, cell);
}

// The mask: input, hx, cx, weights.
std::optional<OpCost> library_backward_cost(const Arguments& arguments) {
  const Cell& cell = cell_of_mode(arguments.integer(3).value_or(0));
  const auto layers = library_layers_of(arguments, cell);
  const auto mask = arguments.ints(5);
  if (!layers || mask.size() != 4) return {};
  return layers_backward_cost(*layers, cell,
                              {.input = mask[0] != 0,
                               .state = mask[1] != 0,
                               .weights = mask[3] != 0,
                               .batch = batch_of(arguments.tensor(6))});
}

// ---- oneDNN: one layer and direction per call ----

constexpr SlotNames kOneLayer = {"input", "weight0", "weight1", "mode", "has_biases"};
constexpr SlotNames kOneLayerBackward = {"input", "weight1",    "weight2",
                                         "mode",  "has_biases", "hx_"};

std::optional<Layers> one_layer_of(const Arguments& arguments, const Cell& cell) {
  const TensorShape* w_ih = arguments.tensor(1);
  const TensorShape* w_hh = arguments.tensor(2);
  if (w_ih == nullptr || w_hh == nullptr) return {};
  const TensorShape weights[] = {*w_ih, *w_hh};
  auto layers = layers_of(arguments.tensor(0), weights, 2, false, cell.gates);
  if (layers) layers->has_biases = arguments.flag(4);
  return layers;
}

std::optional<OpCost> one_layer_cost(const Arguments& arguments) {
  const Cell& cell = cell_of_mode(arguments.integer(3).value_or(2));
  const auto layers = one_layer_of(arguments, cell);
  if (!layers) return {};
  return layers_cost(*layers, cell);
}

// It has no mask, and makes all gradients always; those that nobody needs do not count.
std::optional<OpCost> one_layer_backward_cost(const Arguments& arguments) {
  const Cell& cell = cell_of_mode(arguments.integer(3).value_or(2));
  const auto layers = one_layer_of(arguments, cell);
  if (!layers) return {};
  const TensorShape* state = arguments.tensor(5);
  return layers_backward_cost(*layers, cell,
                              {.input = arguments.tensor(0)->needs_gradient,
                               .state = state == nullptr || state->needs_gradient,
                               .batch = batch_of(state)});
}

// ---- Gates alone: the products were made before ----

// Slots: a tensor with all gates, a bias or whether there is one. per_element: gates.
template <bool kBackward>
std::optional<OpCost> gates_cost(const Arguments& arguments) {
  const TensorShape* gates = arguments.tensor(0);
  if (gates == nullptr) return {};
  const Cell& cell = cell_of_gates(arguments.per_element());
  const bool has_bias = arguments.has(1) && arguments.flag(1, true);
  const int each = kBackward ? cell.backward + (has_bias ? cell.backward_bias : 0)
                             : cell.forward + (has_bias ? cell.forward_bias : 0);
  return aux_cost(Count(elements(*gates).value() / arguments.per_element()) * each);
}

// A GRU's workspace has not one value per gate; its gradient has one per hidden unit.
std::optional<OpCost> gru_gates_backward_cost(const Arguments& arguments) {
  const TensorShape* gradient = arguments.tensor(0);
  if (gradient == nullptr) return {};
  const int each = kGruCell.backward + (arguments.flag(1) ? kGruCell.backward_bias : 0);
  return aux_cost(elements(*gradient) * each);
}

}  // namespace

void add_recurrent_formulas(FormulaIndex& index) {
  // fvcore sees each as one operator, which it does not know.
  struct Family {
    unsigned gates;
    std::string_view layers;
    std::string_view cells;
  };
  constexpr Family kFamilies[] = {
      {4, "lstm quantized_lstm", "lstm_cell quantized_lstm_cell"},
      {3, "gru quantized_gru", "gru_cell quantized_gru_cell"},
      {1, "rnn_tanh rnn_relu",
       "rnn_tanh_cell rnn_relu_cell quantized_rnn_tanh_cell quantized_rnn_relu_cell"},
  };
  for (const Family& family : kFamilies) {
    index.add_names(family.layers, {.kind = OpKind::kWrapper,
                                    .cost = recurrent_cost,
                                    .arguments = kLayers,
                                    .per_element = family.gates,
                                    .fvcore = fvcore_none});
    index.add_names(family.cells, {.kind = OpKind::kWrapper,
                                   .cost = cell_cost,
                                   .arguments = {"input", "w_ih", "w_hh", "b_ih"},
                                   .per_element = family.gates,
                                   .fvcore = fvcore_none});
  }

  constexpr auto kFused = OpKind::kPrimitive;
  constexpr FormulaRow kRows[] = {
      {"aten::_lstm_mps", kFused, recurrent_cost, kLayers, 4},
      {"aten::lstm_mps_backward", kFused, recurrent_backward_cost, kLayers, 4},
      {"aten::_cudnn_rnn", kFused, library_cost, kLibraryLayers},
      {"aten::_cudnn_rnn_backward", kFused, library_backward_cost, kLibraryLayers},
      {"aten::miopen_rnn", kFused, library_cost, kLibraryLayers},
      {"aten::miopen_rnn_backward", kFused, library_backward_cost, kLibraryLayers},
      {"aten::mkldnn_rnn_layer", kFused, one_layer_cost, kOneLayer},
      {"aten::mkldnn_rnn_layer_backward", kFused, one_layer_backward_cost, kOneLayerBackward},
      {"aten::_thnn_fused_lstm_cell",
       OpKind::kFree,
       gates_cost<false>,
       {"input_gates", "input_bias"},
       4},
      {"aten::_thnn_fused_lstm_cell_backward",
       OpKind::kFree,
       gates_cost<true>,
       {"workspace", "has_bias"},
       4},
      {"aten::_thnn_fused_lstm_cell_backward_impl",
       OpKind::kFree,
       gates_cost<true>,
       {"workspace", "has_bias"},
       4},
      {"aten::_thnn_fused_gru_cell",
       OpKind::kFree,
       gates_cost<false>,
       {"input_gates", "input_bias"},
       3},
      {"aten::_thnn_fused_gru_cell_backward",
       OpKind::kFree,
       gru_gates_backward_cost,
       {"grad_hy", "has_bias"}},
  };
  index.add(kRows);
}

}  // namespace layertrace
