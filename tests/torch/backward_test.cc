// Who owns a backward node, and each operator that runs for it: by the graph, and by layertrace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::Contains;
using ::testing::ElementsAre;
using torch::Tensor;

// Runs the model's forward and backward once in each way, and compares all owners.
void expect_owners_in_each_way(
    Model& model, Makers& makers, const Tensor& x,
    const std::function<void(const Recorded&)>& more = [](const Recorded& /*run*/) {}) {
  for_each_way([&](const RunOptions& options) {
    model->zero_grad();
    const Recorded run =
        record(*model, [&] { makers.claim(model->forward(x).sum(), kNobody).backward(); }, options);
    expect_owners(run, makers);
    more(run);
  });
}

std::ptrdiff_t count(const Strings& strings, const std::string& wanted) {
  return std::count(strings.begin(), strings.end(), wanted);
}

TEST(Backward, InPlaceFunctionalAndResidual) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  auto relu = model->add("relu", nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
  auto b = model->add("b", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    Tensor y = makers.call(relu, "relu", makers.call(a, "a", x));
    y = y.mul(2).tanh_();
    return makers.claim(makers.call(b, "b", y) + y + x, kRoot);
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    EXPECT_EQ(lines(run.nodes()),
              lines({"SumBackward0 of (none)", "AddBackward0 of ", "AddBackward0 of ",
                     "AddmmBackward0 of b", "AccumulateGrad of b", "TBackward0 of b",
                     "AccumulateGrad of b", "TanhBackward0 of ", "MulBackward1 of ",
                     "ReluBackward0 of relu", "AddmmBackward0 of a", "AccumulateGrad of a",
                     "TBackward0 of a", "AccumulateGrad of a"}));
  });
}

// An encoder's layer, written out: gradients join at the residuals and at the three uses of one
// input, and biases are summed, all outside the nodes' own records.
struct Attention {
  explicit Attention(Model& model) {
    for (const char* name : {"q", "k", "v", "o", "up", "down"})
      linears.emplace_back(name, model->add(name, nn::Linear(8, 8)));
    norm1 = model->add("norm1", nn::LayerNorm(nn::LayerNormOptions({8})));
    norm2 = model->add("norm2", nn::LayerNorm(nn::LayerNormOptions({8})));
    gelu = model->add("gelu", nn::GELU());
    drop = model->add("drop", nn::Dropout(0.1));
  }
  Tensor linear(Makers& makers, std::size_t i, Tensor x) {
    return makers.call(linears[i].second, linears[i].first, std::move(x));
  }
  Tensor forward(Makers& makers, const Tensor& x) {
    Tensor y = makers.call(norm1, "norm1", x);
    const Tensor scores = linear(makers, 0, y).matmul(linear(makers, 1, y).transpose(1, 2)) / 2.0;
    y = torch::softmax(scores, -1).matmul(linear(makers, 2, y));
    const Tensor z = x + makers.call(drop, "drop", linear(makers, 3, y));
    y = linear(makers, 4, makers.call(norm2, "norm2", z));
    y = linear(makers, 5, makers.call(gelu, "gelu", y));
    return makers.claim(z + makers.call(drop, "drop", y), kRoot);
  }
  std::vector<std::pair<std::string, nn::Linear>> linears;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::GELU gelu{nullptr};
  nn::Dropout drop{nullptr};
};

TEST(Backward, WhatRunsAroundANodeIsItsOwners) {
  Model model;
  Attention attention(model);
  Makers makers(*model);
  model->body = [&](Tensor x) { return attention.forward(makers, x); };
  expect_owners_in_each_way(
      model, makers, torch::randn({2, 5, 8}, torch::requires_grad()), [&](const Recorded& run) {
        EXPECT_EQ(run.calls("drop"), 2);
        if (!run.profile.run.ops) return;
        // The three projections of one input: the second and third gradient to come are added by
        // the nodes that bring them.
        Strings joins;
        for (const Span& op : run.select(SpanKind::kActivity)) {
          if (op.phase == Phase::kBackward && op.name.starts_with("aten::add"))
            joins.push_back(op.layer);
        }
        EXPECT_GE(joins.size(), 4U);  // q, k, v; and each residual
        for (const Span& op : run.select(SpanKind::kActivity))
          EXPECT_NE(op.cause, Cause::kBetweenNodes) << op.name;
      });
}

