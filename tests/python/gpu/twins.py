"""The Python twins of tests/cuda/programs/several_models.h: the same paths and operators."""

import math

import torch
from torch import nn
from torch.nn import functional

SIZE, HEADS, WORDS, LENGTH, PATCHES, BLOCKS = 32, 2, 64, 8, 16, 2


class LstmModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.lstm = nn.LSTM(SIZE, SIZE, num_layers=2, batch_first=True)
        self.head = nn.Linear(SIZE, WORDS)

    def forward(self, words):
        return self.head(self.lstm(self.embedding(words))[0].reshape(-1, SIZE))


class Attention(nn.Module):
    def __init__(self, length, causal):
        super().__init__()
        self.length, self.causal = length, causal
        self.qkv, self.out = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, SIZE)

    def forward(self, x):
        parts = self.qkv(x).view(-1, self.length, 3, HEADS, SIZE // HEADS).permute(2, 0, 3, 1, 4)
        heads = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=self.causal)
        return self.out(heads.transpose(1, 2).reshape(-1, SIZE))


class Block(nn.Module):
    def __init__(self, length, causal):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(SIZE), Attention(length, causal)
        self.norm2 = nn.LayerNorm(SIZE)
        self.mlp = nn.Sequential(
            nn.Linear(SIZE, 2 * SIZE), nn.GELU(), nn.Linear(2 * SIZE, SIZE), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, SIZE))
        self.positions = nn.Parameter(torch.zeros(1, PATCHES + 1, SIZE))
        self.patches = nn.Conv2d(3, SIZE, 8, stride=8)
        self.blocks = nn.ModuleList(Block(PATCHES + 1, causal=False) for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(SIZE), nn.Linear(SIZE, 10)

    def forward(self, pictures):
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1) + self.positions
        x = x.view(-1, SIZE)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).view(-1, PATCHES + 1, SIZE).select(1, 0))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, SIZE), nn.Embedding(LENGTH, SIZE)
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Block(LENGTH, causal=True) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(SIZE)

    def forward(self, indices):
        places = torch.arange(indices.shape[1], device=indices.device)
        x = self.dropout(self.words(indices) + self.positions(places)).view(-1, SIZE)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.words.weight)


def libtorch_linear(x, weight, bias):
    """What LibTorch does with three dimensions: Python flattens them."""
    product = x.matmul(weight.t())
    product += bias
    return product


class LibTorchLinear(nn.Linear):
    def forward(self, x):
        return libtorch_linear(x, self.weight, self.bias)


class LibTorchAttention(nn.Module):
    """What LibTorch's MultiheadAttention computes: Python's own has other operators."""

    def __init__(self):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * SIZE, SIZE))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * SIZE))
        self.out_proj = LibTorchLinear(SIZE, SIZE)

    def forward(self, x):
        length, batch, _ = x.shape
        chunks = libtorch_linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        q, k, v = chunks[0] * (1 / math.sqrt(SIZE // HEADS)), chunks[1], chunks[2]
        q, k, v = (
            each.contiguous().view(length, batch * HEADS, SIZE // HEADS).transpose(0, 1)
            for each in (q, k, v)
        )
        weights = functional.softmax(torch.bmm(q, k.transpose(1, 2)), -1)
        weights = functional.dropout(weights, 0.1, self.training)
        heads = torch.bmm(weights, v).transpose(0, 1).contiguous().view(length, batch, SIZE)
        # The weights are used, the module is not called.
        output = libtorch_linear(heads, self.out_proj.weight, self.out_proj.bias)
        return output, weights.view(batch, HEADS, length, length).sum(1) / HEADS


class LibTorchLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = LibTorchAttention()
        self.linear1, self.dropout = LibTorchLinear(SIZE, 2 * SIZE), nn.Dropout(0.1)
        self.linear2 = LibTorchLinear(2 * SIZE, SIZE)
        self.norm1, self.norm2 = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.dropout1, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x):
        x = self.norm1(x + self.dropout1(self.self_attn(x)[0]))
        inner = self.linear2(self.dropout(functional.gelu(self.linear1(x))))
        return self.norm2(x + self.dropout2(inner))


class LibTorchEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(LibTorchLayer() for _ in range(BLOCKS))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(WORDS, SIZE), LibTorchEncoder()
        self.head = LibTorchLinear(SIZE, WORDS)

    def forward(self, indices):
        return self.head(self.encoder(self.embedding(indices.transpose(0, 1))))


def sentences():
    return torch.randint(0, WORDS, (2, LENGTH))
