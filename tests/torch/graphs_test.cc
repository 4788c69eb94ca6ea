// Graphs that are not one forward and one backward on one thread: higher derivatives,
// recomputation, threads, exceptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::Contains;
using ::testing::ElementsAre;
using torch::Tensor;

// ---- Higher derivatives ----

TEST(Graphs, TheGradientsGradient) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  auto b = model->add("b", nn::Linear(3, 1));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    model->body = [&](Tensor x) { return makers.call(b, "b", makers.call(a, "a", x).tanh()); };
    model->zero_grad();
    const Recorded run = record(
        *model,
        [&] {
          const Tensor x = torch::randn({2, 3}, torch::requires_grad());
          const Tensor score = makers.claim(model->forward(x).sum(), kNobody);
          makers.claim_gradients();
          const Tensor slope = torch::autograd::grad({score}, {x}, {}, /*retain_graph=*/true,
                                                     /*create_graph=*/true)[0];
          makers.claim(slope.pow(2).sum(), kNobody).backward();
        },
        options);
    expect_owners(run, makers);
    // The second pass runs what the first one made, and that is the layers', not the root's or
    // nobody's.
    EXPECT_THAT(run.nodes(), Contains("TanhBackwardBackward0 of "));
    EXPECT_THAT(run.nodes(), Contains("MmBackward0 of a"));
    EXPECT_THAT(run.nodes(), Contains("MmBackward0 of b"));
  });
}

// A force field: the forward itself differentiates, and is then trained.
TEST(Graphs, AGradientInsideTheForward) {
  Model model;
  auto energy = model->add("energy", Model());
  auto fc = energy->add("fc", nn::Linear(3, 3));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    energy->body = [&](Tensor x) {
      return makers.claim(makers.call(fc, "energy.fc", x, "energy").tanh().sum(), "energy");
    };
    model->body = [&](Tensor x) {
      const Tensor e = energy->forward(x);
      makers.claim_gradients();
      const Tensor force = torch::autograd::grad({e}, {x}, {}, true, /*create_graph=*/true)[0];
      return makers.claim(force.neg().pow(2).sum(), kRoot);
    };
    model->zero_grad();
    const Recorded run = record(
        *model,
        [&] {
          makers.claim(model->forward(torch::randn({2, 3}, torch::requires_grad())), kRoot)
              .backward();
        },
        options);
    expect_owners(run, makers);
    EXPECT_THAT(run.scopes(), ElementsAre("", "energy", "energy.fc"));
    // Differentiating inside the forward is backward work of the layers, and inside the root's
    // forward in time.
    const auto regions = run.select(SpanKind::kRegion);
    ASSERT_FALSE(regions.empty());
    EXPECT_EQ(regions[0].name, "backward");
    ASSERT_GE(regions[0].around, 0);
    EXPECT_EQ(run.spans[static_cast<std::size_t>(regions[0].around)].kind, SpanKind::kScope);
    // Its backward spans: one for each run of its nodes.
    const auto nodes = run.select(SpanKind::kNode);
    int runs = 0;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].layer == "energy.fc" && nodes[i - 1].layer != "energy.fc") ++runs;
    }
    EXPECT_EQ(run.calls("energy.fc", Phase::kBackward), runs);
    EXPECT_TRUE(run.layer("energy.fc").phase(Phase::kRecompute).empty());
    for (const Span& node : run.select(SpanKind::kNode)) {
      if (!node.accumulates) {
        EXPECT_NE(node.layer, kNobody) << node.name;
      }
    }
  });
}

// ---- Recomputation ----

// Checkpointing as it is written by hand: the forward keeps nothing, the backward runs it again,
// with a graph of its own.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        ModelImpl* block) {
    context->save_for_backward({x});
    context->saved_data["block"] = reinterpret_cast<int64_t>(block);
    return block->forward(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* block = reinterpret_cast<ModelImpl*>(context->saved_data["block"].toInt());
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const torch::AutoGradMode with_grad(true);
    block->forward(x).backward(gradients[0]);
    return {x.grad(), Tensor()};
  }
};

