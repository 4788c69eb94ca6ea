#include "torch/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace layertrace::test {
namespace {

using torch::Tensor;

void run_backward(const Tensors& outputs) {
  Tensors with_graph;
  Tensors gradients;
  for (const Tensor& t : outputs) {
    if (!t.defined() || !t.requires_grad()) continue;
    with_graph.push_back(t);
    gradients.push_back(torch::ones_like(t));
  }
  if (!with_graph.empty()) torch::autograd::backward(with_graph, gradients);
}

struct Alone {
  Tensors outputs;
  Strings forward;
  Strings nodes;
};

Alone run_alone(const Case& layer) {
  run_backward(layer.call());  // whatever is set up at the first use
  layer.module->zero_grad();
  torch::manual_seed(1);
  Alone alone;
  const PytorchLog log;
  alone.outputs = layer.call();
  alone.forward = log.activity_names();
  run_backward(alone.outputs);
  alone.nodes = log.node_names();
  layer.module->zero_grad();
  return alone;
}

}  // namespace

void expect_owns_all(const Case& layer, const RunOptions& options) {
  const Alone alone = run_alone(layer);
  Model parent;
  parent->add("layer", layer.module);
  Makers makers(*parent);
  Tensors outputs;
  parent->body = [&](Tensor x) {
    outputs = layer.call();
    return x;
  };
  torch::manual_seed(1);
  const Recorded run = record(
      *parent,
      [&] {
        parent->forward({});
        for (const Tensor& t : outputs) {
          if (t.defined()) makers.claim(t, "layer");
        }
        run_backward(outputs);
      },
      options);

  ASSERT_EQ(outputs.size(), alone.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool same =
        outputs[i].defined() ? outputs[i].equal(alone.outputs[i]) : !alone.outputs[i].defined();
    EXPECT_TRUE(same || layer.type == "FractionalMaxPool2d" || layer.type == "FractionalMaxPool3d")
        << "result " << i;
  }
  EXPECT_EQ(run.layer("layer").type, layer.type);
  EXPECT_EQ(run.calls("layer"), 1);
  EXPECT_EQ(lines(run.activities("layer", Phase::kForward, /*below=*/true)), lines(alone.forward));
  EXPECT_THAT(run.activities(kRoot, Phase::kForward), ::testing::IsEmpty());
  EXPECT_EQ(run.nodes_seen.size(), alone.nodes.size());
  // A layer with layers inside (attention, Transformer) has its own tests of who is who; the whole
  // is its own.
  if (layer.module->children().empty()) {
    if (!alone.nodes.empty()) expect_owners(run, makers);
    return;
  }
  for (const Span& node : run.select(SpanKind::kNode)) {
    EXPECT_THAT(node.layer, ::testing::AnyOf(kNobody, ::testing::StartsWith("layer")));
    EXPECT_EQ(node.layer == kNobody, node.cause == Cause::kForeignLeaf) << node.name;
  }
}

}  // namespace layertrace::test
