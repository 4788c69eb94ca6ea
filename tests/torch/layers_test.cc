// Every layer of LibTorch: it shows up by itself, with one call, and all that it does, forward and
// backward, is its own.

#include <cxxabi.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>
#include <set>

#include "torch/cases.h"
#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

template <typename Holder, typename... Inputs>
Case with_indices(std::string type, Holder layer, Inputs... inputs) {
  return {std::move(type), layer.ptr(),
          [=]() mutable { return tensors(layer->forward_with_indices(inputs...)); },
          "with indices"};
}
template <typename Holder, typename... Inputs>
Case packed(std::string type, Holder layer, Inputs... inputs) {
  return {std::move(type), layer.ptr(),
          [=]() mutable { return tensors(layer->forward_with_packed_input(inputs...)); }, "packed"};
}

// ---- Inputs ----

Tensor positive(std::vector<int64_t> sizes) {
  return torch::rand(sizes).add(0.1).set_requires_grad(true);
}
Tensor labels(int64_t classes, std::vector<int64_t> sizes) {
  return torch::randint(0, classes, sizes, torch::dtype(torch::kLong));
}
Tensor signs(std::vector<int64_t> sizes) {
  return labels(2, std::move(sizes)).mul(2).sub(1).to(torch::kFloat);
}

using Cases = std::vector<Case>;

const std::array<int64_t, 2> kOutputSize{14, 14};

void add_matrix_layers(Cases& cases) {
  cases.push_back(a_case("Linear", nn::Linear(4, 3), leaf({2, 4})));
  cases.push_back(a_case("Bilinear", nn::Bilinear(4, 3, 2), leaf({5, 4}), leaf({5, 3})));
  cases.push_back(a_case("Identity", nn::Identity(), leaf({2, 4})));
  cases.push_back(a_case("Conv1d", nn::Conv1d(2, 3, 3), leaf({2, 2, 8})));
  cases.push_back(a_case("Conv2d", nn::Conv2d(2, 3, 3), leaf({2, 2, 8, 8})));
  cases.push_back(a_case("Conv3d", nn::Conv3d(2, 3, 3), leaf({2, 2, 5, 5, 5})));
  const auto circular = nn::Conv2dOptions(2, 3, 3).padding(1).padding_mode(torch::kCircular);
  cases.push_back(a_case("Conv2d", nn::Conv2d(circular), leaf({2, 2, 8, 8})));
  cases.push_back(a_case("ConvTranspose1d", nn::ConvTranspose1d(2, 3, 3), leaf({2, 2, 8})));
  cases.push_back(a_case("ConvTranspose2d", nn::ConvTranspose2d(2, 3, 3), leaf({2, 2, 6, 6})));
  cases.push_back(a_case("ConvTranspose3d", nn::ConvTranspose3d(2, 3, 3), leaf({2, 2, 4, 4, 4})));
  const auto strided = nn::ConvTranspose2dOptions(2, 3, 3).stride(2);
  const std::optional<at::IntArrayRef> size{kOutputSize};
  cases.push_back(
      a_case("ConvTranspose2d", nn::ConvTranspose2d(strided), leaf({2, 2, 6, 6}), size));
  cases.push_back(a_case("Embedding", nn::Embedding(10, 3), labels(10, {2, 4})));
  cases.push_back(a_case("EmbeddingBag", nn::EmbeddingBag(10, 3), labels(10, {2, 4})));
  const nn::EmbeddingBag sums(nn::EmbeddingBagOptions(10, 3).mode(torch::kSum));
  cases.push_back(a_case("EmbeddingBag", sums, labels(10, {4}), torch::tensor({0, 1}), leaf({4})));
  cases.push_back(a_case("Fold", nn::Fold(nn::FoldOptions({4, 4}, {2, 2})), leaf({1, 8, 9})));
  cases.push_back(a_case("Unfold", nn::Unfold(nn::UnfoldOptions({2, 2})), leaf({1, 2, 4, 4})));
  cases.push_back(a_case("Flatten", nn::Flatten(), leaf({2, 3, 4})));
  cases.push_back(
      a_case("Unflatten", nn::Unflatten(nn::UnflattenOptions(1, {2, 2})), leaf({2, 4})));
  cases.push_back(a_case("PixelShuffle", nn::PixelShuffle(2), leaf({1, 8, 3, 3})));
  cases.push_back(a_case("PixelUnshuffle", nn::PixelUnshuffle(2), leaf({1, 2, 4, 4})));
  const auto twice =
      nn::UpsampleOptions().scale_factor(std::vector<double>{2.0}).mode(torch::kNearest);
  cases.push_back(a_case("Upsample", nn::Upsample(twice), leaf({1, 2, 4})));
  cases.push_back(
      a_case("Functional", nn::Functional([](Tensor x) { return x.sin(); }), leaf({2, 4})));
}

