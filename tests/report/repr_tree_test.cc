// The model's own repr with times, and the same nested for programs.
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using made::kMs;
using made::kUs;
using made::ProfileMaker;

// A raw parameter and an operator in the root; a list, a dict and a Sequential, of which only the
// last is called.
Profile containers() {
  ProfileMaker net;
  const int root = net.root("Net", {5 * kMs, 7 * kMs});
  net.layer(root, "linear1", "Linear", {500 * kUs, 700 * kUs});
  const int list = net.layer(root, "linear3", "ModuleList", {2 * kMs, 3 * kMs, 0});
  net.layer(list, "0", "Linear", {1 * kMs, 2 * kMs});
  net.layer(list, "1", "Linear", {1 * kMs, 1 * kMs});
  const int sequential = net.layer(root, "linear4", "Sequential", {900 * kUs, 800 * kUs});
  net.layer(sequential, "0", "Linear", {400 * kUs, 300 * kUs});
  net.layer(sequential, "1", "Tanh", {100 * kUs, 0});
  const int dict = net.layer(root, "linear5", "ModuleDict", {600 * kUs, 900 * kUs, 0});
  net.layer(dict, "a", "Linear", {600 * kUs, 900 * kUs});
  net.not_run(root, "drop", "Dropout");
  net.steps({20 * kMs});
  return std::move(net.profile);
}

TEST(ReprTree, HasTimesWhereAModuleWasCalled) {
  EXPECT_EQ('\n' + repr_tree(containers()), R"(
Net(
  Forward Time: 5.000ms|Backward Time: 7.000ms
  (linear1): Linear(Forward Time: 0.500ms|Backward Time: 0.700ms)
  (linear3): ModuleList(
    (0): Linear(Forward Time: 1.000ms|Backward Time: 2.000ms)
    (1): Linear(Forward Time: 1.000ms|Backward Time: 1.000ms)
  )
  (linear4): Sequential(
    Forward Time: 0.900ms|Backward Time: 0.800ms
    (0): Linear(Forward Time: 0.400ms|Backward Time: 0.300ms)
    (1): Tanh(Forward Time: 0.100ms)
  )
  (linear5): ModuleDict(
    (a): Linear(Forward Time: 0.600ms|Backward Time: 0.900ms)
  )
  (drop): Dropout()
)
)");
}

TEST(ReprTree, HasWhatModulesSayOfThemselves) {
  const ExtraReprs extra{{"linear1", "in_features=10, out_features=11"},
                         {"drop", "p=0.5"},
                         {"linear4", "first\nsecond"}};
  const std::string text = repr_tree(containers(), {}, extra);
  EXPECT_NE(text.find("\n  (linear1): Linear(in_features=10, out_features=11, "
                      "Forward Time: 0.500ms|Backward Time: 0.700ms)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  (drop): Dropout(p=0.5)\n"), std::string::npos);
  EXPECT_NE(text.find("\n  (linear4): Sequential(\n    first\n    second\n    Forward Time: "),
            std::string::npos);
}

TEST(ReprTree, TakesPartOfTheModel) {
  EXPECT_EQ(repr_tree(containers(), {.depth = 0, .start = "linear4"}),
            "Sequential(\n  Forward Time: 0.900ms|Backward Time: 0.800ms\n  2 layers below\n)\n");
  EXPECT_EQ(repr_tree(containers(), {.type = "Tanh"}),
            "Net(\n  Forward Time: 5.000ms|Backward Time: 7.000ms\n  (linear4): Sequential(\n"
            "    Forward Time: 0.900ms|Backward Time: 0.800ms\n"
            "    (1): Tanh(Forward Time: 0.100ms)\n  )\n)\n");
  EXPECT_EQ(repr_tree(containers(), {.start = "linear9"}).find("no layer \"linear9\""), 0U);
  EXPECT_EQ(repr_tree(containers(), {.type = "Conv2d"}), "No layer is there of type \"Conv2d\".\n");
  EXPECT_EQ(repr_tree({}), "");
}

TEST(ReprTree, HasTheGpusTimes) {
  EXPECT_NE(repr_tree(made::counted_net())
                .find("(fc): Linear(Forward Time: 0.100ms|Backward Time: 0.200ms|GPU Forward Time: "
                      "0.080ms|GPU Backward Time: 0.160ms)"),
            std::string::npos);
}

