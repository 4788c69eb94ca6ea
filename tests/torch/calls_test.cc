// What goes into modules and comes out of them: told, given to formulas of their classes, and
// watched for what has to be counted anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <layertrace/layertrace.h>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "input > output" of each row.
Strings rows(const Profile& profile, const std::string& path) {
  Strings result;
  const Layer* layer = profile.find(path);
  EXPECT_NE(layer, nullptr) << path;
  if (layer == nullptr) return result;
  for (const CallShapes& row : layer->shapes) result.push_back(row.input + " > " + row.output);
  return result;
}

double forward_flops(const Profile& profile, const std::string& path) {
  const Layer* layer = profile.find(path);
  EXPECT_NE(layer, nullptr) << path;
  return layer != nullptr ? layer->phase(Phase::kForward).amounts.flops : -1;
}

// Records `step` as often as there are sizes, and gives the result as it is and as the file has it.
template <typename Holder>
std::pair<Profile, Profile> recorded(const Holder& model, const std::function<void(int)>& step,
                                     int steps = 1, Options options = {}) {
  options.output = trace_path();
  auto session = Session::start(model, options);
  EXPECT_TRUE(session) << session.error().message();
  for (int i = 0; i < steps; ++i) {
    step(i);
    session->step();
  }
  auto live = session->stop();
  EXPECT_TRUE(live) << live.error().message();
  auto loaded = load(options.output);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return {*live, *loaded};
}

// ---- Shapes ----

struct BlockImpl : nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(8, 4));
  torch::Tensor forward(torch::Tensor x) {
    ModuleScope scope(this, x);
    return scope.output(linear(std::move(x)));
  }
};
TORCH_MODULE(Block);

TEST(CallShapes, OfAModuleOfOnesOwnAreToldByItsScope) {
  Block block;
  const auto [live, loaded] = recorded(block, [&](int) { block(torch::randn({5, 8})); });
  EXPECT_THAT(rows(live, ""), ElementsAre("float32[5, 8] > float32[5, 4]"));
  EXPECT_THAT(rows(loaded, ""), ElementsAre("float32[5, 8] > float32[5, 4]"));
}

struct ManyImpl : nn::Module {
  using Output = std::pair<torch::Tensor, std::vector<torch::Tensor>>;
  Output forward(const torch::Tensor& x, const std::map<std::string, torch::Tensor>& more,
                 std::optional<torch::Tensor> mask, torch::TensorList list, const std::string& mode,
                 double scale) {
    ModuleScope scope(this, x, more, mask, list, mode, scale);
    return scope.output(Output{x * scale, {x.sum(), x.to(torch::kLong)}});
  }
};
TORCH_MODULE(Many);

TEST(CallShapes, AreFoundInListsMapsAndOptionalValues) {
  Many many;
  const std::vector<torch::Tensor> list = {torch::ones({3}), torch::ones({4}), torch::Tensor()};
  const auto [live, loaded] = recorded(many, [&](int) {
    many->forward(torch::ones({2}), {{"a", torch::ones({1}, torch::kDouble)}}, std::nullopt, list,
                  "mode", 2.0);
  });
  const std::string expected =
      "float32[2], float64[1], float32[3], float32[4] > float32[2], float32[], int64[2]";
  EXPECT_THAT(rows(live, ""), ElementsAre(expected));
  EXPECT_THAT(rows(loaded, ""), ElementsAre(expected));
}

TEST(CallShapes, MayBeOfTheInputsAlone) {
  Model model;
  auto inner = model->add("inner", Model());
  auto silent = model->add("silent", Model());
  model->body = [&](const torch::Tensor& x) {
    const ModuleScope scope(inner.ptr().get(), x);
    const ModuleScope nothing(silent.ptr().get());
    return x + 1;
  };
  const auto [live, loaded] = recorded(model, [&](int) { model(torch::ones({2, 3})); });
  EXPECT_THAT(rows(live, "inner"), ElementsAre("float32[2, 3] > "));
  EXPECT_THAT(rows(loaded, "inner"), ElementsAre("float32[2, 3] > "));
  EXPECT_THAT(rows(live, "silent"), IsEmpty());
}

TEST(CallShapes, AreToldOfNorms) {
  Model model;
  auto batch = model->add("batch", nn::BatchNorm2d(3));
  auto instance = model->add("instance", nn::InstanceNorm1d(3));
  model->body = [&](const torch::Tensor& x) {
    instance(torch::ones({3, 7}));  // without a batch: it is squeezed on its way out
    return batch(x);
  };
  const auto [live, loaded] = recorded(model, [&](int) { model(torch::randn({2, 3, 4, 5})); });
  for (const Profile& profile : {live, loaded}) {
    EXPECT_THAT(rows(profile, "batch"), ElementsAre("float32[2, 3, 4, 5] > float32[2, 3, 4, 5]"));
    EXPECT_THAT(rows(profile, "instance"), ElementsAre("float32[3, 7] > float32[3, 7]"));
  }
}