void add_norms(Cases& cases) {
  cases.push_back(a_case("LayerNorm", nn::LayerNorm(nn::LayerNormOptions({4})), leaf({2, 4})));
  cases.push_back(a_case("GroupNorm", nn::GroupNorm(2, 4), leaf({2, 4, 3})));
  cases.push_back(a_case("LocalResponseNorm", nn::LocalResponseNorm(2), leaf({2, 4, 3, 3})));
  cases.push_back(a_case("CrossMapLRN2d", nn::CrossMapLRN2d(3), leaf({2, 4, 3, 3})));
}

void add_recurrent_layers(Cases& cases) {
  const Tensor x = leaf({5, 2, 4});
  const auto sequence =
      nn::utils::rnn::pack_padded_sequence(torch::randn({5, 2, 4}), torch::tensor({5, 3}));
  cases.push_back(a_case("RNN", nn::RNN(4, 3), x));
  cases.push_back(packed("RNN", nn::RNN(4, 3), sequence));
  cases.push_back(
      a_case("LSTM", nn::LSTM(nn::LSTMOptions(4, 3).num_layers(2).bidirectional(true)), x));
  cases.push_back(packed("LSTM", nn::LSTM(4, 3), sequence));
  cases.push_back(a_case("GRU", nn::GRU(4, 3), x));
  cases.push_back(packed("GRU", nn::GRU(4, 3), sequence));
  using State = std::tuple<Tensor, Tensor>;
  cases.push_back(a_case("LSTM", nn::LSTM(4, 3), x,
                         std::make_optional(State(leaf({1, 2, 3}), leaf({1, 2, 3})))));
  cases.push_back(a_case("LSTMCell", nn::LSTMCell(4, 3), leaf({2, 4}),
                         std::make_optional(State(leaf({2, 3}), leaf({2, 3})))));
  cases.push_back(a_case("GRU", nn::GRU(4, 3), x, leaf({1, 2, 3})));
  cases.push_back(a_case("RNNCell", nn::RNNCell(4, 3), leaf({2, 4})));
  cases.push_back(a_case("LSTMCell", nn::LSTMCell(4, 3), leaf({2, 4})));
  cases.push_back(a_case("GRUCell", nn::GRUCell(4, 3), leaf({2, 4})));
}

void add_attention(Cases& cases) {
  const Tensor x = leaf({5, 2, 8});
  const Tensor memory = leaf({6, 2, 8});
  const nn::TransformerEncoderLayer encoder_layer(
      nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  const nn::TransformerDecoderLayer decoder_layer(
      nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16));
  cases.push_back(a_case("MultiheadAttention", nn::MultiheadAttention(8, 2), x, x, x));
  const Tensor mask = torch::full({5, 5}, -1e9).triu(1);
  cases.push_back(a_case("MultiheadAttention", nn::MultiheadAttention(8, 2), x, x, x, Tensor(),
                         false, mask, true));
  cases.push_back(a_case("TransformerEncoderLayer", encoder_layer, x, mask));
  cases.push_back(a_case("TransformerDecoderLayer", decoder_layer, x, memory));
  cases.push_back(a_case("TransformerEncoder", nn::TransformerEncoder(encoder_layer, 2), x));
  cases.push_back(
      a_case("TransformerDecoder", nn::TransformerDecoder(decoder_layer, 2), x, memory));
  nn::TransformerOptions options(8, 2, 1, 1);
  cases.push_back(a_case("Transformer", nn::Transformer(options.dim_feedforward(16)), memory, x));
}

