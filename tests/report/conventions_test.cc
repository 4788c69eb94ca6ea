// Other tools' numbers: each formula against a number made by hand, whole models against what the
// tools say of them (tests/data/goldens), and deeplite's published figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Sizes = std::vector<std::int64_t>;
using Parameters = std::vector<std::pair<std::string, Sizes>>;
using Json = nlohmann::ordered_json;

std::string text_of(const Sizes& sizes) {
  std::string text = "float32[";
  for (const std::int64_t size : sizes)
    text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

struct Call {
  Parameters parameters = {};
  std::string input = {};
  std::string output = {};
};

class NetMaker : public made::ProfileMaker {
 public:
  NetMaker() { profile.counted_share = 1; }

  // What is known of a layer that was called once or more, always alike.
  void called(int index, const Call& call) {
    Layer& layer = profile.layers[static_cast<std::size_t>(index)];
    for (const auto& [name, shape] : call.parameters) {
      Parameter parameter;
      parameter.name = name;
      parameter.shape = shape;
      parameter.dtype = "float32";
      parameter.elements = 1;
      for (const std::int64_t size : shape) parameter.elements *= static_cast<std::uint64_t>(size);
      parameter.bytes = 4 * parameter.elements;
      parameter.trainable = true;
      layer.self_params += parameter.elements;
      for (int at = index; at >= 0; at = profile.layers[static_cast<std::size_t>(at)].parent) {
        profile.layers[static_cast<std::size_t>(at)].params += parameter.elements;
        profile.layers[static_cast<std::size_t>(at)].param_bytes += parameter.bytes;
      }
      layer.parameters.push_back(std::move(parameter));
    }
    if (layer.calls > 0) layer.shapes = {{call.input, call.output, layer.calls}};
  }

  int add(int parent, const std::string& name, const std::string& type, const Call& call,
          double calls = 1) {
    const int index = layer(parent, name, type, {.calls = calls});
    called(index, call);
    return index;
  }

  void operates(int layer, const std::string& name, const Amounts& amounts,
                Phase phase = Phase::kForward) {
    Operator& op = profile.operators.emplace_back();
    op.name = name;
    op.calls = 1;
    op.amounts = amounts;
    op.uses.push_back({layer, phase, 1, amounts});
    const auto p = static_cast<std::size_t>(phase);
    profile.layers[static_cast<std::size_t>(layer)].phases[p].self_amounts += amounts;
    for (int at = layer; at >= 0; at = profile.layers[static_cast<std::size_t>(at)].parent)
      profile.layers[static_cast<std::size_t>(at)].phases[p].amounts += amounts;
  }
};

std::map<std::string, double> as_map(const ConventionCounts::Counts& counts) {
  return {counts.begin(), counts.end()};
}

// A net with one layer inside.
ConventionCounts counted(Convention convention, const std::string& type, const Call& call,
                         const std::string& kernel_size = "") {
  NetMaker net;
  const int root = net.root("Net");
  const int only = net.add(root, "only", type, call);
  net[only].kernel_size = kernel_size;
  return counts_by(net.profile, convention);
}

double count_of(Convention convention, const std::string& type, const Call& call,
                const std::string& kernel_size = "") {
  const ConventionCounts counts = counted(convention, type, call, kernel_size);
  EXPECT_EQ(as_map(counts.by_module).at(""), as_map(counts.by_module).at("only"));
  return as_map(counts.by_module).at("only");
}

double profiled(const std::string& type, const Call& call, const std::string& kernel_size = "") {
  return count_of(Convention::kModuleprofiler, type, call, kernel_size);
}

TEST(Conventions, HaveNames) {
  EXPECT_EQ(*parse_convention("layertrace"), Convention::kLayertrace);
  EXPECT_EQ(*parse_convention("fvcore"), Convention::kFvcore);
  EXPECT_EQ(*parse_convention("torchinfo"), Convention::kTorchinfo);
  EXPECT_EQ(*parse_convention("moduleprofiler"), Convention::kModuleprofiler);
  EXPECT_EQ(*parse_convention("deeplite"), Convention::kDeeplite);
  const auto unknown = parse_convention("thop\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(),
            "cannot use \"thop\\n\" as a convention: no such name. Use one of: layertrace, fvcore, "
            "torchinfo, moduleprofiler, deeplite");
}

TEST(Conventions, OfAnEmptyProfileAreZero) {
  for (const auto convention :
       {Convention::kLayertrace, Convention::kFvcore, Convention::kTorchinfo,
        Convention::kModuleprofiler, Convention::kDeeplite}) {
    const ConventionCounts counts = counts_by(Profile{}, convention);
    EXPECT_EQ(as_map(counts.by_module), (std::map<std::string, double>{{"", 0}}));
    EXPECT_THAT(counts.by_operator, IsEmpty());
    EXPECT_THAT(counts.notes,
                testing::ElementsAre("Operators and shapes were not counted in this recording."));
  }
}

TEST(Conventions, TakeWhateverTextShapesAre) {
  for (const std::string text : {"", "…", "float32[", "float32[]", "float32[0]", "float32[1]",
                                 "float32[9223372036854775807, 9223372036854775807]"}) {
    for (const std::string type :
         {"Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "LSTM", "GRUCell", "BatchNorm2d",
          "LayerNorm", "Softmax", "AvgPool2d", "MaxPool2d", "ReLU", "Upsample", "Embedding"}) {
      for (const Parameters& parameters :
           {Parameters{}, Parameters{{"weight", {}}}, Parameters{{"weight", {1}}, {"bias", {}}},
            Parameters{{"weight", {1, 2, 3, 4}}},
            Parameters{{"weight_ih_l0", {4}}, {"weight_hh_l0", {}}}}) {
        for (const auto convention :
             {Convention::kTorchinfo, Convention::kModuleprofiler, Convention::kDeeplite})
          counted(convention, type, {parameters, text, text}, text);
      }
    }
  }
}

// ---- moduleprofiler ----

TEST(Moduleprofiler, CountsALinearLayer) {
  const Call call{{{"weight", {32, 8}}, {"bias", {32}}}, "float32[1, 8]", "float32[1, 32]"};
  const ConventionCounts counts = counted(Convention::kModuleprofiler, "Linear", call);
  EXPECT_EQ(as_map(counts.by_module).at("only"), 512);
  EXPECT_EQ(as_map(counts.by_operator).at("Linear"), 512);
  EXPECT_EQ(counts.parameters, 288);
  EXPECT_EQ(counts.parameter_bytes * 8, 9'216);
  EXPECT_EQ(counts.unit, "operations");
  EXPECT_THAT(counts.notes, IsEmpty());

  EXPECT_EQ(profiled("Linear", {{{"weight", {32, 8}}}, "float32[1, 8]", "float32[1, 32]"}), 480);
  EXPECT_EQ(
      profiled("Linear",
               {{{"weight", {32, 8}}, {"bias", {32}}}, "float32[2, 5, 8]", "float32[2, 5, 32]"}),
      5120);
}

TEST(Moduleprofiler, CountsConvolutions) {
  // 6 × 4 × 4 outputs, each of 3 · 3 · 3 products.
  const std::string in = "float32[2, 3, 6, 6]";
  const std::string out = "float32[2, 6, 4, 4]";
  EXPECT_EQ(profiled("Conv2d", {{{"weight", {6, 3, 3, 3}}, {"bias", {6}}}, in, out}), 2 * 96 * 54);
  EXPECT_EQ(profiled("Conv2d", {{{"weight", {6, 3, 3, 3}}}, in, out}), 2 * 96 * 53);
  EXPECT_EQ(profiled("Conv2d", {{{"weight", {6, 1, 3, 3}}}, in, out}), 2 * 96 * 17);  // groups = 3
  EXPECT_EQ(
      profiled("Conv1d",
               {{{"weight", {4, 2, 5}}, {"bias", {4}}}, "float32[3, 2, 9]", "float32[3, 4, 5]"}),
      3 * 4 * 5 * 20);
  EXPECT_EQ(profiled("Conv1d", {{{"weight", {4, 2, 5}}}, "float32[2, 9]", "float32[4, 5]"}),
            4 * 5 * 19);
  EXPECT_EQ(
      profiled("Conv3d",
               {{{"weight", {4, 2, 5, 5, 5}}}, "float32[1, 2, 9, 9, 9]", "float32[1, 4, 5, 5, 5]"}),
      0);
}

TEST(Moduleprofiler, CountsNorms) {
  const Parameters affine{{"weight", {5}}, {"bias", {5}}};
  EXPECT_EQ(profiled("BatchNorm2d", {affine, "float32[2, 5, 3, 4]", "float32[2, 5, 3, 4]"}),
            5 * (7 * 24 + 4));
  EXPECT_EQ(profiled("BatchNorm2d", {{}, "float32[2, 5, 3, 4]", "float32[2, 5, 3, 4]"}),
            5 * (5 * 24 + 4));
  EXPECT_EQ(profiled("BatchNorm1d", {affine, "float32[8, 5]", "float32[8, 5]"}), 5 * (7 * 8 + 4));
  EXPECT_EQ(profiled("BatchNorm1d", {affine, "float32[8, 5, 2]", ""}), 5 * (7 * 16 + 4));
  EXPECT_EQ(profiled("LayerNorm", {affine, "float32[2, 3, 5]", ""}), 6 * (7 * 5 + 4));
  EXPECT_EQ(profiled("LayerNorm", {{{"weight", {5}}}, "float32[2, 3, 5]", ""}), 6 * (6 * 5 + 4));
  EXPECT_EQ(profiled("LayerNorm", {{{"weight", {3, 5}}, {"bias", {3, 5}}}, "float32[2, 3, 5]", ""}),
            2 * (7 * 15 + 4));
  EXPECT_EQ(profiled("LayerNorm", {{}, "float32[2, 3, 5]", ""}), 6 * (5 * 5 + 4));
}

TEST(Moduleprofiler, CountsByElement) {
  const std::map<std::string, double> per_element{{"ReLU", 1},    {"Sigmoid", 3},   {"ELU", 3},
                                                  {"PReLU", 4},   {"LeakyReLU", 4}, {"Softplus", 5},
                                                  {"Tanh", 7},    {"SELU", 7},      {"Identity", 0},
                                                  {"Dropout", 0}, {"GELU", 0}};
  for (const auto& [type, count] : per_element)
    EXPECT_EQ(profiled(type, {{}, "float32[2, 10]", "float32[2, 10]"}), 20 * count) << type;
  EXPECT_THAT(counted(Convention::kModuleprofiler, "GELU", {}).notes,
              testing::ElementsAre("There is no formula for: GELU."));
  EXPECT_EQ(profiled("Softmax", {{}, "float32[2, 3, 10]", ""}), 6 * 39);
}

TEST(Moduleprofiler, CountsPooling) {
  const std::string in = "float32[2, 3, 8, 8]";
  const std::string out = "float32[2, 3, 4, 4]";
  EXPECT_EQ(profiled("MaxPool2d", {{}, in, out}, "2"), 96);
  EXPECT_EQ(profiled("AdaptiveAvgPool2d", {{}, in, out}), 96);
  EXPECT_EQ(profiled("AvgPool2d", {{}, in, out}, "2 × 3"), 96 * 6);
  EXPECT_EQ(profiled("AvgPool2d", {{}, in, out}, "2"), 96 * 4);
  EXPECT_EQ(profiled("AvgPool1d", {{}, "float32[2, 3, 8]", "float32[2, 3, 4]"}, "2"), 24 * 2);
}

// Hidden size 3, input 2; T · B = 10.
Parameters recurrent(int gates, int layers, bool both_ways, bool bias) {
  Parameters parameters;
  for (int i = 0; i < layers; ++i) {
    for (const std::string suffix : {"", "_reverse"}) {
      if (!suffix.empty() && !both_ways) continue;
      const std::string end = "_l" + std::to_string(i) + suffix;
      parameters.push_back({"weight_ih" + end,
                            {std::int64_t{gates} * 3, i == 0      ? 2
                                                      : both_ways ? 6
                                                                  : 3}});
      parameters.push_back({"weight_hh" + end, {std::int64_t{gates} * 3, 3}});
      if (!bias) continue;
      parameters.push_back({"bias_ih" + end, {std::int64_t{gates} * 3}});
      parameters.push_back({"bias_hh" + end, {std::int64_t{gates} * 3}});
    }
  }
  return parameters;
}

TEST(Moduleprofiler, CountsRecurrentLayers) {
  const auto count = [](const std::string& type, const Parameters& parameters) {
    return profiled(type, {parameters, "float32[5, 2, 2]", "float32[5, 2, 3], float32[1, 2, 3]"});
  };
  EXPECT_EQ(count("LSTM", recurrent(4, 1, false, true)), 8 * 10 * 3 * (2 + 3 + 3.875));
  EXPECT_EQ(count("LSTM", recurrent(4, 2, false, true)), 8 * 10 * 3 * (2 + 9 + 7.75));
  EXPECT_EQ(count("LSTM", recurrent(4, 2, true, true)), 16 * 10 * 3 * (2 + 12 + 7.75));
  EXPECT_EQ(count("LSTM", recurrent(4, 2, true, false)), 16 * 10 * 3 * (2 + 12 + 5.75));
  EXPECT_EQ(count("GRU", recurrent(3, 1, false, true)), 6 * 10 * 3 * (2 + 3 + 3.5));
  EXPECT_EQ(count("GRU", recurrent(3, 3, true, false)), 12 * 10 * 3 * (2 + 21 + 7.5));
  const Parameters cell{{"weight_ih", {12, 2}}, {"weight_hh", {12, 3}}};
  EXPECT_EQ(profiled("LSTMCell", {cell, "float32[10, 2]", "float32[10, 3]"}),
            8 * 10 * 3 * (2 + 3 + 3.875));
  EXPECT_EQ(profiled("GRUCell", {cell, "float32[10, 2]", "float32[10, 3]"}),
            6 * 10 * 3 * (2 + 3 + 3.5));
  Parameters projected = recurrent(4, 1, false, true);
  projected.push_back({"weight_hr_l0", {1, 3}});
  EXPECT_EQ(count("LSTM", projected), 0);
}

TEST(Moduleprofiler, CountsOneCallAndSaysSo) {
  NetMaker net;
  const int root = net.root("Net");
  net.add(root, "often", "ReLU", {{}, "float32[4]", "float32[4]"}, 3);
  const int varies = net.add(root, "varies", "ReLU", {}, 3);
  net[varies].shapes = {{"float32[5]", "float32[5]", 2}, {"float32[9]", "float32[9]", 1}};
  net.add(root, "unseen", "Linear", {{{"weight", {2, 2}}}, "…", "…"});
  const ConventionCounts counts = counts_by(net.profile, Convention::kModuleprofiler);
  EXPECT_EQ(as_map(counts.by_module),
            (std::map<std::string, double>{{"", 9}, {"often", 4}, {"varies", 5}, {"unseen", 0}}));
  EXPECT_THAT(counts.notes,
              UnorderedElementsAre(
                  "Of several calls one counts (often).",
                  "Of calls with different shapes the tool counts the last, this the most frequent "
                  "(varies).",
                  "What a formula needs is not known, and counts as 0 (unseen)."));
}

// ---- torchinfo ----

double summarised(const std::string& type, const Call& call) {
  return count_of(Convention::kTorchinfo, type, call);
}

TEST(Torchinfo, CountsByTheNamesOfParameters) {
  EXPECT_EQ(summarised("Conv2d", {{{"weight", {6, 3, 3, 3}}, {"bias", {6}}},
                                  "float32[2, 3, 6, 6]",
                                  "float32[2, 6, 4, 4]"}),
            168 * 2 * 16);
  EXPECT_EQ(summarised("Linear",
                       {{{"weight", {32, 8}}, {"bias", {32}}}, "float32[4, 8]", "float32[4, 32]"}),
            288 * 4);
  EXPECT_EQ(summarised("LSTM", {recurrent(4, 1, false, true), "float32[5, 2, 2]",
                                "float32[5, 2, 3], float32[1, 2, 3]"}),
            10 * (24 + 36 + 24));
  EXPECT_EQ(summarised("Scale", {{{"alpha", {7}}}, "float32[4, 7]", "float32[4, 7]"}), 0);
  EXPECT_EQ(summarised("ReLU", {{}, "float32[4, 7]", "float32[4, 7]"}), 0);
}

TEST(Torchinfo, SaysWhereItGoesWrong) {
  const Parameters weights{{"weight", {32, 8}}, {"bias", {32}}};
  const ConventionCounts sequence = counted(Convention::kTorchinfo, "Linear",
                                            {weights, "float32[4, 16, 8]", "float32[4, 16, 32]"});
  EXPECT_EQ(as_map(sequence.by_module).at(""), 288 * 4);
  EXPECT_THAT(sequence.notes,
              testing::ElementsAre("torchinfo ignores the length of a sequence (only)."));
  const ConventionCounts gpt = counted(Convention::kTorchinfo, "Conv1D",
                                       {weights, "float32[4, 16, 8]", "float32[4, 16, 32]"});
  EXPECT_EQ(as_map(gpt.by_module).at(""), 288 * 4 * 32);
  EXPECT_THAT(gpt.notes, testing::ElementsAre(HasSubstr("for a convolution (only)")));
}

TEST(Torchinfo, CountsLeavesByCall) {
  NetMaker net;
  const int root = net.root("Net");
  const Call linear{{{"weight", {3, 3}}}, "float32[2, 3]", "float32[2, 3]"};
  const int outer = net.add(root, "outer", "Outer", linear);
  net.add(outer, "inner", "Linear", linear, 2);
  const int varies = net.add(root, "varies", "Linear", {linear.parameters}, 3);
  net[varies].shapes = {{"float32[2, 3]", "float32[2, 3]", 2},
                        {"float32[5, 3]", "float32[5, 3]", 1}};
  const int again = net.add(root, "again", "Linear", linear, 1);
  net[again].calls = 2;  // the other one in the backward
  net[again].shapes.front().calls = 2;
  net.not_run(root, "idle", "Linear");
  const ConventionCounts counts = counts_by(net.profile, Convention::kTorchinfo);
  EXPECT_EQ(as_map(counts.by_module), (std::map<std::string, double>{{"", 36 + 81 + 18},
                                                                     {"outer", 36},
                                                                     {"outer.inner", 36},
                                                                     {"varies", 81},
                                                                     {"again", 18},
                                                                     {"idle", 0}}));
  EXPECT_THAT(counts.notes, testing::ElementsAre(HasSubstr("count nothing (outer)")));
}

// ---- deeplite ----

// ResNet18 for small images: a stem of 3 × 3, no max pool, activations and pooling as functions.
class SmallResNet {
 public:
  Profile make(std::int64_t batch = 1) {
    batch_ = batch;
    root_ = net_.root("ResNet");
    std::int64_t channels = 64;
    std::int64_t size = 32;
    convolution(root_, "conv1", "bn1", 3, 64, 3, size);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t out = std::int64_t{64} << i;
      const int layer = net_.layer(root_, "layer" + std::to_string(i + 1), "Sequential");
      if (i > 0) size /= 2;
      for (int j = 0; j < 2; ++j) {
        block(layer, std::to_string(j), channels, out, size);
        channels = out;
      }
      net_.called(layer, {{}, "", image(channels, size)});
    }
    net_.add(root_, "linear", "Linear",
             {{{"weight", {100, 512}}, {"bias", {100}}},
              text_of({batch_, 512}),
              text_of({batch_, 100})});
    net_.called(root_, {{}, image(3, 32), text_of({batch_, 100})});
    return std::move(net_.profile);
  }

 private:
  std::string image(std::int64_t channels, std::int64_t size) const {
    return text_of({batch_, channels, size, size});
  }

  void convolution(int parent, const std::string& name, const std::string& norm, std::int64_t in,
                   std::int64_t out, std::int64_t kernel, std::int64_t size) {
    net_.add(parent, name, "Conv2d",
             {{{"weight", {out, in, kernel, kernel}}}, image(in, size), image(out, size)});
    net_.add(parent, norm, "BatchNorm2d",
             {{{"weight", {out}}, {"bias", {out}}}, image(out, size), image(out, size)});
  }

  void block(int parent, const std::string& name, std::int64_t in, std::int64_t out,
             std::int64_t size) {
    const int block = net_.add(parent, name, "BasicBlock", {{}, "", image(out, size)});
    convolution(block, "conv1", "bn1", in, out, 3, size);
    convolution(block, "conv2", "bn2", out, out, 3, size);
    const int shortcut = net_.add(block, "shortcut", "Sequential", {{}, "", image(out, size)});
    if (in != out) convolution(shortcut, "0", "1", in, out, 1, size);
  }

  NetMaker net_;
  std::int64_t batch_ = 1;
  int root_ = 0;
};

TEST(Deeplite, GivesItsFourFiguresOfResNet18) {
  const ConventionCounts counts = counts_by(SmallResNet().make(), Convention::kDeeplite);
  EXPECT_EQ(as_map(counts.by_module).at(""), 556'697'700);
  EXPECT_EQ(counts.unit, "MACs");
  EXPECT_EQ(counts.parameters, 11'220'132);
  EXPECT_EQ(counts.parameter_bytes, 44'880'528);
  EXPECT_NEAR(counts.model_size_mb.value(), 42.8014, 0.00005);
  EXPECT_NEAR(counts.footprint_mb.value(), 48.4389, 0.00005);
  EXPECT_EQ(counts.footprint_mb.value() * 1024 * 1024, 44'880'528 + 12'288 + 5'899'040);
  EXPECT_THAT(counts.notes, IsEmpty());
}

TEST(Deeplite, CountsForOneSample) {
  const ConventionCounts counts = counts_by(SmallResNet().make(4), Convention::kDeeplite);
  // The bias counts once for the whole batch.
  EXPECT_EQ(as_map(counts.by_module).at(""), 556'697'700 - 75);
  EXPECT_EQ(counts.parameters, 11'220'132);
  EXPECT_EQ(counts.footprint_mb.value() * 1024 * 1024, 44'880'528 + 4 * 12'288 + 5'899'040);
}

TEST(Deeplite, CountsByClass) {
  const auto count = [](const std::string& type, const Call& call) {
    return count_of(Convention::kDeeplite, type, call);
  };
  const std::string in = "float32[1, 3, 8, 8]";
  const std::string out = "float32[1, 6, 4, 4]";
  EXPECT_EQ(count("Conv2d", {{{"weight", {6, 1, 3, 3}}, {"bias", {6}}}, in, out}), 16 * (54 + 6));
  EXPECT_EQ(count("ReLU", {{}, in, in}), 192);
  EXPECT_EQ(count("MaxPool2d", {{}, in, out}), 192);
  EXPECT_EQ(count("BatchNorm2d", {{}, in, in}), 192);
  EXPECT_EQ(count("BatchNorm2d", {{{"weight", {3}}, {"bias", {3}}}, in, in}), 384);
  EXPECT_EQ(count("Upsample", {{}, in, "float32[1, 3, 16, 16]"}), 256);
  EXPECT_EQ(count("GELU", {{}, in, in}), 0);
}

// ---- fvcore and ours ----

// A layer that calls linear twice, attention, and a product of its own; another with a convolution.
Profile attention_net() {
  NetMaker net;
  const int root = net.root("Net");
  const int attention = net.layer(root, "attn", "Attention");
  const int stem = net.layer(root, "stem", "Conv2d");
  net.operates(attention, "aten::linear", {.fvcore_flops = 300, .fvcore_activations = 30});
  net.operates(attention, "aten::addmm", {.flops = 400, .activations = 20});
  net.operates(attention, "aten::mm", {.flops = 200, .activations = 10});
  net.operates(attention, "aten::matmul", {.fvcore_flops = 50, .fvcore_activations = 9});
  net.operates(attention, "aten::bmm",
               {.flops = 180, .activations = 18, .fvcore_flops = 30, .fvcore_activations = 8});
  net.operates(attention, "aten::scaled_dot_product_attention", {.flops = 1000, .activations = 7});
  net.operates(attention, "aten::layer_norm", {.fvcore_flops = 25});
  net.operates(stem, "aten::conv2d", {.fvcore_flops = 60, .fvcore_activations = 5});
  net.operates(stem, "aten::convolution", {.flops = 120, .activations = 5});
  net.operates(stem, "aten::convolution_backward", {.flops = 240, .activations = 9},
               Phase::kBackward);
  return std::move(net.profile);
}

TEST(Fvcore, CountsWhatAProgramCalls) {
  const ConventionCounts counts = counts_by(attention_net(), Convention::kFvcore);
  EXPECT_EQ(counts.by_module, (ConventionCounts::Counts{{"", 465}, {"attn", 405}, {"stem", 60}}));
  EXPECT_EQ(counts.by_operator,
            (ConventionCounts::Counts{
                {"linear", 300}, {"conv", 60}, {"matmul", 50}, {"bmm", 30}, {"layer_norm", 25}}));
}

TEST(Fvcore, CountsActivationsOfWhatItSees) {
  const ConventionCounts counts = counts_by(attention_net(), Convention::kFvcore);
  // Neither those of bmm inside matmul nor those of attention.
  EXPECT_EQ(
      as_map(counts.activations_by_operator),
      (std::map<std::string, double>{{"linear", 30}, {"conv", 5}, {"matmul", 9}, {"bmm", 8}}));
  EXPECT_EQ(counts.activations_by_module,
            (ConventionCounts::Counts{{"", 52}, {"attn", 47}, {"stem", 5}}));
  EXPECT_THAT(counts.notes,
              testing::ElementsAre(
                  "fvcore does not see the products of aten::scaled_dot_product_attention: 52.6 % "
                  "of the forward's multiply-adds.",
                  HasSubstr("aten::bmm: 1.05 %")));
}

TEST(Layertrace, CountsTheForward) {
  const ConventionCounts counts = counts_by(attention_net(), Convention::kLayertrace);
  EXPECT_EQ(counts.by_module,
            (ConventionCounts::Counts{{"", 1900}, {"attn", 1780}, {"stem", 120}}));
  EXPECT_EQ(as_map(counts.by_operator).at("aten::convolution"), 120);
  EXPECT_FALSE(as_map(counts.by_operator).contains("aten::convolution_backward"));
  EXPECT_EQ(as_map(counts.activations_by_module).at("stem"), 5);
}

TEST(Conventions, SumUpSeveralModels) {
  NetMaker net;
  net.profile.layers.resize(2);
  net.profile.layers[0].path = "generator";
  net.profile.layers[1].path = "critic";
  net.operates(0, "aten::mm", {.flops = 10});
  net.operates(1, "aten::mm", {.flops = 5});
  EXPECT_EQ(counts_by(net.profile, Convention::kLayertrace).by_module,
            (ConventionCounts::Counts{{"", 15}, {"generator", 10}, {"critic", 5}}));
}

TEST(CountsTable, HasARowForEachModule) {
  Profile profile = made::small_net();
  profile.counted_share = 1;
  const auto counts = counts_by(profile, Convention::kModuleprofiler);
  const auto table = counts_table(profile, Convention::kModuleprofiler, {.root = "__root__"});
  ASSERT_TRUE(table) << table.error().message();
  ASSERT_EQ(table->rows(), counts.by_module.size());
  EXPECT_EQ(table->find("module")->values.front(), TableValue(std::string("__root__")));
  EXPECT_EQ(table->find("type")->values.front(), TableValue(profile.layers[0].type));
  EXPECT_EQ(table->find("ops")->unit, counts.unit);
  for (std::size_t row = 0; row < table->rows(); ++row)
    EXPECT_EQ(table->find("ops")->values[row], TableValue(counts.by_module[row].second)) << row;
  EXPECT_EQ(table->find("activations"), nullptr);
  const auto ours = counts_table(profile, Convention::kLayertrace);
  ASSERT_TRUE(ours);
  EXPECT_NE(ours->find("activations"), nullptr);
  EXPECT_FALSE(counts_table(profile, Convention::kFvcore, {.module = "nothing"}));
  EXPECT_FALSE(counts_table(profile, Convention::kFvcore, {.columns = {"nothing"}}));
}

TEST(CountsJson, HasEveryPart) {
  const Json json = Json::parse(counts_json(attention_net(), Convention::kFvcore));
  EXPECT_EQ(json["convention"], "fvcore");
  EXPECT_EQ(json["unit"], "MACs");
  EXPECT_EQ(json["by_module"].dump(), R"({"":465,"attn":405,"stem":60})");
  EXPECT_EQ(json["by_operator"]["linear"], 300);
  EXPECT_EQ(json["activations_by_module"]["stem"], 5);
  EXPECT_EQ(json["activations_by_operator"]["conv"], 5);
  EXPECT_FALSE(json.contains("model_size_mb"));
  EXPECT_FALSE(json.contains("footprint_mb"));
  EXPECT_EQ(json["parameters"], 0);
  EXPECT_EQ(json["notes"].size(), 2u);
}

// ---- Whole models ----

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
    ASSERT_NE(source, nullptr);
    std::ifstream file(std::string(source) + "/tests/data/goldens/conventions_" + GetParam() +
                       ".json");
    ASSERT_TRUE(file);
    golden_ = Json::parse(file);
    for (const Json& module : golden_["modules"]) add(module);
  }

  ConventionCounts counts(Convention convention) const {
    return counts_by(net_.profile, convention);
  }

  // The tool's number of each module that has one.
  void expect_modules(const ConventionCounts::Counts& counts, const std::string& key) const {
    const auto by_module = as_map(counts);
    EXPECT_EQ(by_module.size(), golden_["modules"].size());
    for (const Json& module : golden_["modules"]) {
      if (module[key].is_null()) continue;
      EXPECT_EQ(by_module.at(module["path"]), module[key].get<double>()) << module["path"];
    }
  }

  Json golden_;
  NetMaker net_;

 private:
  void add(const Json& module) {
    const std::string path = module["path"];
    const std::size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
    const double calls = module["calls"];
    const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
    const int index = path.empty()
                          ? net_.root(module["type"], {.calls = calls})
                          : net_.layer(indices_.at(parent), name, module["type"], {.calls = calls});
    indices_[path] = index;
    Call call{{}, module["input"], module["output"]};
    for (const auto& [key, sizes] : module["parameters"].items())
      call.parameters.emplace_back(key, sizes.get<Sizes>());
    net_.called(index, call);
    net_[index].kernel_size = module.value("kernel_size", "");
    add_operators(index, module);
  }

  // As PyTorch runs the leaves: linear asks addmm, and so on.
  void add_operators(int layer, const Json& module) {
    const std::string type = module["type"];
    const double seen = module["fvcore_flops"];
    const double activations = module["fvcore_activations"];
    if (type == "Conv2d") {
      net_.operates(layer, "aten::conv2d",
                    {.fvcore_flops = seen, .fvcore_activations = activations});
      net_.operates(layer, "aten::convolution", {.flops = 2 * seen, .activations = activations});
    } else if (type == "Linear") {
      net_.operates(layer, "aten::linear",
                    {.fvcore_flops = seen, .fvcore_activations = activations});
      net_.operates(layer, "aten::addmm", {.flops = 2 * seen, .activations = activations});
    } else if (type == "BatchNorm2d") {
      net_.operates(layer, "aten::batch_norm", {.fvcore_flops = seen});
    } else if (type == "LayerNorm") {
      net_.operates(layer, "aten::layer_norm", {.fvcore_flops = seen});
    } else if (type == "AdaptiveAvgPool2d") {
      net_.operates(layer, "aten::adaptive_avg_pool2d", {.fvcore_flops = seen});
    } else if (type == "LSTM") {
      net_.operates(layer, "aten::mm", {.flops = 1000, .activations = 100});
    } else if (type == "MultiheadAttention" && activations != 0) {
      // These activations are of a run that took the slow path: their FLOPs are in no sum.
      net_.operates(layer, "aten::_native_multi_head_attention",
                    {.flops = 1000, .activations = activations});
      hidden_activations_ += activations;
    }
  }

  std::map<std::string, int> indices_;

 protected:
  double hidden_activations_ = 0;
};

class GoldenModel : public Golden {};  // one batch for all modules

TEST_P(Golden, IsTorchinfos) {
  const ConventionCounts counts = this->counts(Convention::kTorchinfo);
  expect_modules(counts.by_module, "torchinfo_mult_adds");
  EXPECT_EQ(as_map(counts.by_module).at(""), golden_["totals"]["torchinfo_mult_adds"]);
  EXPECT_EQ(counts.parameters, golden_["totals"]["parameters"]);
}

TEST_P(Golden, IsModuleprofilers) {
  const ConventionCounts counts = this->counts(Convention::kModuleprofiler);
  expect_modules(counts.by_module, "moduleprofiler_ops");
  EXPECT_EQ(as_map(counts.by_module).at(""), golden_["totals"]["moduleprofiler_ops"]);
}

TEST_P(GoldenModel, IsDeeplites) {
  const Json& totals = golden_["totals"];
  const ConventionCounts counts = this->counts(Convention::kDeeplite);
  expect_modules(counts.by_module, "deeplite_macs");
  EXPECT_EQ(as_map(counts.by_module).at(""), totals["deeplite_macs"]);
  EXPECT_EQ(counts.parameters, totals["deeplite_parameters"]);
  EXPECT_EQ(counts.footprint_mb.value() * 1024 * 1024, totals["deeplite_footprint_bytes"]);
}

TEST_P(Golden, IsFvcores) {
  const ConventionCounts counts = this->counts(Convention::kFvcore);
  expect_modules(counts.by_module, "fvcore_flops");
  EXPECT_EQ(as_map(counts.by_module).at(""), golden_["totals"]["fvcore_flops"]);
  const auto by_operator = as_map(counts.by_operator);
  for (const auto& [name, flops] : golden_["totals"]["fvcore_by_operator"].items())
    EXPECT_EQ(by_operator.at(name), flops) << name;
  EXPECT_EQ(by_operator.size(), golden_["totals"]["fvcore_by_operator"].size());
  if (hidden_activations_ == 0) expect_modules(counts.activations_by_module, "fvcore_activations");
  EXPECT_EQ(as_map(counts.activations_by_module).at("") + hidden_activations_,
            golden_["totals"]["fvcore_activations"]);
}

const auto kModels =
    testing::Values("resnet18", "mobilenet_v3_small", "lstm_lm", "transformer_encoder");
const auto kName = [](const auto& each) { return each.param; };
INSTANTIATE_TEST_SUITE_P(Models, Golden, kModels, kName);
INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, kModels, kName);
INSTANTIATE_TEST_SUITE_P(Single, Golden, testing::Values("modules"), kName);

}  // namespace
}  // namespace layertrace
