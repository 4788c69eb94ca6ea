// What operators compute, counted as LibTorch runs them.
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <layertrace/layertrace.h>

#include "torch/counting_plan.h"
#include "torch/run.h"

namespace layertrace::test {
namespace {

using ::testing::HasSubstr;

const Amounts& amounts_of(const Profile& profile, const std::string& path,
                          Phase phase = Phase::kForward) {
  const Layer* layer = profile.find(path);
  EXPECT_NE(layer, nullptr) << path;
  static const Amounts kNone;
  return layer != nullptr ? layer->phase(phase).amounts : kNone;
}

struct MlpImpl : torch::nn::Module {
  torch::nn::Linear up = register_module("up", torch::nn::Linear(8, 32));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(32, 4));
  torch::Tensor forward(const torch::Tensor& x) {
    ModuleScope scope(this);
    return down(torch::relu(up(x)));
  }
};
TORCH_MODULE(Mlp);

constexpr double kUp = 2.0 * 5 * 8 * 32;
constexpr double kDown = 2.0 * 5 * 32 * 4;

Profile train(Mlp& model, Options options, int steps = 3) {
  auto session = Session::start(model, std::move(options));
  EXPECT_TRUE(session);
  for (int i = 0; i < steps; ++i) {
    model->forward(torch::randn({5, 8})).sum().backward();
    session->step();
  }
  auto profile = session->stop();
  EXPECT_TRUE(profile);
  return *profile;
}

TEST(Counting, CountsForwardAndBackwardByLayer) {
  Mlp model;
  const Profile profile = train(model, {});
  EXPECT_EQ(amounts_of(profile, "up").flops, kUp);
  EXPECT_EQ(amounts_of(profile, "down").flops, kDown);
  EXPECT_EQ(amounts_of(profile, "").flops, kUp + kDown);
  // The input needs no gradient: of the first layer there is the weight's alone.
  EXPECT_EQ(amounts_of(profile, "up", Phase::kBackward).flops, kUp);
  EXPECT_EQ(amounts_of(profile, "down", Phase::kBackward).flops, 2 * kDown);
  EXPECT_EQ(profile.counted_share, 1);
}

TEST(Counting, IsTheSameInEveryModeButOff) {
  Mlp model;
  for (const bool ops : {true, false}) {
    for (const Counting count : {Counting::kFirst, Counting::kAlways}) {
      const Profile profile = train(model, {.ops = ops, .count = count});
      EXPECT_EQ(amounts_of(profile, "").flops, kUp + kDown);
      EXPECT_EQ(amounts_of(profile, "", Phase::kBackward).flops, kUp + 2 * kDown);
      const double activities = profile.find("")->phase(Phase::kForward).activities.max;
      EXPECT_EQ(activities == 0, !ops) << "operators are records only where they are asked for";
    }
  }
  const Profile off = train(model, {.count = Counting::kOff});
  EXPECT_TRUE(amounts_of(off, "").empty());
  EXPECT_TRUE(std::ranges::none_of(off.operators, &Operator::counted)) << "by their times alone";
  EXPECT_EQ(off.counted_share, 0);
}

TEST(Counting, CountsTheBytesOfAnOperatorsTensorsOnce) {
  Mlp model;
  const Profile profile = train(model, {});
  // addmm: the bias, the input, the weight, and what comes out; float32.
  constexpr double kBytes = 4.0 * (32 + 5 * 8 + 8 * 32 + 5 * 32);
  EXPECT_EQ(amounts_of(profile, "up").bytes, kBytes);
  EXPECT_EQ(amounts_of(profile, "up").activations, 5 * 32);
  EXPECT_EQ(amounts_of(profile, "up").flops_by_format[1], kUp) << "float32";
}

// PyTorch hands the outputs of operators only to those who asked for them, and we ask for fewer
// where nobody else does.
TEST(Counting, CountsTheSameBytesWhereAnotherAsksForOutputs) {
  Mlp model;
  const auto count_bytes = [&model] {
    model->zero_grad();
    auto session = Session::start(model, {.count = Counting::kAlways});
    EXPECT_TRUE(session);
    {
      Scope scope("in place");
      torch::Tensor x = torch::ones({16, 4});
      x.add_(torch::ones({4}));
      x.t().mul_(2);
      model->forward(torch::randn({5, 8})).sum().backward();
    }
    session->step();
    auto profile = session->stop();
    EXPECT_TRUE(profile);
    return *profile;
  };
  const Profile alone = count_bytes();
  static std::size_t outputs = 0;
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return {}; },
          [](const at::RecordFunction& fn, at::ObserverContext*) {
            outputs += fn.outputs().size();
          })
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
  const Profile beside = count_bytes();
  at::removeCallback(handle);
  EXPECT_GT(outputs, 20U) << "whoever asked for them was given them";

  ASSERT_EQ(alone.operators.size(), beside.operators.size());
  for (const Operator& op : alone.operators) {
    const auto same = std::ranges::find(beside.operators, op.name, &Operator::name);
    ASSERT_NE(same, beside.operators.end()) << op.name;
    EXPECT_EQ(op.amounts.bytes, same->amounts.bytes) << op.name;
    EXPECT_EQ(op.amounts.activations, same->amounts.activations) << op.name;
    // Reads 64 and 4 numbers, or 64 alone, and writes 64.
    if (op.name == "aten::add_") EXPECT_EQ(op.amounts.bytes, 4 * (64 + 4 + 64));
    if (op.name == "aten::mul_") EXPECT_EQ(op.amounts.bytes, 4 * (64 + 64));
  }
}