void add_activations(Cases& cases) {
  const Tensor x = leaf({2, 4, 3, 3});
  cases.push_back(a_case("CELU", nn::CELU(), x));
  cases.push_back(a_case("ELU", nn::ELU(), x));
  cases.push_back(a_case("GELU", nn::GELU(), x));
  cases.push_back(a_case("GLU", nn::GLU(1), x));
  cases.push_back(a_case("Hardshrink", nn::Hardshrink(), x));
  cases.push_back(a_case("Hardtanh", nn::Hardtanh(), x));
  cases.push_back(a_case("LeakyReLU", nn::LeakyReLU(), x));
  cases.push_back(a_case("LogSigmoid", nn::LogSigmoid(), x));
  cases.push_back(a_case("LogSoftmax", nn::LogSoftmax(1), x));
  cases.push_back(a_case("Mish", nn::Mish(), x));
  cases.push_back(a_case("PReLU", nn::PReLU(), x));
  cases.push_back(a_case("RReLU", nn::RReLU(), x));
  cases.push_back(a_case("ReLU", nn::ReLU(), x));
  cases.push_back(a_case("ReLU6", nn::ReLU6(), x));
  cases.push_back(a_case("SELU", nn::SELU(), x));
  cases.push_back(a_case("SiLU", nn::SiLU(), x));
  cases.push_back(a_case("Sigmoid", nn::Sigmoid(), x));
  cases.push_back(a_case("Softmax", nn::Softmax(1), x));
  cases.push_back(a_case("Softmax2d", nn::Softmax2d(), x));
  cases.push_back(a_case("Softmin", nn::Softmin(1), x));
  cases.push_back(a_case("Softplus", nn::Softplus(), x));
  cases.push_back(a_case("Softshrink", nn::Softshrink(), x));
  cases.push_back(a_case("Softsign", nn::Softsign(), x));
  cases.push_back(a_case("Tanh", nn::Tanh(), x));
  cases.push_back(a_case("Tanhshrink", nn::Tanhshrink(), x));
  cases.push_back(a_case("Threshold", nn::Threshold(0.1, 20), x));
  cases.push_back(a_case("Dropout", nn::Dropout(), x));
  cases.push_back(a_case("Dropout2d", nn::Dropout2d(), x));
  cases.push_back(a_case("Dropout3d", nn::Dropout3d(), leaf({2, 4, 3, 3, 3})));
  cases.push_back(a_case("AlphaDropout", nn::AlphaDropout(), x));
  cases.push_back(a_case("FeatureAlphaDropout", nn::FeatureAlphaDropout(), x));
}