TEST(Graphs, RecomputationInsideABackward) {
  Model model;
  auto first = model->add("first", nn::Linear(3, 3));
  auto block = model->add("block", Model());
  auto fc1 = block->add("fc1", nn::Linear(3, 3));
  auto fc2 = block->add("fc2", nn::Linear(3, 3));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    block->body = [&](Tensor x) {
      x = makers.call(fc1, "block.fc1", x, "block").relu();
      return makers.call(fc2, "block.fc2", x, "block");
    };
    model->body = [&](Tensor x) {
      x = makers.call(first, "first", x);
      return makers.claim(Checkpoint::apply(x, block.get()), kRoot);
    };
    model->zero_grad();
    const Recorded run = record(
        *model,
        [&] { makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody).backward(); },
        options);
    expect_node_owners(run, makers);
    EXPECT_THAT(run.scopes(),
                ElementsAre("", "first", "block", "block.fc1", "block.fc2", "block recompute",
                            "block.fc1 recompute", "block.fc2 recompute"));
    EXPECT_EQ(run.layer("block").calls, 2);
    EXPECT_EQ(run.calls("block", Phase::kRecompute), 1);
    EXPECT_THAT(run.nodes(), Contains("AddmmBackward0 of block.fc1"));
    EXPECT_THAT(run.nodes(), Contains("ReluBackward0 of block"));
    EXPECT_THAT(run.nodes(), Contains("AddmmBackward0 of first"));
    for (const char* path : {"block", "block.fc1", "block.fc2"}) {
      EXPECT_EQ(lines(run.activities(path, Phase::kRecompute)),
                lines(run.activities(path, Phase::kForward)))
          << path;
    }
    EXPECT_EQ(run.profile.health.unattributed_nodes.size(),
              2U);  // the sum, and the leaf that the checkpoint made
  });
}

// ---- Threads ----

TEST(Graphs, OneModuleInTwoThreadsAtOnce) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    std::mutex mutex;
    std::atomic<int> inside{0};
    model->body = [&](Tensor x) {
      ++inside;
      while (inside < 2) std::this_thread::yield();  // both have their scope open now
      const Tensor y = fc(x);
      const Tensor z = y.relu();
      const std::lock_guard lock(mutex);
      makers.claim(y, "fc");
      return makers.claim(z, kRoot);
    };
    model->zero_grad();
    const Recorded run = record(
        *model,
        [&] {
          const auto train = [&] {
            torch::autograd::grad({model->forward(torch::randn({2, 3})).sum()}, {fc->weight});
          };
          std::thread other(train);
          train();
          other.join();
        },
        options);
    expect_node_owners(run, makers);
    EXPECT_EQ(run.calls(""), 2);
    EXPECT_EQ(run.calls("fc"), 2);
    EXPECT_EQ(run.calls("fc", Phase::kBackward), 2);
    const auto scopes = run.select(SpanKind::kScope);
    std::map<std::uint64_t, Strings> by_thread;
    for (const Span& scope : scopes) by_thread[scope.tid].push_back(scope.layer);
    ASSERT_EQ(by_thread.size(), 2U);
    for (const auto& [tid, paths] : by_thread) EXPECT_THAT(paths, ElementsAre("", "fc"));
  });
}

TEST(Graphs, ForwardOnOneThreadBackwardOnAnother) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    model->body = [&](Tensor x) { return makers.claim(makers.call(fc, "fc", x).relu(), kRoot); };
    model->zero_grad();
    std::uint64_t other_tid = 0;
    const Recorded run = record(
        *model,
        [&] {
          Tensor loss;
          std::thread forward([&] {
            other_tid = static_cast<std::uint64_t>(gettid());
            loss = makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody);
          });
          forward.join();
          loss.backward();
        },
        options);
    expect_owners(run, makers);
    for (const Span& scope : run.select(SpanKind::kScope)) EXPECT_EQ(scope.tid, other_tid);
    for (const Span& node : run.select(SpanKind::kNode)) EXPECT_NE(node.tid, other_tid);
    EXPECT_EQ(run.calls("fc", Phase::kBackward), 1);
  });
}

// ---- Exceptions ----

struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(Graphs, AnExceptionInTheForwardPassesThrough) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  auto inner = model->add("inner", Model());
  bool fail = true;
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    fail = true;
    inner->body = [&](Tensor x) {
      if (fail) throw OwnError("as it was");
      return makers.call(fc, "fc", x, "inner");
    };
    model->body = [&](Tensor x) {
      return makers.claim(makers.call(inner, "inner", x * 2).relu(), kRoot);
    };
    model->zero_grad();
    const auto step = [&] {
      if (!fail)
        return makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody).backward();
      try {
        Scope scope("attempt");
        model->forward(torch::randn({2, 3}));
        ADD_FAILURE() << "the exception did not come through";
      } catch (const OwnError& error) {
        EXPECT_STREQ(error.what(), "as it was");
      }
      EXPECT_THROW(fc(torch::randn({2, 7})), c10::Error);  // a layer's own exception
      fail = false;
    };
    RunOptions twice = options;
    twice.steps = 2;
    const Recorded run = record(*model, step, twice);
    expect_owners(run, makers);
    EXPECT_THAT(run.scopes(), ElementsAre("", "inner", "fc", "", "inner", "fc"));
    const auto scopes = run.select(SpanKind::kScope);
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      EXPECT_EQ(scopes[i].ended_by, i < 3 ? EndedBy::kException : EndedBy::kExit) << i;
    }
    EXPECT_EQ(run.profile.health.thrown_scopes, 3U);
    EXPECT_EQ(run.profile.health.cut_scopes, 0U);
    EXPECT_EQ(run.regions().front(), "attempt");
  });
}

TEST(Graphs, AnExceptionInTheBackwardPassesThrough) {
  Model model;
  auto a = model->add("a", nn::Linear(3, 3));
  auto b = model->add("b", nn::Linear(3, 3));
  for_each_way([&](const RunOptions& options) {
    Makers makers(*model);
    bool fail = true;
    model->body = [&](Tensor x) {
      const Tensor y = makers.call(a, "a", x);
      if (fail)
        y.register_hook([](const Tensor& /*gradient*/) -> Tensor { throw OwnError("as it was"); });
      return makers.call(b, "b", y);
    };
    model->zero_grad();
    RunOptions twice = options;
    twice.steps = 2;
    const Recorded run = record(
        *model,
        [&] {
          const Tensor loss = makers.claim(model->forward(torch::randn({2, 3})).sum(), kNobody);
          if (!fail) return loss.backward();
          EXPECT_THROW(loss.backward(), OwnError);
          fail = false;
        },
        twice);
    expect_node_owners(run, makers);
    EXPECT_THAT(run.scopes(), ElementsAre("", "a", "b", "", "a", "b"));
    EXPECT_EQ(run.profile.health.thrown_scopes, 0U);
    for (const Span& node : run.select(SpanKind::kNode)) {
      EXPECT_TRUE(node.layer != kNobody || node.name == "SumBackward0") << node.name;
    }
  });
}

// A session that ends inside a forward, and one that begins inside: neither leaves anything to the
// next.
TEST(Graphs, ASessionThatEndsInsideAForward) {
  Model model;
  auto fc = model->add("fc", nn::Linear(3, 3));
  std::optional<Session> session;
  model->body = [&](Tensor x) {
    x = fc(x);
    if (session) {
      EXPECT_TRUE(session->stop().has_value());
      EXPECT_EQ(session->profile()->health.cut_scopes, 1U);
      session.reset();
    } else {
      session.emplace(std::move(*Session::start(*model)));
    }
    return fc(x);
  };
  session.emplace(std::move(*Session::start(*model)));
  const Tensor x = torch::randn({2, 3});
  model->forward(x);  // stops it
  model->forward(x);  // starts another
  ASSERT_TRUE(session.has_value());
  session->step();
  const auto profile = session->stop();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->find("fc")->calls, 1);
  EXPECT_EQ(profile->find("")->calls, 0);
  EXPECT_EQ(profile->health.cut_scopes, 0U);
  session.reset();
  const Recorded run = record(*model, [&] { fc(x); });
  EXPECT_THAT(run.scopes(), ElementsAre("fc"));
  EXPECT_EQ(layertrace::detail::recording.load(), 0U);
}

}  // namespace
}  // namespace layertrace::test
