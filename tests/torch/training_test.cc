// A training step as a whole: its phases, its optimizers, its windows; and that recording changes
// nothing in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using torch::Tensor;

Strings outside(const Recorded& run, Phase phase) { return run.activities(kNobody, phase); }

Model small_model() {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  model->body = [fc](Tensor x) mutable { return fc(x).relu(); };
  return model;
}

// ---- Optimizers ----

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

TEST(Optimizers, EachOnesStepIsAPhaseOfItsOwn) {
  const std::vector<std::pair<std::string, Make>> kinds{
      {"SGD.step",
       [](auto p) {
         return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9));
       }},
      {"Adam.step", [](auto p) { return std::make_unique<optim::Adam>(p); }},
      {"AdamW.step", [](auto p) { return std::make_unique<optim::AdamW>(p); }},
      {"Adagrad.step", [](auto p) { return std::make_unique<optim::Adagrad>(p); }},
      {"RMSprop.step", [](auto p) { return std::make_unique<optim::RMSprop>(p); }},
  };
  for (const auto& [name, make] : kinds) {
    SCOPED_TRACE(name);
    Model model = small_model();
    const auto optimizer = make(model->parameters());
    Strings expected;
    const Recorded run = record(*model, [&] {
      model->forward(torch::randn({2, 3})).sum().backward();
      expected = PytorchLog::during([&] { optimizer->step(); });  // through the base class
      const Strings zeroed =
          PytorchLog::during([&] { optimizer->zero_grad(/*set_to_none=*/false); });
      expected.insert(expected.end(), zeroed.begin(), zeroed.end());
    });
    EXPECT_THAT(expected, ::testing::Not(IsEmpty()));
    EXPECT_EQ(lines(outside(run, Phase::kOptimizer)), lines(expected));
    EXPECT_THAT(run.regions(), ElementsAre("loss", "backward", name, "zero_grad"));
    for (const Span& region : run.select(SpanKind::kRegion)) {
      if (region.name == name || region.name == "zero_grad") {
        EXPECT_EQ(region.phase, Phase::kOptimizer);
      }
    }
    EXPECT_GT(run.profile.steps[0].phase_ns[static_cast<std::size_t>(Phase::kOptimizer)], 0U);
  }
}

TEST(Optimizers, AModelsZeroGradIsOneRegion) {
  Model model;
  auto sequential = model->add("sequential", nn::Sequential(nn::Linear(3, 3), nn::Linear(3, 3)));
  model->body = [&](Tensor x) { return sequential->forward(x); };
  Strings expected;
  const Recorded run = record(*model, [&] {
    model->forward(torch::randn({2, 3})).sum().backward();
    expected = PytorchLog::during([&] { model->zero_grad(/*set_to_none=*/false); });
  });
  EXPECT_EQ(lines(outside(run, Phase::kOptimizer)), lines(expected));
  EXPECT_THAT(run.regions(), ElementsAre("loss", "backward", "zero_grad"));
}

// LBFGS calls the model as often as it likes: each forward and backward is the layers', the rest
// the optimizer's.
TEST(Optimizers, AClosureBelongsToItsLayers) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 1));
  Makers makers(*model);
  model->body = [&](Tensor x) { return makers.claim(makers.call(fc, "fc", x).tanh(), kRoot); };
  optim::LBFGS optimizer(model->parameters(), optim::LBFGSOptions(0.1).max_iter(3));
  const Tensor x = torch::randn({4, 3});
  int closures = 0;
  Strings all;
  Strings in_closures;  // but for zero_grad, which is the optimizer's wherever it is called
  const Recorded run = record(*model, [&] {
    all = PytorchLog::during([&] {
      optimizer.step([&] {
        ++closures;
        optimizer.zero_grad();
        Tensor loss;
        const Strings inside = PytorchLog::during([&] {
          loss = makers.claim(model->forward(x).pow(2).mean(), kNobody);
          loss.backward();
        });
        in_closures.insert(in_closures.end(), inside.begin(), inside.end());
        return loss;
      });
    });
  });
  EXPECT_GE(closures, 2);
  expect_owners(run, makers);
  EXPECT_EQ(run.calls("fc"), closures);
  EXPECT_EQ(run.calls("fc", Phase::kBackward), closures);
  EXPECT_EQ(run.regions().front(), "LBFGS.step");
  EXPECT_EQ(outside(run, Phase::kOptimizer).size(), all.size() - in_closures.size());
  EXPECT_GE(outside(run, Phase::kLoss).size(), 2U * static_cast<std::size_t>(closures));
  EXPECT_THAT(run.activities("fc", Phase::kForward), Contains("aten::addmm").Times(closures));
}

// ---- Phases ----

