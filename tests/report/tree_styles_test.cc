// Trees in other shapes: brackets, views, filters.
#include <gtest/gtest.h>

#include <string>

#include <layertrace/report.h>

#include "profiles.h"
#include "report/filter.h"
#include "rows.h"

namespace layertrace {
namespace {

using made::kMs;

// ---- Brackets ----

TEST(Brackets, HaveExactCounts) {
  EXPECT_EQ(
      rows(made::counted_net(),
           {.columns = {Column::kType, Column::kKernelSize, Column::kInputShapes, Column::kParams,
                        Column::kMacs, Column::kForward, Column::kMemoryPeak, Column::kShare},
            .style = TreeStyle::kBrackets}),
      R"(
Net [MACs=8000000000, Forward=200 µs, Share=32.0 %]
├── fc [Type=Linear, Kernel Size=3 × 3, Input Size=bfloat16[8, 1000], Parameters=1000000, MACs=8000000000, Forward=100 µs, Memory peak=2.9 KiB, Share=32.0 %]
└── act [Type=ReLU, Forward=50.0 µs]
)");
}

TEST(Brackets, SayWhatDidNotRunAndWhatIsOutside) {
  EXPECT_EQ(rows(made::small_net(),
                 {.columns = {Column::kType, Column::kForward}, .style = TreeStyle::kBrackets}),
            R"(
Net [Forward=4.00 ms]
├── embed [Type=Embedding, Forward=250 µs]
├── heads [Type=ModuleList, Forward=3.00 ms]
│   ├── 0 [Type=Linear, Forward=2.00 ms]
│   └── 1 [Type=Linear, Forward=1.00 ms]
├── drop [Type=Dropout]  not run
├── out [Type=Embedding]  = embed
└── late [Type=Tanh, Forward=950 ns]  (unregistered)
(loss)   300 µs   2.7 %  6 activities
(optimizer)  1.20 ms  10.9 %  14 activities
(data)  20.0 µs   0.2 %
)");
}

TEST(Brackets, FoldDepthAndAsciiAsColumnsDo) {
  EXPECT_EQ(rows(made::transformer(), {.depth = 2,
                                       .columns = {Column::kType, Column::kCalls},
                                       .ascii = true,
                                       .style = TreeStyle::kBrackets}),
            R"(
GPT [Calls=1]
|-- embed [Type=Embedding, Calls=1]
|-- blocks [Type=ModuleList, Calls=0]
|   `-- 0-11 [Type=12 x Block, Calls=12]  each 5.00-7.00 ms, most in blocks.7
|       `-- ... 60 layers below
`-- head [Type=Linear, Calls=1]
)");
  const std::string narrow = rows(
      made::transformer(),
      {.columns = {Column::kType, Column::kCalls}, .width = 24, .style = TreeStyle::kBrackets});
  EXPECT_NE(narrow.find("├── embed [Type=Embeddi…\n"), std::string::npos) << narrow;
}

TEST(Brackets, AreTextInAPage) {
  const std::string page =
      tree_html(made::small_net(), {.columns = {Column::kType}, .style = TreeStyle::kBrackets});
  EXPECT_NE(page.find("<pre>Net\n├── embed [Type=Embedding]\n"), std::string::npos) << page;
}

// ---- Views ----

std::string heading_of(const TreeOptions& options, const Profile& profile) {
  const std::string table = rows(profile, options);
  return table.substr(1, table.find('\n', 1) - 1);
}

TEST(Views, AreColumnsThatBelongTogether) {
  const Profile cpu = made::small_net();
  EXPECT_EQ(heading_of({.view = View::kTime}, cpu),
            "layer        type                forward         backward            total"
            "  self  calls  activities");
  const Profile gpu = made::counted_net();
  EXPECT_NE(heading_of({.view = View::kTime}, gpu).find("GPU backward        GPU total"),
            std::string::npos);
  EXPECT_EQ(
      heading_of({.view = View::kCost}, gpu),
      "layer    type    kernel size  input              output            params  trainable    "
      "MACs  forward FLOPs  backward FLOPs   FLOPs  activation elements");
  EXPECT_EQ(
      heading_of({.view = View::kMemory}, gpu),
      "layer    type    params  param bytes  activation elements  memory peak  memory kept     "
      "bytes");
  EXPECT_EQ(
      heading_of({.view = View::kRoofline}, gpu),
      "layer    type     share   FLOPs     bytes  FLOP/B  FLOP/s    B/s     roof  of roof  of peak"
      "      unexplained");
}

TEST(Views, TakeColumnsBesideTheirOwn) {
  EXPECT_EQ(
      heading_of({.columns = {Column::kParams, Column::kCalls}, .view = View::kMemory},
                 made::counted_net()),
      "layer    type    params  param bytes  activation elements  memory peak  memory kept     "
      "bytes  calls");
}

TEST(Views, OfAllLeaveOutWhatIsEmptyEverywhere) {
  const std::string cpu = heading_of({.view = View::kAll}, made::small_net());
  EXPECT_NE(cpu.find("total"), std::string::npos);
  for (const char* empty : {"GPU", "FLOP", "params", "recompute", "kernel size", "self"})
    EXPECT_EQ(cpu.find(empty), std::string::npos) << empty;
  const std::string gpu = heading_of({.view = View::kAll}, made::counted_net());
  for (const char* there : {"GPU total", "kernel size", "trainable", "FLOP/s", "unexplained"})
    EXPECT_NE(gpu.find(there), std::string::npos) << there;
}

TEST(Views, WithoutAGpuShowNothingOfOne) {
  Profile profile = made::small_net();
  for (Layer& layer : profile.layers) {
    layer.phases[static_cast<std::size_t>(Phase::kForward)].busy_ns = made::constant(1 * kMs);
  }
  const std::string all = heading_of({.view = View::kAll}, profile);
  EXPECT_NE(all.find("busy"), std::string::npos);
  EXPECT_EQ(all.find("GPU"), std::string::npos);
  EXPECT_EQ(all.find("kernels"), std::string::npos);
  EXPECT_EQ(rows(profile, {.depth = 0, .columns = {Column::kGpuForward}}), R"(
layer                 GPU forward
Net                             –
└── … 7 layers below
)");
}

TEST(Views, AndStylesHaveNames) {
  EXPECT_EQ(*parse_view("roofline"), View::kRoofline);
  EXPECT_EQ(parse_view("fast").error().message(),
            "cannot use \"fast\" as a view: no such name. Use one of: time, cost, memory, "
            "roofline, all");
  EXPECT_EQ(*parse_tree_style("brackets"), TreeStyle::kBrackets);
  EXPECT_EQ(parse_tree_style("").error().message(),
            "cannot use \"\" as a style: no such name. Use one of: columns, brackets");
  EXPECT_EQ(*parse_column("parameters"), Column::kParams);
  EXPECT_EQ(*parse_column("input_size"), Column::kInputShapes);
}

// ---- Filters ----

TEST(Patterns, MatchLikeThoseOfAShell) {
  using report::matches;
  EXPECT_TRUE(matches("blocks.*.attn", "blocks.10.attn"));
  EXPECT_TRUE(matches("*attn", "blocks.10.attn"));
  EXPECT_TRUE(matches("block?", "block7"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches("Conv*,Linear", "Linear"));
  EXPECT_FALSE(matches("blocks.*.attn", "blocks.10.attn.proj"));
  EXPECT_FALSE(matches("block?", "block10"));
  EXPECT_FALSE(matches("Conv*,Linear", "LinearNorm"));
  EXPECT_FALSE(matches("a", ""));
}

TEST(Filters, KeepWhatHoldsALayer) {
  const TreeOptions of_type{.columns = {Column::kType, Column::kForward}, .type = "GELU,Emb*"};
  EXPECT_EQ(rows(made::transformer(), of_type), R"(
layer              type                forward
GPT                            26.5 ms  33.1 %
├── embed          Embedding    500 µs   0.6 %
└── blocks         ModuleList  25.0 ms  31.2 %
    └── 0–11       12 × Block  25.0 ms  31.2 %  each 2.00–3.00 ms, most in blocks.7
        └── mlp    Sequential  12.0 ms  15.0 %
            └── 1  GELU        1.20 ms   1.5 %
)");
  EXPECT_NE(
      tree(made::transformer(), of_type)
          .find("\nShown: 13 of 76 layers, those of type \"GELU,Emb*\", and what holds them.\n"),
      std::string::npos);
}

TEST(Filters, FoldOnlyBlocksOfWhichTheSameIsShown) {
  EXPECT_EQ(rows(made::transformer(), {.columns = {Column::kType},
                                       .match = "blocks.1.attn,blocks.2.attn,blocks.3.attn"}),
            R"(
layer             type
GPT
└── blocks        ModuleList
    └── 1–3       3 × Block   each 5.00 ms
        └── attn  Attention
)");
}

TEST(Filters, WorkTogether) {
  const Profile profile = made::transformer();
  EXPECT_EQ(rows(profile, {.fold = false,
                           .columns = {Column::kType, Column::kShare},
                           .match = "blocks.*",
                           .type = "Block",
                           .min_share = 0.08}),
            R"(
layer       type         share
GPT                     83.1 %
└── blocks  ModuleList  78.8 %
    └── 7   Block        8.8 %
)");
}

TEST(Filters, KnowTrainableParameters) {
  EXPECT_EQ(rows(made::counted_net(), {.columns = {Column::kType}, .trainable = true}), R"(
layer   type
Net
└── fc  Linear
)");
}

TEST(Filters, TakeTheGpusShareWhereThereIsOne) {
  // fc is busy for 320 µs of the step's 1 ms on the GPU; on the host it takes 300 µs.
  const Profile profile = made::counted_net();
  EXPECT_NE(rows(profile, {.columns = {Column::kType}, .min_share = 0.31}).find("fc"),
            std::string::npos);
  EXPECT_EQ(rows(profile, {.columns = {Column::kType}, .min_share = 0.33}).find("fc"),
            std::string::npos);
}

TEST(Filters, SayWhereNothingPasses) {
  const std::string text = tree(made::transformer(), {.match = "blocks.99", .trainable = true});
  EXPECT_NE(text.find("\n\nNo layer is there with a path like \"blocks.99\" and with trainable "
                      "parameters.\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("GPT  "), std::string::npos);
}

TEST(Filters, CountBelowTheStartNode) {
  EXPECT_NE(tree(made::transformer(), {.start = "blocks.3", .type = "Linear"})
                .find("Shown: 2 of 6 layers"),
            std::string::npos);
}

// ---- The spread between folded blocks ----

TEST(Spread, IsOfTheLeadingTimes) {
  const auto note = [](const std::vector<Column>& columns) {
    const std::string text = rows(made::transformer(), {.depth = 2, .columns = columns});
    const std::size_t begin = text.find("each ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(note({Column::kForward}), "each 2.00–3.00 ms, most in blocks.7");
  EXPECT_EQ(note({Column::kCalls, Column::kBackward, Column::kTotal, Column::kForward}),
            "each 3.00–4.00 ms backward, 5.00–7.00 ms total, most in blocks.7");
  EXPECT_EQ(note({Column::kCalls}), "each 5.00–7.00 ms, most in blocks.7");
}

}  // namespace
}  // namespace layertrace