TEST(CallShapes, OfANormThatThrowsAreNone) {
  Model model;
  auto batch = model->add("batch", nn::BatchNorm2d(3));
  auto linear = model->add("linear", nn::Linear(5, 2));
  model->body = [&](const torch::Tensor& x) {
    EXPECT_ANY_THROW(batch(torch::ones({2, 4, 1, 1})));  // four channels, not three
    return linear(x);
  };
  const auto [live, loaded] = recorded(model, [&](int) { model(torch::randn({1, 5})); });
  for (const Profile& profile : {live, loaded}) {
    EXPECT_THAT(rows(profile, "batch"), IsEmpty());
    EXPECT_THAT(rows(profile, "linear"), ElementsAre("float32[1, 5] > float32[1, 2]"));
  }
}

// It calls itself, and the inner call throws.
struct AgainImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    ModuleScope scope(this, x);
    if (x.size(0) == 1) throw std::runtime_error("too small");
    try {
      forward(x.slice(0, 0, x.size(0) / 2));
    } catch (const std::runtime_error&) {
    }
    return scope.output(x.sum(1));
  }
};
TORCH_MODULE(Again);

TEST(CallShapes, OfACallThatThrewAreNotItsCallers) {
  Again again;
  const auto [live, loaded] = recorded(again, [&](int) { again(torch::ones({2, 3})); });
  EXPECT_THAT(rows(live, ""), ElementsAre("float32[2, 3] > float32[2]"));
  EXPECT_THAT(rows(loaded, ""), ElementsAre("float32[2, 3] > float32[2]"));
}

TEST(CallShapes, AreNotLookedForWithoutCounting) {
  Block block;
  const auto [live, loaded] =
      recorded(block, [&](int) { block(torch::randn({5, 8})); }, 1, {.count = Counting::kOff});
  EXPECT_THAT(rows(live, ""), IsEmpty());
}

// ---- Formulas of classes ----

struct WideBlockImpl : BlockImpl {};
TORCH_MODULE(WideBlock);

TEST(ClassFormulas, TakeThePlaceOfWhatIsCountedInside) {
  Block block;
  const auto run = [&](Options options) {
    return recorded(block, [&](int) { block(torch::randn({5, 8})); }, 1, std::move(options)).first;
  };
  constexpr double kInside = 2.0 * 5 * 8 * 4;
  EXPECT_EQ(forward_flops(run({}), ""), kInside);
  add_formula<Block>([](const BlockImpl& module, const Shapes& inputs, const Shapes& output) {
    EXPECT_EQ(module.linear->options.in_features(), 8);
    return 1000 * inputs.at(0).at(0) + output.at(0).at(1);
  });
  const Profile profile = run({});
  EXPECT_EQ(forward_flops(profile, ""), 5004);
  EXPECT_EQ(forward_flops(profile, "linear"), 0);
  // A session's comes before the process's, and goes with the session.
  const auto seven = [](const BlockImpl&, const Shapes&, const Shapes&) { return 7; };
  EXPECT_EQ(forward_flops(run({.formulas = Formulas().add<BlockImpl>(seven)}), ""), 7);
  EXPECT_EQ(forward_flops(run({}), ""), 5004);
  EXPECT_TRUE(remove_formula<Block>());
  EXPECT_FALSE(remove_formula<Block>());
  EXPECT_EQ(forward_flops(run({}), ""), kInside);
}

TEST(ClassFormulas, AreOfDerivedClassesTooAndOfLibTorchsLayers) {
  Model model;
  auto wide = model->add("wide", WideBlock());
  auto norm = model->add("norm", nn::BatchNorm1d(4));
  auto last = model->add("last", nn::Linear(4, 2));
  model->body = [&](torch::Tensor x) { return last(norm(wide->forward(std::move(x)))); };
  const auto elements = [](const auto&, const Shapes& inputs, const Shapes& output) {
    return inputs.at(0).at(0) * inputs.at(0).at(1) * 10 + output.at(0).at(1);
  };
  Formulas formulas;
  formulas.add<Block>([](const BlockImpl&, const Shapes&, const Shapes&) { return 3; });
  formulas.add<nn::BatchNorm1d>(elements);
  formulas.add<nn::Linear>(elements);
  const Profile profile =
      recorded(model, [&](int) { model(torch::randn({6, 8})); }, 1, {.formulas = formulas}).first;
  EXPECT_EQ(forward_flops(profile, "wide"), 3) << "and not its linear layer's own";
  EXPECT_EQ(forward_flops(profile, "norm"), 6 * 4 * 10 + 4);
  EXPECT_EQ(forward_flops(profile, "last"), 6 * 4 * 10 + 2);
}