// LibTorch's own encoder: its inner layers are called inside libtorch.
TEST(Backward, AnEncodersInnerLayers) {
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16)), 2);
  const Recorded run =
      record(*encoder, [&] { encoder->forward(torch::randn({5, 2, 8})).sum().backward(); });
  Strings scopes{""};
  for (const std::string layer : {"layers.0", "layers.1"}) {
    for (const char* inner : {"", ".self_attn", ".dropout1", ".norm1", ".linear1", ".dropout",
                              ".linear2", ".dropout2", ".norm2"}) {
      scopes.push_back(layer + inner);
    }
  }
  EXPECT_EQ(lines(run.scopes()), lines(scopes));

  // A Linear of that input's shape, alone, has the nodes that each of the inner ones must have.
  nn::Linear alone(8, 16);
  Strings expected;
  {
    const PytorchLog log;
    alone->forward(torch::randn({5, 2, 8}, torch::requires_grad())).sum().backward();
    for (const NodeSeen& node : log.nodes()) {
      if (node.name.find("SumBackward") == std::string::npos) expected.push_back(node.name);
    }
    std::erase_if(expected, [](const std::string& name) {
      return name.find("AccumulateGrad") != std::string::npos;
    });
  }
  for (const std::string path :
       {"layers.0.linear1", "layers.1.linear1", "layers.0.linear2", "layers.1.linear2"}) {
    Strings found;
    std::size_t leaves = 0;
    for (const Span& node : run.select(SpanKind::kNode)) {
      if (node.layer == path && !node.accumulates) found.push_back(node.name);
      leaves += node.layer == path && node.accumulates ? 1 : 0;
    }
    EXPECT_EQ(lines(found), lines(expected)) << path;
    EXPECT_EQ(leaves, 2U) << path;
  }
  // Attention uses its output projection's parameters without calling it.
  EXPECT_EQ(run.layer("layers.0.self_attn.out_proj").calls, 0);
  EXPECT_EQ(count(run.nodes(), "AccumulateGrad of layers.0.self_attn.out_proj"), 2);
  EXPECT_EQ(run.profile.health.unattributed_nodes.size(), 1U);  // the sum
}

TEST(Backward, SeveralOutputsOfOneLayer) {
  Model model;
  auto lstm = model->add("lstm", nn::LSTM(4, 3));
  auto head = model->add("head", nn::Linear(3, 2));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    const auto [output, state] = lstm->forward(makers.claim(x * 2, kRoot));
    makers.claim(output, "lstm");
    makers.claim(std::get<0>(state), "lstm");
    makers.claim(std::get<1>(state), "lstm");
    const Tensor y = makers.call(head, "head", output[-1] + std::get<0>(state)[0]);
    return makers.claim(y.sum() + std::get<1>(state).sum(), kRoot);
  };
  expect_owners_in_each_way(model, makers, torch::randn({5, 2, 4}, torch::requires_grad()));
}

TEST(Backward, ViewsAndWritesIntoThem) {
  Model model;
  auto a = model->add("a", nn::Linear(4, 4));
  auto b = model->add("b", nn::Linear(2, 2));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    const Tensor y = makers.call(a, "a", x).clone();
    y.narrow(1, 0, 2).mul_(2);
    makers.claim(y, kRoot);
    const auto halves = y.chunk(2, 1);
    return makers.claim(makers.call(b, "b", halves[0]) * halves[1].t().contiguous().t(), kRoot);
  };
  expect_owners_in_each_way(model, makers, torch::randn({3, 4}), [](const Recorded& run) {
    EXPECT_THAT(run.nodes(), Contains("CopySlices of "));
    EXPECT_THAT(run.nodes(), Contains("SplitBackward0 of "));
  });
}

TEST(Backward, NoGradAndDetach) {
  Model model;
  auto frozen = model->add("frozen", nn::Linear(3, 3));
  auto cut = model->add("cut", nn::Linear(3, 3));
  auto used = model->add("used", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    {
      const torch::NoGradGuard no_grad;
      x = frozen(x);
    }
    x = makers.call(cut, "cut", x).detach();
    return makers.call(used, "used", x);
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    EXPECT_THAT(run.scopes(), ElementsAre("", "frozen", "cut", "used"));
    EXPECT_TRUE(run.layer("frozen").phase(Phase::kBackward).empty());
    EXPECT_TRUE(run.layer("cut").phase(Phase::kBackward).empty());
    EXPECT_EQ(run.calls("used", Phase::kBackward), 1);
  });
}