void add_poolings(Cases& cases) {
  const Tensor x1 = leaf({2, 4, 8});
  const Tensor x2 = leaf({2, 4, 8, 8});
  const Tensor x3 = leaf({2, 4, 6, 6, 6});
  cases.push_back(a_case("AvgPool1d", nn::AvgPool1d(2), x1));
  cases.push_back(a_case("AvgPool2d", nn::AvgPool2d(2), x2));
  cases.push_back(a_case("AvgPool3d", nn::AvgPool3d(2), x3));
  cases.push_back(a_case("MaxPool1d", nn::MaxPool1d(2), x1));
  cases.push_back(a_case("MaxPool2d", nn::MaxPool2d(2), x2));
  cases.push_back(a_case("MaxPool3d", nn::MaxPool3d(2), x3));
  cases.push_back(with_indices("MaxPool1d", nn::MaxPool1d(2), x1));
  cases.push_back(with_indices("MaxPool2d", nn::MaxPool2d(2), x2));
  cases.push_back(with_indices("MaxPool3d", nn::MaxPool3d(2), x3));
  cases.push_back(a_case("AdaptiveAvgPool1d", nn::AdaptiveAvgPool1d(2), x1));
  cases.push_back(a_case("AdaptiveAvgPool2d", nn::AdaptiveAvgPool2d(2), x2));
  cases.push_back(a_case("AdaptiveAvgPool3d", nn::AdaptiveAvgPool3d(2), x3));
  cases.push_back(a_case("AdaptiveMaxPool1d", nn::AdaptiveMaxPool1d(2), x1));
  cases.push_back(a_case("AdaptiveMaxPool2d", nn::AdaptiveMaxPool2d(2), x2));
  cases.push_back(a_case("AdaptiveMaxPool3d", nn::AdaptiveMaxPool3d(2), x3));
  cases.push_back(with_indices("AdaptiveMaxPool1d", nn::AdaptiveMaxPool1d(2), x1));
  cases.push_back(with_indices("AdaptiveMaxPool2d", nn::AdaptiveMaxPool2d(2), x2));
  cases.push_back(with_indices("AdaptiveMaxPool3d", nn::AdaptiveMaxPool3d(2), x3));
  const auto fractional2 = nn::FractionalMaxPool2dOptions(2).output_size(3);
  const auto fractional3 = nn::FractionalMaxPool3dOptions(2).output_size(3);
  cases.push_back(a_case("FractionalMaxPool2d", nn::FractionalMaxPool2d(fractional2), x2));
  cases.push_back(a_case("FractionalMaxPool3d", nn::FractionalMaxPool3d(fractional3), x3));
  cases.push_back(with_indices("FractionalMaxPool2d", nn::FractionalMaxPool2d(fractional2), x2));
  cases.push_back(with_indices("FractionalMaxPool3d", nn::FractionalMaxPool3d(fractional3), x3));
  cases.push_back(a_case("LPPool1d", nn::LPPool1d(2, 2), positive({2, 4, 8})));
  cases.push_back(a_case("LPPool2d", nn::LPPool2d(2, 2), positive({2, 4, 8, 8})));
  cases.push_back(a_case("LPPool3d", nn::LPPool3d(2, 2), positive({2, 4, 6, 6, 6})));
  const auto where = [](std::vector<int64_t> sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return torch::arange(count).view(sizes);
  };
  cases.push_back(a_case("MaxUnpool1d", nn::MaxUnpool1d(2), leaf({1, 1, 4}), where({1, 1, 4})));
  const std::optional<std::vector<int64_t>> unpooled(std::vector<int64_t>{1, 1, 5});
  cases.push_back(a_case("MaxUnpool1d", nn::MaxUnpool1d(nn::MaxUnpool1dOptions(2).stride(1)),
                         leaf({1, 1, 4}), where({1, 1, 4}), unpooled));
  cases.push_back(
      a_case("MaxUnpool2d", nn::MaxUnpool2d(2), leaf({1, 1, 2, 2}), where({1, 1, 2, 2})));
  cases.push_back(
      a_case("MaxUnpool3d", nn::MaxUnpool3d(2), leaf({1, 1, 2, 2, 2}), where({1, 1, 2, 2, 2})));
  cases.push_back(a_case("ConstantPad1d", nn::ConstantPad1d(1, 0.5), x1));
  cases.push_back(a_case("ConstantPad2d", nn::ConstantPad2d(1, 0.5), x2));
  cases.push_back(a_case("ConstantPad3d", nn::ConstantPad3d(1, 0.5), x3));
  cases.push_back(a_case("ReflectionPad1d", nn::ReflectionPad1d(1), x1));
  cases.push_back(a_case("ReflectionPad2d", nn::ReflectionPad2d(1), x2));
  cases.push_back(a_case("ReflectionPad3d", nn::ReflectionPad3d(1), x3));
  cases.push_back(a_case("ReplicationPad1d", nn::ReplicationPad1d(1), x1));
  cases.push_back(a_case("ReplicationPad2d", nn::ReplicationPad2d(1), x2));
  cases.push_back(a_case("ReplicationPad3d", nn::ReplicationPad3d(1), x3));
  cases.push_back(a_case("ZeroPad1d", nn::ZeroPad1d(1), x1));
  cases.push_back(a_case("ZeroPad2d", nn::ZeroPad2d(1), x2));
  cases.push_back(a_case("ZeroPad3d", nn::ZeroPad3d(1), x3));
}