TEST(Counting, TakesTheUsersWordForACall) {
  Model model;
  auto inner = model->add("inner", Model());
  auto linear = inner->add("linear", torch::nn::Linear(8, 32));
  model->body = [&](torch::Tensor x) {
    ModuleScope scope(inner.ptr().get(), 1'000);
    return linear(std::move(x));
  };
  auto session = Session::start(model, {});
  ASSERT_TRUE(session);
  model->forward(torch::randn({5, 8})).sum().backward();
  session->step();
  const auto profile = session->stop();
  ASSERT_TRUE(profile);
  EXPECT_EQ(amounts_of(*profile, "inner").flops, 1'000);
  EXPECT_EQ(amounts_of(*profile, "inner.linear").flops, 0);
  EXPECT_NE(amounts_of(*profile, "inner.linear", Phase::kBackward).flops, 0) << "that ran, too";
}

TEST(Counting, UsesTheUsersFormulas) {
  ASSERT_TRUE(add_formula("aten::addmm", [](const OperatorCall& call) {
    const auto& mat1 = call.find("mat1")->shapes.at(0);
    return std::optional<std::uint64_t>(mat1[0] * 7);
  }));
  Mlp model;
  const Profile profile = train(model, {});
  EXPECT_EQ(amounts_of(profile, "up").flops, 5 * 7);
  EXPECT_TRUE(remove_formula("aten::addmm"));
  EXPECT_FALSE(remove_formula("aten::addmm"));
  EXPECT_EQ(amounts_of(train(model, {}), "up").flops, kUp);

  EXPECT_FALSE(add_formula("addmm", [](const OperatorCall&) { return std::nullopt; }));
  EXPECT_FALSE(add_formula("aten::addmm", {}));
  EXPECT_EQ(count_call({.name = "aten::mm",
                        .arguments = {{.name = "self", .shapes = {{2, 3}}},
                                      {.name = "mat2", .shapes = {{3, 4}}}}}),
            2U * 2 * 3 * 4);
  EXPECT_EQ(count_call({.name = "mylib::unheard_of", .arguments = {}}), std::nullopt);
}

TEST(Counting, AFormulaThatThrowsLeavesTheProgramAlone) {
  ASSERT_TRUE(add_formula("aten::addmm", [](const OperatorCall&) -> std::optional<std::uint64_t> {
    throw std::runtime_error("no");
  }));
  Mlp model;
  const Profile profile = train(model, {});
  EXPECT_EQ(amounts_of(profile, "up").flops, 0);
  bool listed = false;
  for (const Operator& op : profile.operators)
    listed = listed || (op.name == "aten::addmm" && op.uncounted == 2);
  EXPECT_TRUE(listed);
  EXPECT_TRUE(remove_formula("aten::addmm"));
}

TEST(Counting, SummarisesByOneCall) {
  Mlp model;
  const torch::NoGradGuard no_grad;
  const auto called = summary(model, torch::randn({5, 8}));
  ASSERT_TRUE(called) << called.error().message();
  EXPECT_EQ(amounts_of(*called, "").flops, kUp + kDown);
  MlpImpl on_the_stack;
  const auto not_called = summary(on_the_stack);
  ASSERT_TRUE(not_called);
  EXPECT_EQ(not_called->layers.size(), 3U);
}

TEST(Counting, ReadsTheNamesOfItsModes) {
  EXPECT_EQ(*parse_counting("always"), Counting::kAlways);
  const auto unknown = parse_counting("sometimes");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), HasSubstr("first, always, off"));
}

// ---- When ----

TEST(CountingPlan, CountsTheFirstStepAndThoseWithNewKeys) {
  CountingPlan plan(Counting::kFirst);
  EXPECT_TRUE(plan.begin_step());
  EXPECT_TRUE(plan.meet(1));
  EXPECT_FALSE(plan.begin_step());
  EXPECT_FALSE(plan.meet(1));
  EXPECT_TRUE(plan.meet(2)) << "new";
  EXPECT_TRUE(plan.meet(1)) << "to the step's end";
  EXPECT_FALSE(plan.begin_step());
  EXPECT_FALSE(plan.meet(2));
}

TEST(CountingPlan, CountsAStepAgainThatItLeftInTheMiddle) {
  CountingPlan plan(Counting::kFirst);
  EXPECT_TRUE(plan.begin_step());
  plan.abandon_step();
  EXPECT_TRUE(plan.begin_step());
}

TEST(CountingPlan, CountsNothingBetweenRecordedSteps) {
  CountingPlan plan(Counting::kFirst);
  plan.begin_step();
  plan.meet(1);
  plan.end_step();
  EXPECT_FALSE(plan.is_on());
  EXPECT_FALSE(plan.meet(2)) << "nothing of it is recorded";
  plan.begin_step();
  EXPECT_FALSE(plan.meet(1));
  EXPECT_TRUE(plan.meet(2));
}

TEST(CountingPlan, RemembersABoundedNumberOfKeys) {
  CountingPlan plan(Counting::kFirst);
  plan.begin_step();
  for (std::uint64_t key = 1; key < 1'000; ++key) {
    plan.meet(key);
    plan.begin_step();
  }
  EXPECT_FALSE(plan.meet(5'000));
}

TEST(CountingPlan, HasTwoOtherModes) {
  CountingPlan always(Counting::kAlways);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(always.begin_step() && always.meet(1));
  CountingPlan off(Counting::kOff);
  EXPECT_FALSE(off.begin_step() || off.meet(1));
}

}  // namespace
}  // namespace layertrace::test