struct Cube : torch::autograd::Function<Cube> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * 3 * x * x};
  }
};

TEST(Backward, FunctionsOfOnesOwn) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  auto block = model->add("block", Model([](Tensor x) { return Cube::apply(x); }));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    x = makers.call(block, "block", makers.call(a, "a", x));
    return makers.claim(Cube::apply(x), kRoot);
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}));
}

TEST(Backward, OneGraphTwice) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) { return makers.claim(makers.call(a, "a", x).tanh(), kRoot); };
  for_each_way([&](const RunOptions& options) {
    model->zero_grad();
    const Recorded run = record(
        *model,
        [&] {
          const Tensor loss = makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody);
          loss.backward({}, /*retain_graph=*/true);
          loss.backward();
        },
        options);
    expect_owners(run, makers);
    EXPECT_EQ(run.calls("a"), 1);
    EXPECT_EQ(run.calls("a", Phase::kBackward), 2);
    EXPECT_EQ(count(run.nodes(), "AddmmBackward0 of a"), 2);
    EXPECT_EQ(run.regions().back(), "backward");
    EXPECT_EQ(count(run.regions(), "backward"), 2);
  });
}

// The gradient of a weight that two modules hold is the first one's; what each does with it is each
// one's.
TEST(Backward, TiedWeights) {
  Model model;
  auto encoder = model->add("encoder", Model());
  auto decoder = model->add("decoder", Model());
  const Tensor weight = encoder->register_parameter("weight", torch::randn({4, 3}));
  decoder->register_parameter("weight", weight);
  Makers makers(*model);
  encoder->body = [&](Tensor x) { return x.mm(weight.t()); };
  decoder->body = [&](Tensor x) { return x.mm(weight); };
  model->body = [&](Tensor x) {
    return makers.call(decoder, "decoder", makers.call(encoder, "encoder", x).relu());
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    EXPECT_EQ(count(run.nodes(), "AccumulateGrad of encoder"), 1);
    EXPECT_EQ(count(run.nodes(), "AccumulateGrad of decoder"), 0);
    EXPECT_EQ(count(run.nodes(), "MmBackward0 of decoder"), 1);
  });
}

TEST(Backward, ALayerSharedByTwoParents) {
  Model model;
  auto left = model->add("left", Model());
  auto right = model->add("right", Model());
  auto fc = left->add("fc", nn::Linear(3, 3));
  right->add("again", fc);
  Makers makers(*model);
  left->body = [&](Tensor x) { return makers.call(fc, "left.fc", x, "left").relu(); };
  right->body = [&](Tensor x) { return makers.call(fc, "right.again", x, "right").tanh(); };
  model->body = [&](Tensor x) {
    x = makers.call(right, "right", makers.call(left, "left", makers.call(right, "right", x)));
    return makers.call(fc, "left.fc", x);  // from outside both: the first
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    EXPECT_THAT(run.scopes(), ElementsAre("", "right", "right.again", "left", "left.fc", "right",
                                          "right.again", "left.fc"));
    EXPECT_EQ(run.layer("right.again").shared_with, "left.fc");
    EXPECT_EQ(run.layer("left.fc").shared_with, "");
    EXPECT_EQ(run.calls("right.again"), 2);
    EXPECT_EQ(count(run.nodes(), "AddmmBackward0 of right.again"), 2);
    EXPECT_EQ(count(run.nodes(), "AccumulateGrad of left.fc"), 2);
  });
}