void add_losses(Cases& cases) {
  const Tensor x = leaf({4, 5});
  const Tensor y = torch::randn({4, 5});
  const Tensor classes = labels(5, {4});
  cases.push_back(a_case("L1Loss", nn::L1Loss(), x, y));
  cases.push_back(a_case("MSELoss", nn::MSELoss(), x, y));
  cases.push_back(a_case("SmoothL1Loss", nn::SmoothL1Loss(), x, y));
  cases.push_back(a_case("HuberLoss", nn::HuberLoss(), x, y));
  cases.push_back(a_case("KLDivLoss", nn::KLDivLoss(), x, torch::rand({4, 5})));
  cases.push_back(a_case("BCELoss", nn::BCELoss(), torch::rand({4, 5}).set_requires_grad(true),
                         torch::rand({4, 5})));
  cases.push_back(a_case("BCEWithLogitsLoss", nn::BCEWithLogitsLoss(), x, torch::rand({4, 5})));
  cases.push_back(a_case("CrossEntropyLoss", nn::CrossEntropyLoss(), x, classes));
  cases.push_back(a_case("NLLLoss", nn::NLLLoss(), x, classes));
  cases.push_back(a_case("PoissonNLLLoss", nn::PoissonNLLLoss(), x, torch::rand({4, 5})));
  cases.push_back(a_case("HingeEmbeddingLoss", nn::HingeEmbeddingLoss(), x, signs({4, 5})));
  cases.push_back(a_case("MultiMarginLoss", nn::MultiMarginLoss(), x, classes));
  cases.push_back(a_case("MultiLabelMarginLoss", nn::MultiLabelMarginLoss(), x, labels(5, {4, 5})));
  cases.push_back(
      a_case("MultiLabelSoftMarginLoss", nn::MultiLabelSoftMarginLoss(), x, torch::rand({4, 5})));
  cases.push_back(a_case("SoftMarginLoss", nn::SoftMarginLoss(), x, signs({4, 5})));
  cases.push_back(a_case("CosineEmbeddingLoss", nn::CosineEmbeddingLoss(), x, y, signs({4})));
  cases.push_back(a_case("MarginRankingLoss", nn::MarginRankingLoss(), leaf({4}), torch::randn({4}),
                         signs({4})));
  cases.push_back(a_case("TripletMarginLoss", nn::TripletMarginLoss(), x, y, torch::randn({4, 5})));
  cases.push_back(a_case("TripletMarginWithDistanceLoss", nn::TripletMarginWithDistanceLoss(), x, y,
                         torch::randn({4, 5})));
  cases.push_back(a_case("CTCLoss", nn::CTCLoss(), leaf({6, 2, 5}), labels(4, {2, 3}).add(1),
                         torch::tensor({6, 6}), torch::tensor({3, 3})));
  cases.push_back(a_case("CosineSimilarity", nn::CosineSimilarity(), x, y));
  cases.push_back(a_case("PairwiseDistance", nn::PairwiseDistance(), x, y));
  const nn::AdaptiveLogSoftmaxWithLossOptions options(32, 10, {4, 7});
  cases.push_back(a_case("AdaptiveLogSoftmaxWithLoss", nn::AdaptiveLogSoftmaxWithLoss(options),
                         leaf({8, 32}), torch::tensor({0, 1, 4, 5, 7, 8, 2, 9})));
}

Cases all_cases() {
  torch::manual_seed(0);
  Cases cases;
  for (const auto add : {add_matrix_layers, add_norms, add_recurrent_layers, add_attention,
                         add_activations, add_poolings, add_losses}) {
    add(cases);
  }
  return cases;
}

// ---- The table ----

TEST(Layers, EachOwnsAllThatItDoes) {
  for (const Case& layer : all_cases()) {
    SCOPED_TRACE(layer.type + " " + layer.note);
    expect_owns_all(layer);
  }
}

// The share of a layer's time in which its operators ran.
double explained(const PhaseStats& stats) {
  EXPECT_LE(stats.activity_ns.mean, stats.host_ns.mean);
  return stats.activity_ns.mean / stats.host_ns.mean;
}

