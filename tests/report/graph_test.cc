// graph_dot(): what is in the boxes, and that Graphviz takes it is tested by tests/python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Graph, IsABoxForEachLayerWithItsFiguresAndAColourByShare) {
  made::ProfileMaker net;
  const int root = net.root("Net", {4 * made::kMs, 6 * made::kMs, 1, 0});
  net.layer(root, "fc", "Linear", {1 * made::kMs, 1.5 * made::kMs, 1, 0});
  net.not_run(root, "drop", "Dropout");
  net.steps({10 * made::kMs});
  EXPECT_EQ(graph_dot(net.profile),
            R"(digraph layers {
  graph [rankdir=LR, bgcolor="white", nodesep=0.15, ranksep=0.45, labelloc=t,
         fontname="Helvetica", fontsize=11, fontcolor="#445260",
         label="host time per step; shares of a step of 10.0 ms"]
  node [shape=box, style="filled,rounded", penwidth=0.8, color="#8796a5", margin="0.14,0.08",
        fontname="Helvetica", fontsize=11]
  edge [arrowhead=none, color="#b3bec9", penwidth=0.9]
  n0 [label="Net\n100 % of the step\nforward 4.00 ms, backward 6.00 ms", fillcolor="#1c4f8a", fontcolor="#ffffff"]
  n1 [label="fc\nLinear\n25.0 % of the step\nforward 1.00 ms, backward 1.50 ms", fillcolor="#88a4c3", fontcolor="#16202b"]
  n0 -> n1
  n2 [label="drop\nDropout\nnot run", fillcolor="#f4f8fc", fontcolor="#16202b", style="rounded,dashed"]
  n0 -> n2
}
)");
}

TEST(Graph, FoldsBlocksUnlessToldNotTo) {
  const Profile profile = made::transformer();
  const std::string folded = graph_dot(profile);
  EXPECT_THAT(folded, HasSubstr("\"0–11\\n12 × Block\\n"));
  // 12 blocks of 5 ms, one of them 2 ms longer, of a step of 80 ms.
  EXPECT_THAT(folded, HasSubstr("77.5 % of the step\\nforward 25.0 ms, backward 37.0 ms"));
  const std::string all = graph_dot(profile, {.fold = false});
  EXPECT_THAT(all, Not(HasSubstr("×")));
  EXPECT_THAT(all, HasSubstr("\"11\\nBlock\\n"));
}

TEST(Graph, EndsAtItsDepthAndBeginsAtItsStart) {
  const Profile profile = made::transformer();
  const std::string shallow = graph_dot(profile, {.depth = 1});
  EXPECT_THAT(shallow, HasSubstr("\"… 72 layers below\""));
  EXPECT_THAT(shallow, Not(HasSubstr("Attention")));
  const std::string block = graph_dot(profile, {.start = "blocks.3"});
  EXPECT_THAT(block, HasSubstr("\"blocks.3\\nBlock\\n"));
  EXPECT_THAT(block, Not(HasSubstr("embed")));
  EXPECT_THAT(graph_dot(profile, {.start = "blocks.99"}),
              HasSubstr(R"(label="no layer \"blocks.99\" in this profile; \"blocks\" has 0, 1,)"));
}

TEST(Graph, ShowsTheGpusTimeWhereOneWasRecorded) {
  const std::string graph = graph_dot(made::gpu_net());
  EXPECT_THAT(graph, HasSubstr("label=\"GPU time per step"));
  EXPECT_THAT(graph, HasSubstr("forward 250 µs, backward 800 µs"));
}

TEST(Graph, TellsTheColumnsThatAreAskedFor) {
  const std::string graph =
      graph_dot(made::counted_net(),
                {.columns = {Column::kType, Column::kKernelSize, Column::kParams, Column::kMacs}});
  EXPECT_THAT(graph,
              HasSubstr("label=\"figures per step; colour by the GPU time's share of a step"));
  EXPECT_THAT(graph, HasSubstr("\"fc\\nType=Linear\\nKernel Size=3 × 3\\nParameters=1000000\\n"
                               "MACs=8000000000\", fillcolor"));
  EXPECT_THAT(graph, HasSubstr("\"act\\nType=ReLU\", fillcolor"));
  EXPECT_THAT(graph_dot(made::small_net(), {.columns = {Column::kCalls}}),
              HasSubstr("\"out\\n= embed\\nCalls=0\\nnot run\""));
}

TEST(Graph, ShowsWhatIsTrainableOnRequest) {
  const std::string graph = graph_dot(made::counted_net(), {.trainable = true});
  EXPECT_THAT(graph, HasSubstr("\"fc\\n"));
  EXPECT_THAT(graph, Not(HasSubstr("\"act\\n")));
  EXPECT_THAT(graph, HasSubstr("\\nShown: 1 of 3 layers, those with trainable parameters, and what "
                               "holds them."));
}

TEST(Graph, IsValidWithHostileNamesAndWithoutLayers) {
  made::ProfileMaker net;
  const int root = net.root("N\"]; x [", {1, 1, 1, 0});
  net.layer(root, "a\\N&amp;\n", "<b>", {1, 1, 1, 0});
  const std::string graph = graph_dot(net.profile);
  EXPECT_THAT(graph, HasSubstr("\"N\\\"]; x ["));
  EXPECT_THAT(graph, HasSubstr("\"a\\\\N&amp;amp;\\\\n\\n<b>"));
  EXPECT_THAT(graph_dot(Profile{}), HasSubstr("label=\"no layers\""));
}

}  // namespace
}  // namespace layertrace