TEST(ReprTree, SaysFirstThatAGpuWasSimulated) {
  Profile profile = made::counted_net();
  EXPECT_EQ(repr_tree(profile).find("Net("), 0U);
  profile.run.simulated = "simulated H100-class GPU";
  EXPECT_EQ(repr_tree(profile).find("Simulated: recorded on a simulated H100-class GPU (simgpu). "
                                    "Its times say nothing about how fast a real GPU is.\nNet("),
            0U);
}

TEST(ReprTree, LeavesOutWhatTheModelDoesNotHave) {
  const std::string text = repr_tree(made::small_net());
  EXPECT_EQ(text.find("late"), std::string::npos);  // unregistered
  EXPECT_NE(text.find("(out): Embedding()"), std::string::npos);
}

// ---- Nested ----

using Nested = nlohmann::json;

TEST(NestedJson, IsTheSameForPrograms) {
  const Nested root = Nested::parse(nested_json(containers()));
  EXPECT_EQ(root["name"], "Net");
  EXPECT_EQ(root["path"], "");
  EXPECT_EQ(root["depth"], 0);
  EXPECT_TRUE(root["container"].is_null());
  EXPECT_EQ(root["forward_ns"], 5'000'000);
  EXPECT_EQ(root["backward_ns"], 7'000'000);
  EXPECT_FALSE(root.contains("gpu_forward_ns"));
  const Nested& list = root["children"]["linear3"];
  EXPECT_EQ(list["container"], "ModuleList");
  EXPECT_TRUE(list["forward_ns"].is_null());
  EXPECT_EQ(list["calls"], 0);
  EXPECT_EQ(list["children"]["0"]["path"], "linear3.0");
  EXPECT_EQ(list["children"]["0"]["depth"], 2);
  EXPECT_EQ(list["children"]["0"]["backward_ns"], 2'000'000);
  EXPECT_EQ(root["children"]["linear4"]["container"], "Sequential");
  EXPECT_EQ(root["children"]["linear4"]["forward_ns"], 900'000);
  EXPECT_TRUE(root["children"]["drop"]["forward_ns"].is_null());
  EXPECT_TRUE(root["children"]["drop"]["children"].empty());
}

TEST(NestedJson, TakesPartOfTheModel) {
  const Nested root = Nested::parse(nested_json(containers(), {.depth = 1, .match = "linear4*"}));
  ASSERT_EQ(root["children"].size(), 1U);
  EXPECT_TRUE(root["children"]["linear4"]["children"].empty());
  EXPECT_EQ(Nested::parse(nested_json(containers(), {.start = "linear5.a"}))["name"], "a");
}

TEST(NestedJson, HasSeveralModelsOrNone) {
  EXPECT_EQ(Nested::parse(nested_json({})).dump(), R"({"children":{}})");
  Profile several = containers();
  several.layers.emplace_back().name = "Critic";
  EXPECT_EQ(Nested::parse(nested_json(several))["children"].size(), 2U);
}

TEST(NestedJson, SaysThatAGpuWasSimulated) {
  Profile profile = made::counted_net();
  EXPECT_FALSE(Nested::parse(nested_json(profile)).contains("simulated"));
  profile.run.simulated = "simulated H100-class GPU";
  const Nested root = Nested::parse(nested_json(profile));
  EXPECT_EQ(root["simulated"], "simulated H100-class GPU");
  EXPECT_FALSE(root["children"]["fc"].contains("simulated"));
}

TEST(NestedJson, SaysThatItsStartIsNotThere) {
  EXPECT_EQ(Nested::parse(nested_json(made::small_net(), {.start = "heads.7"})).dump(),
            R"({"error":"no layer \"heads.7\" in this profile; \"heads\" has 0, 1"})");
}

TEST(NestedJson, HasTheGpusTimes) {
  const Nested fc = Nested::parse(nested_json(made::counted_net()))["children"]["fc"];
  EXPECT_EQ(fc["gpu_forward_ns"], 80'000);
  EXPECT_EQ(fc["gpu_backward_ns"], 160'000);
}

}  // namespace
}  // namespace layertrace
