// Language and vision models of several_cuda, each with a twin in tests/python/gpu/twins.py: the
// same paths and the same operators, in the same order.
#pragma once

#include <torch/torch.h>

#include <tuple>

#include <layertrace/layertrace.h>

namespace models {

namespace nn = torch::nn;

constexpr int64_t kSize = 32;
constexpr int64_t kHeads = 2;
constexpr int64_t kWords = 64;
constexpr int64_t kLength = 8;
constexpr int64_t kPatches = 16;  // of a picture
constexpr int64_t kBlocks = 2;

inline torch::Tensor sentences() { return torch::randint(kWords, {2, kLength}, torch::kLong); }

struct LstmModelImpl : nn::Module {
  LstmModelImpl() {
    embedding = register_module("embedding", nn::Embedding(kWords, kSize));
    lstm = register_module("lstm",
                           nn::LSTM(nn::LSTMOptions(kSize, kSize).num_layers(2).batch_first(true)));
    head = register_module("head", nn::Linear(kSize, kWords));
  }
  torch::Tensor forward(const torch::Tensor& words) {
    layertrace::ModuleScope scope(this);
    return head(std::get<0>(lstm(embedding(words))).reshape({-1, kSize}));
  }
  nn::Embedding embedding{nullptr};
  nn::LSTM lstm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(LstmModel);

// Takes words one under the other, of which each sentence has so many: with a third dimension
// LibTorch's Linear does otherwise than Python's.
struct AttentionImpl : nn::Module {
  AttentionImpl(int64_t length, bool causal) : length_(length), causal_(causal) {
    qkv = register_module("qkv", nn::Linear(kSize, 3 * kSize));
    out = register_module("out", nn::Linear(kSize, kSize));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    layertrace::ModuleScope scope(this);
    const auto parts =
        qkv(x).view({-1, length_, 3, kHeads, kSize / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const torch::Tensor heads =
        torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, causal_);
    return out(heads.transpose(1, 2).reshape({-1, kSize}));
  }
  nn::Linear qkv{nullptr}, out{nullptr};

 private:
  int64_t length_;
  bool causal_;
};
TORCH_MODULE(Attention);

struct BlockImpl : nn::Module {
  BlockImpl(int64_t length, bool causal) {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kSize})));
    attention = register_module("attention", Attention(length, causal));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kSize})));
    mlp = register_module("mlp", nn::Sequential(nn::Linear(kSize, 2 * kSize), nn::GELU(),
                                                nn::Linear(2 * kSize, kSize), nn::Dropout(0.1)));
  }
  torch::Tensor forward(torch::Tensor x) {
    layertrace::ModuleScope scope(this);
    x = x + attention(norm1(x));
    return x + mlp->forward(norm2(x));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attention{nullptr};
  nn::Sequential mlp{nullptr};
};
TORCH_MODULE(Block);

inline nn::ModuleList blocks_of(int64_t length, bool causal) {
  nn::ModuleList blocks;
  for (int64_t i = 0; i < kBlocks; ++i) blocks->push_back(Block(length, causal));
  return blocks;
}

// As a vision transformer has it: patches, a token for the class, positions.
struct EncoderImpl : nn::Module {
  EncoderImpl() {
    class_token = register_parameter("class_token", torch::zeros({1, 1, kSize}));
    positions = register_parameter("positions", torch::zeros({1, kPatches + 1, kSize}));
    patches = register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, kSize, 8).stride(8)));
    blocks = register_module("blocks", blocks_of(kPatches + 1, /*causal=*/false));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kSize})));
    head = register_module("head", nn::Linear(kSize, 10));
  }
  torch::Tensor forward(const torch::Tensor& pictures) {
    layertrace::ModuleScope scope(this);
    torch::Tensor x = patches(pictures).flatten(2).transpose(1, 2);
    x = torch::cat({class_token.expand({x.size(0), -1, -1}), x}, 1) + positions;
    x = x.view({-1, kSize});
    for (const auto& block : *blocks) x = block->as<BlockImpl>()->forward(x);
    return head(norm(x).view({-1, kPatches + 1, kSize}).select(1, 0));
  }
  torch::Tensor class_token, positions;
  nn::Conv2d patches{nullptr};
  nn::ModuleList blocks{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Encoder);

// As GPT has it: no word sees a later one, and the words' weight makes the scores, too, in the
// model's own hands.
struct DecoderImpl : nn::Module {
  DecoderImpl() {
    words = register_module("words", nn::Embedding(kWords, kSize));
    positions = register_module("positions", nn::Embedding(kLength, kSize));
    dropout = register_module("dropout", nn::Dropout(0.1));
    blocks = register_module("blocks", blocks_of(kLength, /*causal=*/true));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kSize})));
  }
  torch::Tensor forward(const torch::Tensor& indices) {
    layertrace::ModuleScope scope(this);
    const torch::Tensor places = torch::arange(indices.size(1), indices.options());
    torch::Tensor x = dropout(words(indices) + positions(places)).view({-1, kSize});
    for (const auto& block : *blocks) x = block->as<BlockImpl>()->forward(x);
    return nn::functional::linear(norm(x), words->weight);
  }
  nn::Embedding words{nullptr}, positions{nullptr};
  nn::Dropout dropout{nullptr};
  nn::ModuleList blocks{nullptr};
  nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Decoder);

// LibTorch's own encoder, which calls its layers itself.
struct TransformerImpl : nn::Module {
  TransformerImpl() {
    embedding = register_module("embedding", nn::Embedding(kWords, kSize));
    encoder = register_module(
        "encoder", nn::TransformerEncoder(
                       nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(kSize, kHeads)
                                                       .dim_feedforward(2 * kSize)
                                                       .dropout(0.1)
                                                       .activation(torch::kGELU)),
                       kBlocks));
    head = register_module("head", nn::Linear(kSize, kWords));
  }
  torch::Tensor forward(const torch::Tensor& indices) {
    layertrace::ModuleScope scope(this);
    return head(encoder(embedding(indices.transpose(0, 1))));
  }
  nn::Embedding embedding{nullptr};
  nn::TransformerEncoder encoder{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Transformer);

}  // namespace models