TEST(Phases, DataLossAndTheRest) {
  Model model = small_model();
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.1));
  Strings data;
  Strings loss_ops;
  Strings other;
  const Recorded run = record(*model, [&] {
    Tensor x;
    {
      Scope scope("data");
      data = PytorchLog::during([&] { x = torch::randn({2, 3}).mul(2); });
    }
    Tensor loss;
    const Tensor y = model->forward(x);
    loss_ops = PytorchLog::during([&] { loss = nn::functional::mse_loss(y, x); });
    loss.backward();
    optimizer.step();
    {
      Scope scope("logging");
      other = PytorchLog::during([&] { loss.detach().sqrt(); });
    }
  });
  EXPECT_EQ(lines(outside(run, Phase::kData)), lines(data));
  Strings in_loss = outside(run, Phase::kLoss);
  ASSERT_GE(in_loss.size(), loss_ops.size());
  in_loss.resize(loss_ops.size());  // backward() itself makes its first gradient there, too
  EXPECT_EQ(lines(in_loss), lines(loss_ops));
  EXPECT_EQ(lines(outside(run, Phase::kOther)), lines(other));
  EXPECT_THAT(run.regions(), ElementsAre("data", "loss", "backward", "SGD.step", "logging"));
}

// As many programs have it: the gradients are cleared between the forward and the loss.
TEST(Phases, TheLossGoesOnAfterZeroGrad) {
  Model model = small_model();
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.1));
  Strings loss_ops;
  const Recorded run = record(*model, [&] {
    const Tensor y = model->forward(torch::randn({2, 3}));
    optimizer.zero_grad();
    Tensor loss;
    loss_ops = PytorchLog::during([&] { loss = y.pow(2).mean(); });
    loss.backward();
    optimizer.step();
  });
  Strings in_loss = outside(run, Phase::kLoss);
  in_loss.resize(std::min(in_loss.size(), loss_ops.size()));
  EXPECT_EQ(lines(in_loss), lines(loss_ops));
}

// An evaluation makes no nodes, and so has no loss to wait for.
TEST(Phases, EvaluationHasNoLoss) {
  Model model = small_model();
  const Recorded run = record(*model, [&] {
    {
      const torch::NoGradGuard no_grad;
      model->forward(torch::randn({2, 3})).argmax(1);
    }
    const c10::InferenceMode inference;
    model->forward(torch::randn({2, 3})).argmax(1);
  });
  EXPECT_THAT(run.scopes(), ElementsAre("", "fc", "", "fc"));
  EXPECT_THAT(run.regions(), IsEmpty());
  EXPECT_THAT(run.nodes(), IsEmpty());
  EXPECT_THAT(outside(run, Phase::kLoss), IsEmpty());
  EXPECT_THAT(outside(run, Phase::kOther), Contains("aten::argmax").Times(2));
  EXPECT_THAT(run.activities("fc", Phase::kForward), Contains("aten::addmm").Times(2));
}

// A loader's threads: what they do in a scope named "data" is that; the rest is said to be
// nobody's.
TEST(Phases, OfThreadsWithoutModules) {
  Model model = small_model();
  Strings expected;
  const Recorded run = record(*model, [&] {
    std::thread([&] {
      expected = PytorchLog::during([] {
        Scope scope("data");
        torch::randn({2, 3}).cos();
      });
      torch::ones({2}).sin();
    }).join();
    model->forward(torch::randn({2, 3}));
  });
  EXPECT_EQ(lines(outside(run, Phase::kData)), lines(expected));
  for (const Span& op : run.select(SpanKind::kActivity)) {
    if (op.name == "aten::sin") {
      EXPECT_EQ(op.cause, Cause::kThreadNoScope);
      EXPECT_EQ(op.phase, Phase::kOther);
    }
  }
  EXPECT_THAT(outside(run, Phase::kOther), Contains("aten::sin"));
}

TEST(Phases, AStepsTimeIsTheSumOfItsPhases) {
  Model model = small_model();
  optim::Adam optimizer(model->parameters());
  RunOptions options;
  options.steps = 3;
  const Recorded run = record(
      *model,
      [&] {
        optimizer.zero_grad();
        model->forward(torch::randn({2, 3})).sum().backward();
        optimizer.step();
      },
      options);
  ASSERT_EQ(run.profile.steps.size(), 3U);
  for (const Step& step : run.profile.steps) {
    std::uint64_t sum = 0;
    for (const std::uint64_t ns : step.phase_ns) sum += ns;
    EXPECT_EQ(sum, step.wall_ns);
    for (const Phase phase : {Phase::kForward, Phase::kLoss, Phase::kBackward, Phase::kOptimizer}) {
      EXPECT_GT(step.phase_ns[static_cast<std::size_t>(phase)], 0U) << phase_name(phase);
    }
  }
}

// ---- Windows ----

