// What tree() says, as text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <layertrace/report.h>

#include "profiles.h"
#include "rows.h"

namespace layertrace {
namespace {

using made::kMs;
using made::kUs;
using made::ProfileMaker;

TEST(Tree, ShowsASmallNetWhole) {
  EXPECT_EQ('\n' + tree(made::small_net()), R"(
Net · train_net · AMD EPYC 7R32
2 recorded steps of 11.0 ms on average (10.0–12.0 ms). Figures are per step, shares are of the step.

layer        type                forward         backward  calls  activities
Net                      4.00 ms  36.4 %  5.00 ms  45.5 %      1         120
├── embed    Embedding    250 µs   2.3 %   400 µs   3.6 %      1           4
├── heads    ModuleList  3.00 ms  27.3 %  4.00 ms  36.4 %      0          90
│   ├── 0    Linear      2.00 ms  18.2 %  3.00 ms  27.3 %      1          60
│   └── 1    Linear      1.00 ms   9.1 %  1.00 ms   9.1 %      1          30
├── drop     Dropout     not run
├── out      Embedding   = embed
└── late     Tanh         950 ns  <0.1 %                –   0.50           1  (unregistered)
(loss)                    300 µs   2.7 %  6 activities
(optimizer)              1.20 ms  10.9 %  14 activities
(data)                   20.0 µs   0.2 %

99.8 % of activity time is attributed: 1,204 activities, 12.0 ms in all.
3 of 1,204 activities (0.2 % of activity time, 24.0 µs) have no layer: launched by a thread with no scope (aten::add ×2, aten::mul ×1).
310 autograd nodes, 306 attributed.
4 of 310 autograd nodes have no layer: made before the recording began (AddBackward0 ×4).
0 dropped of 12,345 records.
Recording cost about 0.3 % of the step in layertrace itself: 55 ns a scope, 210 ns an operator; writer thread 4.20 ms of CPU time.
)");
}

TEST(Tree, FoldsRepeatedBlocksIntoTheirSum) {
  EXPECT_EQ(rows(made::transformer()), R"(
layer              type                forward         backward  calls  activities
GPT                            26.5 ms  33.1 %  40.0 ms  50.0 %      1         400
├── embed          Embedding    500 µs   0.6 %   500 µs   0.6 %      1           2
├── blocks         ModuleList  25.0 ms  31.2 %  38.0 ms  47.5 %      0         390
│   └── 0–11       12 × Block  25.0 ms  31.2 %  37.0 ms  46.2 %     12         384  each 2.00–3.00 ms forward, 3.00–4.00 ms backward, most in blocks.7
│       ├── attn   Attention   9.60 ms  12.0 %  12.0 ms  15.0 %     12         144
│       └── mlp    Sequential  12.0 ms  15.0 %  18.0 ms  22.5 %     12         216
│           ├── 0  Linear      7.20 ms   9.0 %  10.8 ms  13.5 %     12          72
│           ├── 1  GELU        1.20 ms   1.5 %  1.20 ms   1.5 %     12          72
│           └── 2  Linear      3.60 ms   4.5 %  6.00 ms   7.5 %     12          72
└── head           Linear      1.00 ms   1.2 %  1.50 ms   1.9 %      1           8
)");
}

TEST(Tree, ShowsEveryBlockWhereFoldingIsOff) {
  const std::string all = tree(made::transformer(), {.fold = false});
  EXPECT_EQ(all.find("12 ×"), std::string::npos);
  EXPECT_NE(all.find("├── 10 "), std::string::npos);
  EXPECT_NE(all.find("└── 11 "), std::string::npos);
}

TEST(Tree, FoldsOnlyNeighboursOfOneShapeWhoseNamesCountUp) {
  ProfileMaker net;
  const int root = net.root("Net", {9 * kMs});
  for (const char* name : {"q", "k", "v", "fc1", "fc2", "fc3"})
    net.layer(root, name, "Linear", {kMs});
  for (const char* name : {"block8", "block9", "block10"}) {
    net.layer(net.layer(root, name, "Block", {kMs}), "conv", "Conv2d", {kMs});
  }
  net.layer(net.layer(root, "block11", "Block", {kMs}), "other", "Conv2d", {kMs});
  const int two = net.layer(root, "two", "ModuleList", {2 * kMs, 0, 0});
  for (const char* name : {"0", "1"}) net.layer(two, name, "Linear", {kMs});
  const int experts = net.layer(root, "experts", "ModuleList", {4 * kMs, 0, 0});
  for (const char* name : {"0", "1", "2", "3"}) net.layer(experts, name, "Linear", {kMs});
  net.not_run(experts, "4", "Linear");
  net.steps({10 * kMs});
  EXPECT_EQ(rows(net.profile, {.columns = {Column::kType, Column::kForward}}), R"(
layer               type                forward
Net                             9.00 ms  90.0 %
├── q               Linear      1.00 ms  10.0 %
├── k               Linear      1.00 ms  10.0 %
├── v               Linear      1.00 ms  10.0 %
├── fc1             Linear      1.00 ms  10.0 %
├── fc2             Linear      1.00 ms  10.0 %
├── fc3             Linear      1.00 ms  10.0 %
├── block8–block10  3 × Block   3.00 ms  30.0 %  each 1.00 ms
│   └── conv        Conv2d      3.00 ms  30.0 %
├── block11         Block       1.00 ms  10.0 %
│   └── other       Conv2d      1.00 ms  10.0 %
├── two             ModuleList  2.00 ms  20.0 %
│   ├── 0           Linear      1.00 ms  10.0 %
│   └── 1           Linear      1.00 ms  10.0 %
└── experts         ModuleList  4.00 ms  40.0 %
    ├── 0–3         4 × Linear  4.00 ms  40.0 %  each 1.00 ms
    └── 4           Linear      not run
)");
}

TEST(Tree, FoldsBlocksInsideFoldedBlocks) {
  ProfileMaker net;
  const int root = net.root("Net", {9 * kMs});
  for (int i = 0; i < 3; ++i) {
    const int outer = net.layer(root, std::to_string(i), "Stage", {3 * kMs});
    for (int j = 0; j < 3; ++j) net.layer(outer, std::to_string(j), "Conv2d", {kMs});
  }
  net.steps({10 * kMs});
  EXPECT_EQ(rows(net.profile, {.columns = {Column::kType, Column::kForward, Column::kCalls}}), R"(
layer        type                forward  calls
Net                      9.00 ms  90.0 %      1
└── 0–2      3 × Stage   9.00 ms  90.0 %      3  each 3.00 ms
    └── 0–2  3 × Conv2d  9.00 ms  90.0 %      9  each 1.00 ms
)");
}

TEST(Tree, SaysHowManyLayersADepthLimitHides) {
  EXPECT_EQ(rows(made::transformer(), {.depth = 1, .columns = {Column::kForward}}), R"(
layer                              forward
GPT                        26.5 ms  33.1 %
├── embed                   500 µs   0.6 %
├── blocks                 25.0 ms  31.2 %
│   └── … 72 layers below
└── head                   1.00 ms   1.2 %
)");
  EXPECT_EQ(rows(made::transformer(), {.depth = 0, .columns = {Column::kForward}}), R"(
layer                          forward
GPT                    26.5 ms  33.1 %
└── … 75 layers below
)");
  const Profile small = made::small_net();
  EXPECT_NE(tree(small, {.depth = 1, .start = "heads"}).find("└── 1 "), std::string::npos);
}

TEST(Tree, StartsBelowTheRootWithSharesStillOfTheStep) {
  EXPECT_EQ(rows(made::small_net(), {.start = "heads"}), R"(
layer  type                forward         backward  calls  activities
heads  ModuleList  3.00 ms  27.3 %  4.00 ms  36.4 %      0          90
├── 0  Linear      2.00 ms  18.2 %  3.00 ms  27.3 %      1          60
└── 1  Linear      1.00 ms   9.1 %  1.00 ms   9.1 %      1          30
)");
}

TEST(Tree, SaysInOneLineThatTheStartIsUnknown) {
  const Profile net = made::small_net();
  EXPECT_EQ(tree(net, {.start = "heads.7"}),
            "no layer \"heads.7\" in this profile; \"heads\" has 0, 1\n");
  EXPECT_EQ(tree(net, {.start = "hands.7"}),
            "no layer \"hands.7\" in this profile; \"Net\" has embed, heads, drop, out, late\n");
  EXPECT_EQ(tree(net, {.start = "embed.x\n"}), "no layer \"embed.x\\n\" in this profile\n");
  EXPECT_EQ(tree(Profile(), {.start = "x"}), "no layer \"x\" in this profile\n");
}

std::vector<std::string> order(const Profile& profile, SortKey key) {
  std::vector<std::string> names;
  std::string text = table_of(tree(profile, {.depth = 1, .sort = key, .ascii = true}));
  for (std::size_t at = text.find("-- "); at != std::string::npos; at = text.find("-- ", at + 1)) {
    const std::string name = text.substr(at + 3, text.find(' ', at + 3) - at - 3);
    if (name != "...") names.push_back(name);
  }
  return names;
}

TEST(Tree, SortsSiblings) {
  using Names = std::vector<std::string>;
  ProfileMaker net;
  const int root = net.root("Net");
  net.layer(root, "x10", "A", {1 * kMs, 9 * kMs, 2, 7});
  net.layer(root, "x9", "B", {3 * kMs, 1 * kMs, 3, 5});
  net.layer(root, "a", "C", {2 * kMs, 5 * kMs, 1, 9});
  net[1].phases[0].self_host_ns = made::constant(5);
  net[3].phases[2].self_host_ns = made::constant(6);
  const Profile& profile = net.profile;
  EXPECT_EQ(order(profile, SortKey::kDefinition), (Names{"x10", "x9", "a"}));
  EXPECT_EQ(order(profile, SortKey::kForward), (Names{"x9", "a", "x10"}));
  EXPECT_EQ(order(profile, SortKey::kBackward), (Names{"x10", "a", "x9"}));
  EXPECT_EQ(order(profile, SortKey::kTotal), (Names{"x10", "a", "x9"}));
  EXPECT_EQ(order(profile, SortKey::kSelf), (Names{"a", "x10", "x9"}));
  EXPECT_EQ(order(profile, SortKey::kCalls), (Names{"x9", "x10", "a"}));
  EXPECT_EQ(order(profile, SortKey::kActivities), (Names{"a", "x10", "x9"}));
  EXPECT_EQ(order(profile, SortKey::kName), (Names{"a", "x9", "x10"}));
}

TEST(Tree, ShowsAnyColumnInTheOrderAskedFor) {
  ProfileMaker net;
  net.root("Net", {2 * kMs, 3 * kMs, 2, 40});
  auto& phases = net[0].phases;
  phases[static_cast<std::size_t>(Phase::kRecompute)].host_ns = made::constant(1 * kMs);
  phases[static_cast<std::size_t>(Phase::kRecompute)].activities = made::constant(2);
  phases[static_cast<std::size_t>(Phase::kForward)].self_host_ns = made::constant(50 * kUs);
  phases[static_cast<std::size_t>(Phase::kBackward)].self_host_ns = made::constant(25 * kUs);
  phases[static_cast<std::size_t>(Phase::kForward)].activity_ns = made::constant(4 * kMs);
  phases[static_cast<std::size_t>(Phase::kBackward)].busy_ns = made::constant(3 * kMs);
  net.steps({10 * kMs});
  const TreeOptions options{.columns = {Column::kActivities, Column::kBusy, Column::kActivityTime,
                                        Column::kSelf, Column::kRecompute, Column::kTotal}};
  EXPECT_EQ(rows(net.profile, options), R"(
layer  activities             busy    activity time             self        recompute            total
Net            42  3.00 ms  30.0 %  4.00 ms  40.0 %  75.0 µs   0.8 %  1.00 ms  10.0 %  6.00 ms  60.0 %
)");
}

TEST(Tree, PutsWhatIsWrongFirst) {
  Profile profile = made::small_net();
  profile.health.cut = true;
  profile.health.dropped = 45;
  profile.health.recorded = 12300;
  profile.run.simulated = "simulated laptop GPU";
  profile.health.notes = {"a layer was never entered"};
  profile.health.thrown_scopes = 1;
  profile.health.cut_scopes = 2;
  const std::string text = tree(profile);
  EXPECT_EQ(
      text.substr(0, text.find("Net")),
      "Warning: the recording is cut: its file ends without the closing record. "
      "The figures are of what was written until then.\n"
      "Warning: 45 of 12,345 records were dropped. Figures may be too low.\n"
      "Simulated: recorded on a simulated laptop GPU (simgpu). Its times say nothing about how "
      "fast a real GPU is.\n"
      "Note: a layer was never entered\n");
  EXPECT_NE(
      text.find("\n45 dropped of 12,345 records.\n"
                "1 scope left by an exception, 2 scopes still open when the recording ended.\n"),
      std::string::npos);
}

TEST(Tree, ListsEachCauseWithItsMostFrequentNames) {
  Profile profile = made::small_net();
  profile.health.attributed_share = 0.99999;
  profile.health.unattributed = {
      {"first", 1, 100, {{"a", 1}}},
      {"second", 2000, 6'000'000, {{"a", 1000}, {"b", 500}, {"c", 300}, {"d", 200}}},
      {"third", 2, 0, {}}};
  profile.health.unattributed_nodes = {{"fourth", 1, 1500, {{"MulBackward0", 1}}}};
  const std::string text = tree(profile);
  const std::size_t begin = text.find(">99.9 %");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ('\n' + text.substr(begin, text.find("0 dropped") - begin), R"(
>99.9 % of activity time is attributed: 1,204 activities, 12.0 ms in all.
1 of 1,204 activities (<0.1 % of activity time, 100 ns) has no layer: first (a ×1).
2,000 of 1,204 activities (50.0 % of activity time, 6.00 ms) have no layer: second (a ×1,000, b ×500, c ×300, …).
2 of 1,204 activities (0 % of activity time, 0 ns) have no layer: third.
310 autograd nodes, 309 attributed.
1 of 310 autograd nodes (1.50 µs) has no layer: fourth (MulBackward0 ×1).
)");
}

TEST(Tree, LeavesActivitiesOutWhereOperatorsWereNotRecorded) {
  Profile profile = made::small_net();
  profile.run.ops = false;
  const std::string text = tree(profile);
  EXPECT_EQ(text.find(" activities"), std::string::npos) << text;
  EXPECT_NE(text.find("\nOperators were not recorded, so there are no activity figures.\n"),
            std::string::npos);
  EXPECT_NE(text.find("55 ns a scope; writer"), std::string::npos);
  EXPECT_NE(tree(profile, {.columns = {Column::kActivities}}).find("Net                 –\n"),
            std::string::npos);
}

TEST(Tree, TakesSharesOfTheSumWhereNoStepWasRecorded) {
  ProfileMaker net;
  net.root("Net", {2 * kMs, 5 * kMs});
  net.outside(Phase::kOther, 3 * kMs, 1);
  EXPECT_EQ('\n' + tree(net.profile), R"(
Net
No step was recorded: figures are of the whole recording, shares of the sum of its times.

layer    type          forward         backward  calls  activities
Net            2.00 ms  20.0 %  5.00 ms  50.0 %      1           0
(other)        3.00 ms  30.0 %  1 activity

No activity was recorded.
No autograd node ran.
0 dropped of 0 records.
What recording cost was not measured.
)");
}

TEST(Tree, SurvivesAnEmptyProfile) {
  EXPECT_EQ('\n' + tree(Profile()), R"(
no layers
No step was recorded: figures are of the whole recording, shares of the sum of its times.

No activity was recorded.
No autograd node ran.
0 dropped of 0 records.
What recording cost was not measured.
)");
}

TEST(Tree, ShowsSeveralModelsOneAfterAnother) {
  ProfileMaker nets;
  nets.root("Generator", {1 * kMs, 2 * kMs});
  nets.root("Discriminator", {3 * kMs, 4 * kMs});
  nets[0].path = nets[0].name = "gen";
  nets[1].path = nets[1].name = "disc";
  nets.layer(1, "fc", "Linear", {3 * kMs, 4 * kMs});
  nets.steps({10 * kMs});
  const std::string text = tree(nets.profile, {.columns = {Column::kType, Column::kForward}});
  EXPECT_EQ(text.substr(0, text.find('\n')), "Generator, Discriminator");
  EXPECT_EQ('\n' + table_of(text), R"(
layer   type                   forward
gen     Generator      1.00 ms  10.0 %
disc    Discriminator  3.00 ms  30.0 %
└── fc  Linear         3.00 ms  30.0 %
)");
}

// "3 × Sequential" of 1, 4 and 16 M parameters would read as one size.
TEST(Tree, FoldsBlocksOnlyWhoseParametersAgree) {
  Profile profile = made::transformer();
  const auto table = [&] { return rows(profile, {.depth = 2, .columns = {Column::kParams}}); };
  const auto set = [&](int first, int last, auto change) {
    for (int i = first; i <= last; ++i) {
      for (Layer& layer : profile.layers) {
        if (layer.path == "blocks." + std::to_string(i)) change(layer);
      }
    }
  };
  set(0, 11, [](Layer& layer) { layer.params = layer.params_trainable = 1000; });
  EXPECT_NE(table().find("└── 0–11"), std::string::npos);
  set(6, 11, [](Layer& layer) { layer.params_trainable = 0; });  // frozen
  EXPECT_NE(table().find("├── 0–5"), std::string::npos) << table();
  EXPECT_NE(table().find("└── 6–11"), std::string::npos);
  set(3, 3, [](Layer& layer) { layer.params = 2000; });
  EXPECT_NE(table().find("├── 0–2"), std::string::npos) << table();
  EXPECT_NE(table().find("├── 3 "), std::string::npos);
}

}  // namespace
}  // namespace layertrace