// Where a layer works for long, its activities must tell so: an operator that does the work is
// never passed over.
TEST(Layers, ActivitiesExplainTheTime) {
  const std::vector<Case> heavy{
      a_case("Conv1d", nn::Conv1d(32, 32, 3), leaf({16, 32, 512})),
      a_case("Conv2d", nn::Conv2d(16, 32, 3), leaf({8, 16, 48, 48})),
      a_case("Conv3d", nn::Conv3d(8, 8, 3), leaf({2, 8, 16, 16, 16})),
      a_case("ConvTranspose2d", nn::ConvTranspose2d(16, 16, 3), leaf({8, 16, 32, 32})),
      a_case("Linear", nn::Linear(512, 512), leaf({512, 512})),
      a_case("LSTM", nn::LSTM(128, 128), leaf({32, 16, 128})),
      a_case("MultiheadAttention", nn::MultiheadAttention(128, 4), leaf({128, 8, 128}),
             leaf({128, 8, 128}), leaf({128, 8, 128})),
      a_case("BatchNorm2d", nn::BatchNorm2d(32), leaf({16, 32, 64, 64})),
      a_case("InstanceNorm2d", nn::InstanceNorm2d(32), leaf({16, 32, 64, 64})),
      a_case("LayerNorm", nn::LayerNorm(nn::LayerNormOptions({512})), leaf({2048, 512})),
      a_case("MaxPool2d", nn::MaxPool2d(2), leaf({16, 32, 64, 64})),
      a_case("Embedding", nn::Embedding(20000, 256), labels(20000, {64, 64})),
  };
  for (const Case& layer : heavy) {
    SCOPED_TRACE(layer.type);
    Model parent;
    parent->add("layer", layer.module);
    parent->body = [&](Tensor /*x*/) { return layer.call()[0]; };
    parent->forward({}).sum().backward();
    RunOptions options;
    options.log = false;
    // Another program may take the processor between two operators, but not time after time.
    double forward = 0;
    double backward = 0;
    for (int attempt = 0; attempt < 20 && std::min(forward, backward) < 0.7; ++attempt) {
      const Recorded run = record(*parent, [&] { parent->forward({}).sum().backward(); }, options);
      forward = std::max(forward, explained(run.layer("layer").phase(Phase::kForward)));
      backward = std::max(backward, explained(run.layer("layer").phase(Phase::kBackward)));
    }
    EXPECT_GE(forward, 0.7);
    EXPECT_GE(backward, 0.7);
  }
}

// ---- None is forgotten ----

// Mangled and plain names of LibTorch's exported forwards.
std::vector<std::pair<std::string, std::string>> exported_forwards() {
  std::vector<std::pair<std::string, std::string>> result;
  FILE* nm = popen(LAYERTRACE_NM " -D --defined-only " LAYERTRACE_LIBTORCH_CPU, "r");
  std::array<char, 1 << 16> line{};
  while (nm != nullptr && std::fgets(line.data(), line.size(), nm) != nullptr) {
    std::string symbol = line.data();
    symbol = symbol.substr(symbol.rfind(' ') + 1);
    symbol = symbol.substr(0, symbol.find_first_of("@\n"));
    if (!symbol.starts_with("_ZN5torch2nn") || symbol.find("forward") == std::string::npos)
      continue;
    int status = 0;
    char* plain = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    static const std::regex kForward(R"(torch::nn::\w+Impl(<.*>)?::forward\w*\(.*)");
    if (plain != nullptr && std::regex_match(plain, kForward) &&
        !std::strstr(plain, "forward_helper")) {
      result.emplace_back(symbol, plain);
    }
    std::free(plain);
  }
  if (nm != nullptr) pclose(nm);
  return result;
}

TEST(Layers, EveryExportedForwardIsOurs) {
  Dl_info ours{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&layertrace::detail::recording), &ours), 0);
  const auto forwards = exported_forwards();
  EXPECT_GE(forwards.size(), 109U);
  for (const auto& [symbol, plain] : forwards) {
    Dl_info found{};
    void* first = dlsym(RTLD_DEFAULT, symbol.c_str());
    ASSERT_NE(first, nullptr) << plain;
    ASSERT_NE(dladdr(first, &found), 0) << plain;
    EXPECT_EQ(found.dli_fbase, ours.dli_fbase) << plain << " is called in " << found.dli_fname;
  }
}

// "MaxPool2d::forward_with_indices", for a padding's base class its own: "ZeroPad2d::forward".
TEST(Layers, EveryExportedForwardIsInTheTable) {
  std::set<std::string> tested;
  for (const Case& each : all_cases()) {
    const std::string how = each.note == "with indices" ? "_with_indices"
                            : each.note == "packed"     ? "_with_packed_input"
                                                        : "";
    tested.insert(each.type + "::forward" + how);
  }
  for (const auto& [symbol, plain] : exported_forwards()) {
    static const std::regex kNames(
        R"(torch::nn::(?:\w+Impl<.*torch::nn::)?(\w+)Impl>?::(forward\w*)\(.*)");
    std::smatch names;
    ASSERT_TRUE(std::regex_match(plain, names, kNames)) << plain;
    EXPECT_TRUE(tested.contains(names.str(1) + "::" + names.str(2)))
        << plain << " is called by no test";
  }
}

}  // namespace
}  // namespace layertrace::test