TEST(ClassFormulas, ThatThrowOrCannotTellLeaveTheCallUncounted) {
  Block block;
  for (const bool throws : {true, false}) {
    const auto formula = [throws](const BlockImpl&, const Shapes& inputs,
                                  const Shapes&) -> std::optional<std::uint64_t> {
      if (throws) return inputs.at(17).at(0);
      return std::nullopt;
    };
    const Profile profile = recorded(block, [&](int) { block(torch::randn({5, 8})); }, 1,
                                     {.formulas = Formulas().add<Block>(formula)})
                                .first;
    EXPECT_EQ(forward_flops(profile, ""), 0);
    double uncounted = 0;
    for (const Operator& op : profile.operators)
      uncounted += op.name.ends_with("Block") ? op.uncounted : 0;
    EXPECT_EQ(uncounted, 1);
  }
}

TEST(ClassFormulas, OfOperatorsMayBeASessionsToo) {
  Block block;
  const auto run = [&](Options options) {
    return recorded(block, [&](int) { block(torch::randn({5, 8})); }, 1, std::move(options)).first;
  };
  const auto eleven = [](const OperatorCall&) { return std::optional<std::uint64_t>(11); };
  const auto twelve = [](const OperatorCall&) { return std::optional<std::uint64_t>(12); };
  ASSERT_TRUE(add_formula("aten::addmm", twelve));
  EXPECT_EQ(forward_flops(run({.formulas = Formulas().add("aten::addmm", eleven)}), ""), 11);
  EXPECT_EQ(forward_flops(run({}), ""), 12);
  EXPECT_TRUE(remove_formula("aten::addmm"));
  EXPECT_EQ(forward_flops(run({}), ""), 2.0 * 5 * 8 * 4);
  EXPECT_FALSE(Session::start(block, {.formulas = Formulas().add("addmm", eleven)}));
  EXPECT_EQ(forward_flops(run({}), ""), 2.0 * 5 * 8 * 4);
}

// ---- Watching ----

// Sixteen rows in every third step, else four: of nine steps, an average of eight.
constexpr int kSteps = 9;
std::int64_t rows_of(int step) { return step % 3 == 2 ? 16 : 4; }
constexpr double kMean = 2.0 * 8 * 8 * 4;

TEST(Watching, CountsAStepAnewWhoseModelTellsOfOtherInputs) {
  Block block;
  const auto [live, loaded] =
      recorded(block, [&](int i) { block(torch::randn({rows_of(i), 8})); }, kSteps);
  for (const Profile& profile : {live, loaded}) {
    EXPECT_EQ(forward_flops(profile, ""), kMean);
    EXPECT_EQ(profile.counted_share, 1);
  }
}

TEST(Watching, TakesTheFirstLayerForAModelThatTellsNothing) {
  Model model;
  auto linear = model->add("linear", nn::Linear(8, 4));
  auto relu = model->add("relu", nn::ReLU());
  model->body = [&](torch::Tensor x) { return relu(linear(std::move(x))); };
  const auto [live, loaded] =
      recorded(model, [&](int i) { model(torch::randn({rows_of(i), 8})); }, kSteps);
  for (const Profile& profile : {live, loaded}) {
    EXPECT_EQ(forward_flops(profile, ""), kMean);
    EXPECT_EQ(profile.counted_share, 1);
  }
}

TEST(Watching, TakesTheFirstLayerForAModelThatIsNotSeen) {
  nn::Sequential model(nn::Linear(8, 4), nn::ReLU());
  const auto [live, loaded] =
      recorded(model, [&](int i) { model->forward(torch::randn({rows_of(i), 8})); }, kSteps);
  EXPECT_EQ(forward_flops(live, "0"), kMean);
  EXPECT_EQ(forward_flops(loaded, "0"), kMean);
}

TEST(Watching, SeesEachCallInAStep) {
  nn::Sequential model(nn::Linear(8, 4), nn::ReLU());
  // The second call changes, the first does not.
  const auto [live, loaded] = recorded(
      model,
      [&](int i) {
        model->forward(torch::randn({1, 8}));
        model->forward(torch::randn({rows_of(i), 8}));
      },
      kSteps);
  EXPECT_EQ(forward_flops(live, "0"), kMean + 2.0 * 8 * 4);
}

// What the user says of the model's call holds though it is only inside that there is something to
// count.
TEST(Watching, KeepsTheUsersWordForACallThatTellsNothing) {
  Model model;
  auto linear = model->add("linear", nn::Linear(8, 4));
  model->body = [&](torch::Tensor x) { return linear(std::move(x)); };
  Formulas formulas;
  formulas.add<Model>([](const ModelImpl&, const Shapes& inputs, const Shapes& output) {
    EXPECT_TRUE(inputs.empty() && output.empty());
    return 100;
  });
  const Profile profile = recorded(model, [&](int i) { model(torch::randn({rows_of(i), 8})); },
                                   kSteps, {.formulas = formulas})
                              .first;
  EXPECT_DOUBLE_EQ(forward_flops(profile, ""), 100);
}

}  // namespace
}  // namespace layertrace::test
