// How tree() looks where room, characters or colours are limited, and when names are hostile.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include <layertrace/report.h>

#include "profiles.h"
#include "report/text.h"
#include "rows.h"

namespace layertrace {
namespace {

using made::kMs;
using made::ProfileMaker;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Profile named(const std::string& name, const std::string& type) {
  ProfileMaker net;
  const int root = net.root("Net", {2 * kMs, 3 * kMs});
  net.layer(root, name, type, {1 * kMs, 2 * kMs});
  net.steps({10 * kMs});
  return std::move(net.profile);
}

TEST(TreeLayout, FitsEightyColumns) {
  EXPECT_EQ(rows(made::small_net(), {.width = 80}), R"(
layer        type                forward         backward  calls  activities
Net                      4.00 ms  36.4 %  5.00 ms  45.5 %      1         120
├── embed    Embedding    250 µs   2.3 %   400 µs   3.6 %      1           4
├── heads    ModuleList  3.00 ms  27.3 %  4.00 ms  36.4 %      0          90
│   ├── 0    Linear      2.00 ms  18.2 %  3.00 ms  27.3 %      1          60
│   └── 1    Linear      1.00 ms   9.1 %  1.00 ms   9.1 %      1          30
├── drop     Dropout     not run
├── out      Embedding   = embed
└── late     Tanh         950 ns  <0.1 %                –   0.50           1  …
(loss)                    300 µs   2.7 %  6 activities
(optimizer)              1.20 ms  10.9 %  14 activities
(data)                   20.0 µs   0.2 %
)");
}

TEST(TreeLayout, DropsTheLeastImportantColumnsAtSixty) {
  EXPECT_EQ(rows(made::transformer(), {.width = 60}), R"(
layer                      forward         backward  …
GPT                26.5 ms  33.1 %  40.0 ms  50.0 %
├── embed           500 µs   0.6 %   500 µs   0.6 %
├── blocks         25.0 ms  31.2 %  38.0 ms  47.5 %
│   └── 0–11       25.0 ms  31.2 %  37.0 ms  46.2 %  each 2…
│       ├── attn   9.60 ms  12.0 %  12.0 ms  15.0 %
│       └── mlp    12.0 ms  15.0 %  18.0 ms  22.5 %
│           ├── 0  7.20 ms   9.0 %  10.8 ms  13.5 %
│           ├── 1  1.20 ms   1.5 %  1.20 ms   1.5 %
│           └── 2  3.60 ms   4.5 %  6.00 ms   7.5 %
└── head           1.00 ms   1.2 %  1.50 ms   1.9 %
)");
}

TEST(TreeLayout, KeepsForwardAndTheNamesAtForty) {
  EXPECT_EQ('\n' + tree(made::small_net(), {.width = 40}), R"(
Net · train_net · AMD EPYC 7R32
2 recorded steps of 11.0 ms on average
  (10.0–12.0 ms). Figures are per step,
  shares are of the step.

layer                forward  …
Net          4.00 ms  36.4 %
├── embed     250 µs   2.3 %
├── heads    3.00 ms  27.3 %
│   ├── 0    2.00 ms  18.2 %
│   └── 1    1.00 ms   9.1 %
├── drop     not run
├── out      = embed
└── late      950 ns  <0.1 %  (unregist…
(loss)        300 µs   2.7 %  6 activit…
(optimizer)  1.20 ms  10.9 %  14 activi…
(data)       20.0 µs   0.2 %

99.8 % of activity time is attributed:
  1,204 activities, 12.0 ms in all.
3 of 1,204 activities (0.2 % of activity
  time, 24.0 µs) have no layer: launched
  by a thread with no scope (aten::add
  ×2, aten::mul ×1).
310 autograd nodes, 306 attributed.
4 of 310 autograd nodes have no layer:
  made before the recording began
  (AddBackward0 ×4).
0 dropped of 12,345 records.
Recording cost about 0.3 % of the step
  in layertrace itself: 55 ns a scope,
  210 ns an operator; writer thread 4.20
  ms of CPU time.
)");
}

TEST(TreeLayout, ShortensLongNamesAndTypesInTheirMiddle) {
  const Profile profile = named("a_very_long_name_that_somebody_gave_to_a_layer_of_theirs",
                                "ATypeWithTemplateArguments<float, std::allocator<float>>");
  EXPECT_EQ(rows(profile, {.width = 80}), R"(
layer                                                forward         backward  …
Net                                          2.00 ms  20.0 %  3.00 ms  30.0 %
└── a_very_long_name_th…o_a_layer_of_theirs  1.00 ms  10.0 %  2.00 ms  20.0 %
)");
  const TreeOptions options{.columns = {Column::kType, Column::kForward}, .width = 80};
  EXPECT_EQ(rows(profile, options), R"(
layer                                      type                          forward
Net                                                              2.00 ms  20.0 %
└── a_very_long_name_t…_a_layer_of_theirs  ATypeWithT…r<float>>  1.00 ms  10.0 %
)");
}

TEST(TreeLayout, NeverExceedsTheWidth) {
  Profile deep = named(std::string(300, 'x'), "名前" + std::string(200, 'T'));
  for (int i = 0; i < 40; ++i) {  // deeper than any of these lines is long
    Layer layer = deep.layers.back();
    layer.parent = static_cast<int>(deep.layers.size()) - 1;
    layer.name = i % 2 == 0 ? "層層層層層層" : "y";
    layer.children.clear();
    deep.layers.back().children = {static_cast<int>(deep.layers.size())};
    deep.layers.push_back(layer);
  }
  deep.run.program = std::string(100, 'p');
  deep.health.notes = {std::string(90, 'n') +
                       " 名名名名名名名名名名名名名名名名名名名名名名名名名名名"};
  for (const Profile& profile : {deep, made::small_net(), made::transformer()}) {
    for (const bool ascii : {false, true}) {
      for (int width = 20; width < 140; ++width) {
        for (const std::string& line : lines_of(tree(profile, {.width = width, .ascii = ascii}))) {
          ASSERT_LE(report::display_width(line), static_cast<std::size_t>(width)) << line;
          ASSERT_FALSE(line.ends_with(' ')) << line;
        }
      }
    }
  }
}

TEST(TreeLayout, BelievesNoTerminalNarrowerThanTwenty) {
  EXPECT_EQ(tree(made::small_net(), {.width = 3}), tree(made::small_net(), {.width = 20}));
  EXPECT_EQ(tree(made::small_net(), {.width = -1}), tree(made::small_net()));
}

TEST(TreeLayout, WritesNothingButAsciiWhereAsked) {
  Profile profile = made::transformer();
  profile.layers[1].name = "größe";
  profile.layers[1].shared_with = "\xff";
  const std::string text = tree(profile, {.ascii = true});
  for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << text;
  EXPECT_EQ(
      rows(profile, {.depth = 2, .columns = {Column::kType, Column::kForward}, .ascii = true}), R"(
layer                            type                forward
GPT                                          26.5 ms  33.1 %
|-- gr\u00f6\u00dfe              Embedding    500 us   0.6 %  = ?
|-- blocks                       ModuleList  25.0 ms  31.2 %
|   `-- 0-11                     12 x Block  25.0 ms  31.2 %  each 2.00-3.00 ms, most in blocks.7
|       `-- ... 60 layers below
`-- head                         Linear      1.00 ms   1.2 %
)");
}

TEST(TreeLayout, ColoursBranchesRootAndLargeShares) {
  const std::string text =
      rows(made::small_net(), {.columns = {Column::kType, Column::kForward}, .color = true});
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_GE(lines.size(), 8u);
  EXPECT_EQ(lines[2], "\x1b[1mNet\x1b[0m                      4.00 ms  36.4 %");
  EXPECT_EQ(lines[3], "\x1b[2m├── \x1b[0membed    Embedding    250 µs   2.3 %");
  EXPECT_EQ(lines[4], "\x1b[2m├── \x1b[0mheads    ModuleList  \x1b[31m3.00 ms  27.3 %\x1b[0m");
  EXPECT_EQ(lines[5], "\x1b[2m│   ├── \x1b[0m0    Linear      \x1b[33m2.00 ms  18.2 %\x1b[0m");
  EXPECT_EQ(
      lines[7],
      "\x1b[2m├── \x1b[0m\x1b[2mdrop\x1b[0m     \x1b[2mDropout\x1b[0m     \x1b[2mnot run\x1b[0m");
  EXPECT_EQ(tree(made::small_net()).find('\x1b'), std::string::npos);
}

TEST(TreeLayout, ShowsHostileNamesWithoutObeyingThem) {
  EXPECT_EQ(rows(named("a\nb\x1b[2J\t\u202e\xff", "T\r\n"), {}), R"(
layer                     type           forward         backward  calls  activities
Net                              2.00 ms  20.0 %  3.00 ms  30.0 %      1           0
└── a\nb\x1b[2J\t\u202e�  T\r\n  1.00 ms  10.0 %  2.00 ms  20.0 %      1           0
)");
}

TEST(TreeLayout, AlignsWideCharactersByTheirCells) {
  EXPECT_EQ(rows(named("層1", "线性"), {.columns = {Column::kType, Column::kForward}}), R"(
layer    type          forward
Net            2.00 ms  20.0 %
└── 層1  线性  1.00 ms  10.0 %
)");
}

}  // namespace
}  // namespace layertrace