TEST(Windows, OnlyTheScheduledStepsAreRecorded) {
  Model model = small_model();
  for_each_way([&](const RunOptions& options) {
    RunOptions scheduled = options;
    scheduled.schedule = {.skip = 1, .warmup = 1, .record = 2, .repeat = 2};
    scheduled.steps = 10;
    scheduled.count = Counting::kOff;  // which listens to operators, too
    scheduled.log = false;
    int step = 0;
    const Recorded run = record(
        *model,
        [&] {
          const std::vector<bool> recorded{false, false, true, true,  false,
                                           false, true,  true, false, false};
          EXPECT_EQ(
              at::hasGlobalCallbacks(),
              (options.ops || options.nodes == NodeSource::kCallbacks) && step < 8 && step % 4 != 0)
              << step;
          for (int i = 0; i <= step; ++i) model->forward(torch::randn({2, 3})).sum().backward();
          ++step;
        },
        scheduled);
    std::vector<std::uint64_t> indices;
    for (const Step& each : run.profile.steps) indices.push_back(each.index);
    EXPECT_THAT(indices, ElementsAre(2, 3, 6, 7));
    const Stat& calls = run.layer("fc").phase(Phase::kForward).calls;
    EXPECT_EQ(calls.min, 3);
    EXPECT_EQ(calls.max, 8);
    EXPECT_EQ(calls.mean, 5.5);
    EXPECT_EQ(run.layer("fc").phase(Phase::kBackward).calls.mean, 5.5);
  });
}

// A scope around the whole loop is open over windows that it did not see begin or end.
TEST(Windows, AScopeOverAllOfThem) {
  Model model = small_model();
  RunOptions scheduled;
  scheduled.schedule = {.skip = 1, .record = 1, .repeat = 3};
  scheduled.steps = 7;
  std::optional<Scope> loop;
  int step = 0;
  const Recorded run = record(
      *model,
      [&] {
        if (step == 1) loop.emplace("loop");
        if (step == 3) loop.reset();
        ++step;
        model->forward(torch::randn({2, 3})).sum().backward();
      },
      scheduled);
  EXPECT_EQ(run.profile.steps.size(), 3U);
  EXPECT_EQ(run.calls("fc"), 1);
  EXPECT_THAT(run.regions(),
              ElementsAre("loop", "loss", "backward", "loss", "backward", "loss", "backward"));
  // After its end no one is inside it.
  for (const Span& scope : run.select(SpanKind::kScope)) {
    if (scope.layer.empty() && scope.start_ns > run.profile.steps[1].start_ns) {
      EXPECT_EQ(scope.around, -1);
    }
  }
}

// ---- Nothing changes ----

struct Outcome {
  std::vector<Tensor> losses;
  std::vector<Tensor> gradients;
  std::vector<Tensor> parameters;
};

struct Training {
  Training() {
    torch::manual_seed(7);
    model = Model();
    auto conv = model->add("conv", nn::Conv2d(nn::Conv2dOptions(1, 4, 3)));
    auto norm = model->add("norm", nn::BatchNorm2d(4));
    auto drop = model->add("drop", nn::Dropout(0.3));
    auto fc = model->add("fc", nn::Linear(4 * 6 * 6, 5));
    model->body = [=](Tensor x) mutable { return fc(drop(norm(conv(x)).relu()).flatten(1)); };
    optimizer = std::make_unique<optim::Adam>(model->parameters(), optim::AdamOptions(1e-2));
  }
  void step() {
    optimizer->zero_grad();
    const Tensor loss = nn::functional::cross_entropy(model->forward(torch::randn({8, 1, 8, 8})),
                                                      torch::randint(0, 5, {8}, torch::kLong));
    loss.backward();
    optimizer->step();
    outcome.losses.push_back(loss.detach().clone());
  }
  Outcome finish() {
    for (const Tensor& p : model->parameters()) {
      outcome.parameters.push_back(p.detach().clone());
      outcome.gradients.push_back(p.grad().clone());
    }
    return outcome;
  }
  Model model{nullptr};
  std::unique_ptr<optim::Adam> optimizer;
  Outcome outcome;
};

TEST(Nothing, OfTheResultsChanges) {
  const auto expect_equal = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
  };
  Training plain;
  for (int i = 0; i < 4; ++i) plain.step();
  const Outcome expected = plain.finish();
  for_each_way([&](RunOptions options) {
    Training recorded;
    options.steps = 4;
    options.log = false;
    record(*recorded.model, [&] { recorded.step(); }, options);
    const Outcome found = recorded.finish();
    expect_equal(found.losses, expected.losses);
    expect_equal(found.gradients, expected.gradients);
    expect_equal(found.parameters, expected.parameters);
  });
}

TEST(Nothing, RemainsAfterTheEnd) {
  Model model = small_model();
  EXPECT_FALSE(at::hasGlobalCallbacks());
  const Tensor weight = model->parameters()[0];
  const auto uses = weight.use_count();
  for_each_way([&](const RunOptions& options) {
    RunOptions quiet = options;
    quiet.log = false;
    record(*model, [&] { model->forward(torch::randn({2, 3})).sum().backward(); }, quiet);
    model->zero_grad();
    EXPECT_FALSE(at::hasGlobalCallbacks());
    EXPECT_EQ(layertrace::detail::recording.load(), 0U);
    EXPECT_EQ(weight.use_count(), uses);
    EXPECT_EQ(weight.weak_use_count(), 1U);
  });
}

}  // namespace
}  // namespace layertrace::test
