// Recurrent layers: the formulas against loops that go cell by cell.
#include <gtest/gtest.h>

#include <random>

#include "flops/call_builder.h"

namespace layertrace {
namespace {

struct RecurrentSetting {
  int gates = 4;
  std::int64_t time = 1;
  std::int64_t batch = 1;
  std::int64_t input = 1;
  std::int64_t hidden = 1;
  std::int64_t projection = 0;
  int layers = 1;
  bool bidirectional = false;
  bool biases = true;

  int directions() const { return bidirectional ? 2 : 1; }
  std::int64_t output() const { return projection != 0 ? projection : hidden; }
  std::int64_t layer_input(int layer) const { return layer == 0 ? input : output() * directions(); }
};

RecurrentSetting random_recurrent(std::mt19937& random, int gates) {
  const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(random() % most) + 1; };
  RecurrentSetting setting{
      .gates = gates, .time = up_to(4), .batch = up_to(3), .input = up_to(5), .hidden = up_to(4)};
  if (gates == 4 && random() % 2 == 0) setting.projection = up_to(3);
  setting.layers = static_cast<int>(up_to(3));
  setting.bidirectional = random() % 2 == 0;
  setting.biases = random() % 2 == 0;
  return setting;
}

// As PyTorch lists them.
std::vector<Sizes> weights(const RecurrentSetting& s) {
  std::vector<Sizes> list;
  for (int layer = 0; layer < s.layers; ++layer) {
    for (int direction = 0; direction < s.directions(); ++direction) {
      list.push_back({s.gates * s.hidden, s.layer_input(layer)});
      list.push_back({s.gates * s.hidden, s.output()});
      if (s.biases) list.insert(list.end(), 2, {s.gates * s.hidden});
      if (s.projection != 0) list.push_back({s.projection, s.hidden});
    }
  }
  return list;
}

// One layer and direction at one time, one sequence. `input_only` counts what meets the input
// alone.
void naive_cell(const RecurrentSetting& s, int layer, bool input_only, MultiplyAdd& multiply_add) {
  double sum = 0;
  for (std::int64_t row = 0; row < s.gates * s.hidden; ++row) {
    for (std::int64_t i = 0; i < s.layer_input(layer); ++i) multiply_add(sum, 1, 1);
    if (input_only) continue;
    for (std::int64_t i = 0; i < s.output(); ++i) multiply_add(sum, 1, 1);
  }
  if (input_only) return;
  for (std::int64_t row = 0; row < s.projection; ++row) {
    for (std::int64_t i = 0; i < s.hidden; ++i) multiply_add(sum, 1, 1);
  }
}

std::uint64_t naive_layers(const RecurrentSetting& s) {
  MultiplyAdd multiply_add;
  for (int layer = 0; layer < s.layers; ++layer) {
    for (int direction = 0; direction < s.directions(); ++direction) {
      for (std::int64_t place = 0; place < s.time * s.batch; ++place) {
        naive_cell(s, layer, false, multiply_add);
      }
    }
  }
  return multiply_add.flops();
}

std::uint64_t naive_first_input(const RecurrentSetting& s) {
  MultiplyAdd multiply_add;
  for (int direction = 0; direction < s.directions(); ++direction) {
    for (std::int64_t place = 0; place < s.time * s.batch; ++place) {
      naive_cell(s, 0, true, multiply_add);
    }
  }
  return multiply_add.flops();
}

// What goes back from the first step to the state before it, for all layers and directions.
std::uint64_t naive_first_state(const RecurrentSetting& s) {
  MultiplyAdd multiply_add;
  double sum = 0;
  for (std::int64_t cell = 0; cell < std::int64_t{s.layers} * s.directions() * s.batch; ++cell) {
    for (std::int64_t gate = 0; gate < s.gates * s.hidden; ++gate) {
      for (std::int64_t unit = 0; unit < s.output(); ++unit) multiply_add(sum, 1, 1);
    }
  }
  return multiply_add.flops();
}

std::uint64_t units(const RecurrentSetting& s) {
  return static_cast<std::uint64_t>(s.time * s.batch * s.hidden * s.layers * s.directions());
}

TEST(Recurrent, AgreesWithLoops) {
  struct Layers {
    const char* name;
    int gates;
    std::uint64_t aux;
    std::uint64_t aux_biases;
  };
  std::mt19937 random(8);
  for (int i = 0; i < 60; ++i) {
    for (const auto& [name, gates, aux, aux_biases] :
         {Layers{"aten::lstm", 4, 19, 8}, Layers{"aten::gru", 3, 14, 6},
          Layers{"aten::rnn_tanh", 1, 2, 2}, Layers{"aten::rnn_relu", 1, 2, 2}}) {
      const RecurrentSetting setting = random_recurrent(random, gates);
      const auto rest = [&](CallBuilder& call) {
        call.tensors("hx", {})
            .tensors("params", weights(setting))
            .flag("has_biases", setting.biases)
            .integer("num_layers", setting.layers)
            .number("dropout", 0)
            .flag("train", true)
            .flag("bidirectional", setting.bidirectional);
      };
      CallBuilder call(name, "input");
      call.tensor("input", {setting.time, setting.batch, setting.input});
      rest(call);
      EXPECT_EQ(call.kind(), OpKind::kWrapper);
      EXPECT_EQ(call.flops(), naive_layers(setting)) << name;
      EXPECT_EQ(call.aux_flops(), units(setting) * (aux + (setting.biases ? aux_biases : 0)));

      // Sequences of one length, packed.
      CallBuilder packed(name, "data");
      packed.tensor("data", {setting.time * setting.batch, setting.input})
          .tensor("batch_sizes", {setting.time});
      rest(packed);
      EXPECT_EQ(packed.flops(), naive_layers(setting)) << name;
    }
  }
}

TEST(Recurrent, AgreesWithLoopsForTheLibrarysLayers) {
  std::mt19937 random(9);
  for (int i = 0; i < 60; ++i) {
    const int mode = i % 4;  // ReLU, tanh, LSTM, GRU
    const RecurrentSetting setting = random_recurrent(random, mode == 2 ? 4 : mode == 3 ? 3 : 1);
    const std::int64_t stride = 2 + (setting.biases ? 2 : 0) + (setting.projection != 0 ? 1 : 0);
    const auto describe = [&](CallBuilder& call) {
      call.tensor("input", {setting.batch, setting.time, setting.input})
          .tensors("weight", weights(setting))
          .integer("weight_stride0", stride)
          .integer("mode", mode)
          .integer("num_layers", setting.layers)
          .flag("bidirectional", setting.bidirectional);
    };
    CallBuilder forward("aten::_cudnn_rnn");
    describe(forward);
    EXPECT_EQ(forward.flops(), naive_layers(setting));
    EXPECT_EQ(forward.kind(), OpKind::kPrimitive);

    const auto backward = [&](const Sizes& mask) {
      CallBuilder call("aten::_cudnn_rnn_backward");
      describe(call);
      call.tensor("hx", {std::int64_t{setting.layers} * setting.directions(), setting.batch,
                         setting.hidden});
      return call.ints("output_mask", mask).flops();
    };
    EXPECT_EQ(backward({1, 1, 1, 1}), 2 * naive_layers(setting));
    EXPECT_EQ(backward({0, 1, 1, 1}), 2 * naive_layers(setting) - naive_first_input(setting));
    const std::uint64_t first_state = naive_first_state(setting);
    EXPECT_EQ(backward({1, 0, 0, 1}), 2 * naive_layers(setting) - first_state);
    EXPECT_EQ(backward({1, 0, 0, 0}), naive_layers(setting) - first_state);
  }
}

TEST(Recurrent, CountsOneLayerOfOneDnnPerCall) {
  const RecurrentSetting setting{.gates = 4, .time = 3, .batch = 2, .input = 5, .hidden = 4};
  CallBuilder forward("aten::mkldnn_rnn_layer");
  forward.tensor("input", {3, 2, 5})
      .tensor("weight0", {16, 5})
      .tensor("weight1", {16, 4})
      .tensor("weight2", {16})
      .tensor("weight3", {16})
      .flag("reverse", false)
      .integer("mode", 2)
      .flag("has_biases", true);
  EXPECT_EQ(forward.flops(), naive_layers(setting));
  EXPECT_EQ(forward.aux_flops(), units(setting) * 27);
  CallBuilder backward("aten::mkldnn_rnn_layer_backward");
  backward.tensor("input", {3, 2, 5})
      .tensor("weight1", {16, 5})
      .tensor("weight2", {16, 4})
      .tensor("weight3", {16})
      .tensor("weight4", {16})
      .integer("mode", 2)
      .flag("has_biases", true);
  EXPECT_EQ(backward.flops(), 2 * naive_layers(setting));

  // What nobody needs is made all the same, but not counted.
  CallBuilder in_part("aten::mkldnn_rnn_layer_backward");
  in_part.constant("input", {3, 2, 5})
      .tensor("weight1", {16, 5})
      .tensor("weight2", {16, 4})
      .constant("hx_", {2, 4})
      .integer("mode", 2)
      .flag("has_biases", true);
  EXPECT_EQ(in_part.flops(),
            2 * naive_layers(setting) - naive_first_input(setting) - naive_first_state(setting));
}

TEST(Recurrent, CountsOneStep) {
  const RecurrentSetting setting{.gates = 3, .batch = 2, .input = 5, .hidden = 4};
  CallBuilder call("aten::gru_cell");
  call.tensor("input", {2, 5})
      .tensor("hx", {2, 4})
      .tensor("w_ih", {12, 5})
      .tensor("w_hh", {12, 4})
      .none("b_ih")
      .none("b_hh");
  EXPECT_EQ(call.flops(), naive_layers(setting));
  EXPECT_EQ(call.aux_flops(), units(setting) * 14);
}

TEST(Recurrent, CountsGatesAloneAsAux) {
  CallBuilder call("aten::_thnn_fused_lstm_cell");
  call.tensor("input_gates", {2, 16})
      .tensor("hidden_gates", {2, 16})
      .tensor("cx", {2, 4})
      .tensor("input_bias", {16});
  EXPECT_EQ(call.flops(), 0u);
  EXPECT_EQ(call.aux_flops(), 8u * 27);
}

// A layer of Embedding(10000, 256) and LSTM(256, 512, 2 layers) on ids of (4, 32).
TEST(Recurrent, CountsALanguageModelsLayers) {
  const RecurrentSetting setting{.input = 256, .hidden = 512, .layers = 2};
  CallBuilder call("aten::lstm", "input");
  call.tensor("input", {4, 32, 256})
      .tensors("params", weights(setting))
      .flag("has_biases", true)
      .integer("num_layers", 2)
      .flag("bidirectional", false);
  EXPECT_EQ(call.flops(), 939'524'096u);
}

TEST(Recurrent, SaysWhatItCannotCount) {
  // Weights packed out of sight come as nothing.
  CallBuilder packed("aten::quantized_lstm", "input");
  packed.tensor("input", {3, 2, 5})
      .none("params")
      .integer("num_layers", 1)
      .flag("bidirectional", false);
  EXPECT_FALSE(packed.cost());
  CallBuilder other_width("aten::lstm", "input");
  other_width.tensor("input", {3, 2, 6})
      .tensors("params", {{16, 5}, {16, 4}})
      .integer("num_layers", 1)
      .flag("bidirectional", false);
  EXPECT_FALSE(other_width.cost());
  CallBuilder uneven("aten::lstm", "input");
  uneven.tensor("input", {3, 2, 5})
      .tensors("params", {{16, 5}, {16, 4}, {16}})
      .integer("num_layers", 2)
      .flag("bidirectional", false);
  EXPECT_FALSE(uneven.cost());
}

}  // namespace
}  // namespace layertrace