TEST(Backward, SeveralCallsAndRecursion) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  auto tree = model->add("tree", Model());
  int depth = 0;
  Makers makers(*model);
  tree->body = [&](Tensor x) {
    if (depth == 3) return makers.claim(x.sin(), "tree");
    ++depth;
    x = makers.claim(x * 2, "tree");
    return makers.claim(tree->forward(x) + 1, "tree");
  };
  model->body = [&](Tensor x) {
    depth = 0;
    for (int i = 0; i < 3; ++i) x = makers.call(fc, "fc", x);
    return makers.call(tree, "tree", x);
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    EXPECT_THAT(run.scopes(), ElementsAre("", "fc", "fc", "fc", "tree", "tree", "tree", "tree"));
    EXPECT_EQ(run.calls("fc"), 3);
    EXPECT_EQ(run.calls("tree"), 4);
    // Recursion is counted once: the outermost call holds the rest.
    const auto scopes = run.select(SpanKind::kScope);
    EXPECT_DOUBLE_EQ(run.layer("tree").phase(Phase::kForward).host_ns.mean,
                     static_cast<double>(scopes[4].end_ns - scopes[4].start_ns));
    // Each call of `fc` has its own backward span, tied to it.
    std::vector<std::uint64_t> forward_calls;
    std::vector<std::uint64_t> backward_calls;
    for (const Span& span : run.spans) {
      if (span.layer == "fc" && span.kind == SpanKind::kScope)
        forward_calls.insert(forward_calls.begin(), span.call);
      if (span.layer == "fc" && span.kind == SpanKind::kBackward)
        backward_calls.push_back(span.call);
    }
    EXPECT_EQ(backward_calls, forward_calls);
  });
}

TEST(Backward, ParametersOfTheRootAndLeavesOfNobody) {
  Model model;
  const Tensor scale = model->register_parameter("scale", torch::randn({3}));
  auto fc = model->add("fc", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) { return makers.claim(makers.call(fc, "fc", x) * scale, kRoot); };
  expect_owners_in_each_way(
      model, makers, torch::randn({2, 3}, torch::requires_grad()), [](const Recorded& run) {
        EXPECT_EQ(count(run.nodes(), "AccumulateGrad of "), 1);
        EXPECT_EQ(count(run.nodes(), "AccumulateGrad of (none)"), 1);
        for (const Span& node : run.select(SpanKind::kNode)) {
          if (node.layer != kNobody) continue;
          EXPECT_EQ(node.cause, node.accumulates ? Cause::kForeignLeaf : Cause::kMadeOutside);
        }
      });
}

TEST(Backward, AHookOnATensorRunsForTheNodeThatMadeIt) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    const Tensor y = makers.call(fc, "fc", x);
    y.register_hook([](const Tensor& gradient) { return gradient.cosh(); });
    return makers.claim(y.sin(), kRoot);
  };
  expect_owners_in_each_way(model, makers, torch::randn({2, 3}), [](const Recorded& run) {
    if (run.profile.run.ops) {
      EXPECT_THAT(run.activities("fc", Phase::kBackward), Contains("aten::cosh"));
    }
  });
}

TEST(Backward, OfAForwardBeforeTheSession) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  model->body = [&](Tensor x) { return fc(x); };
  for_each_way([&](const RunOptions& options) {
    model->zero_grad();
    const Tensor loss = model->forward(torch::randn({2, 3})).sum();
    const Recorded run = record(*model, [&] { loss.backward(); }, options);
    EXPECT_EQ(lines(run.nodes()),
              lines({"SumBackward0 of (none)", "AddmmBackward0 of (none)", "AccumulateGrad of fc",
                     "TBackward0 of (none)", "AccumulateGrad of fc"}));
    for (const Span& node : run.select(SpanKind::kNode)) {
      if (!node.accumulates) {
        EXPECT_EQ(node.cause, Cause::kMadeBefore) << node.name;
      }
    }
    EXPECT_EQ(run.layer("fc").calls, 0);
    EXPECT_TRUE(run.layer("fc").ran);
  });
}

// Only what leads to the wanted input is run.
TEST(Backward, OfSomeInputsOnly) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  auto b = model->add("b", nn::Linear(3, 3));
  Makers makers(*model);
  model->body = [&](Tensor x) { return makers.call(b, "b", makers.call(a, "a", x)); };
  for_each_way([&](const RunOptions& options) {
    const Recorded run = record(
        *model,
        [&] {
          const Tensor loss = makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody);
          torch::autograd::grad({loss}, {b->weight});
        },
        options);
    expect_owners(run, makers);
    EXPECT_TRUE(run.layer("a").phase(Phase::kBackward).empty());
  });
}

}  // namespace
}  // namespace layertrace::test
