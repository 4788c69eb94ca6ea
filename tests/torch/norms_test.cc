// Batch and instance norm, whose forward cannot be stood in for, and the ways in which any layer
// can be called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/cases.h"
#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace functional = torch::nn::functional;
namespace nn = torch::nn;
using ::testing::ElementsAre;
using torch::Tensor;

constexpr int64_t kChannels = 4;

std::vector<int64_t> sizes(int64_t dimensions, bool batched) {
  std::vector<int64_t> result(static_cast<std::size_t>(dimensions), 3);
  result.insert(result.begin(), kChannels);
  if (batched) result.insert(result.begin(), 2);
  return result;
}

// ---- All their kinds ----

template <typename Norm, typename Options>
void check_norm(const std::string& type, int64_t dimensions, bool batched) {
  for (const bool affine : {false, true}) {
    for (const bool tracked : {false, true}) {
      for (const bool training : {false, true}) {
        SCOPED_TRACE(type + (affine ? ", affine" : "") + (tracked ? ", tracked" : "") +
                     (training ? ", training" : "") + (batched ? "" : ", no batch"));
        Norm norm(Options(kChannels).affine(affine).track_running_stats(tracked));
        norm->train(training);
        expect_owns_all(a_case(type, norm, leaf(sizes(dimensions, batched))));
      }
    }
  }
}

TEST(Norms, BatchNormOwnsAllThatItDoes) {
  check_norm<nn::BatchNorm1d, nn::BatchNorm1dOptions>("BatchNorm1d", 1, true);
  check_norm<nn::BatchNorm1d, nn::BatchNorm1dOptions>("BatchNorm1d", 0, true);
  check_norm<nn::BatchNorm2d, nn::BatchNorm2dOptions>("BatchNorm2d", 2, true);
  check_norm<nn::BatchNorm3d, nn::BatchNorm3dOptions>("BatchNorm3d", 3, true);
  // The running average over all batches: its factor is read from a tensor on the way.
  expect_owns_all(a_case("BatchNorm2d",
                         nn::BatchNorm2d(nn::BatchNorm2dOptions(kChannels).momentum(std::nullopt)),
                         leaf(sizes(2, true))));
}

TEST(Norms, InstanceNormOwnsAllThatItDoes) {
  for (const bool batched : {true, false}) {
    check_norm<nn::InstanceNorm1d, nn::InstanceNorm1dOptions>("InstanceNorm1d", 1, batched);
    check_norm<nn::InstanceNorm2d, nn::InstanceNorm2dOptions>("InstanceNorm2d", 2, batched);
    check_norm<nn::InstanceNorm3d, nn::InstanceNorm3dOptions>("InstanceNorm3d", 3, batched);
  }
}

TEST(Norms, AreSeenInEveryWay) {
  for_each_way([](const RunOptions& options) {
    Model model;
    auto bn = model->add("bn", nn::BatchNorm2d(kChannels));
    auto in = model->add("in", nn::InstanceNorm2d(kChannels));
    Makers makers(*model);
    model->body = [&](Tensor x) {
      x = makers.call(bn, "bn", x * 2);
      x = makers.call(in, "in", x.relu());
      return makers.claim(x.mean(), kRoot);
    };
    const Recorded run =
        record(*model, [&] { model->forward(leaf(sizes(2, true))).backward(); }, options);
    expect_owners(run, makers);
    EXPECT_THAT(run.scopes(), ElementsAre("", "bn", "in"));
  });
}

// The functions by themselves are their caller's, also right after a module of the same kind.
TEST(Norms, FunctionsAreTheCallers) {
  Model model;
  auto bn = model->add(
      "bn",
      nn::BatchNorm2d(nn::BatchNorm2dOptions(kChannels).affine(false).track_running_stats(false)));
  auto in = model->add("in", nn::InstanceNorm2d(kChannels));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    x = makers.call(bn, "bn", x);
    x = functional::batch_norm(x, {}, {}, functional::BatchNormFuncOptions().training(true));
    x = makers.call(in, "in", x);
    x = functional::instance_norm(x);
    x = makers.call(in, "in", x[0]);  // no batch dimension: its forward ends with a squeeze
    return makers.claim(x.unsqueeze(0).squeeze(0).mean(), kRoot);
  };
  const Recorded run = record(*model, [&] { model->forward(leaf(sizes(2, true))).backward(); });
  expect_owners(run, makers);
  EXPECT_THAT(run.scopes(), ElementsAre("", "bn", "in", "in"));
  EXPECT_EQ(run.profile.health.thrown_scopes, 0U);
}

// ---- Exceptions inside ----

TEST(Norms, WrongDimensionsOpenNoScope) {
  Model model;
  auto bn = model->add("bn", nn::BatchNorm2d(kChannels));
  auto fc = model->add("fc", nn::Linear(kChannels, 2));
  model->body = [&](Tensor x) {
    EXPECT_THROW(bn(x), c10::Error);
    return fc(x);
  };
  const Recorded run = record(*model, [&] { model->forward(torch::randn({2, kChannels})); });
  EXPECT_THAT(run.scopes(), ElementsAre("", "fc"));
  EXPECT_FALSE(run.layer("bn").ran);
  EXPECT_EQ(run.profile.health.thrown_scopes, 0U);
}

Tensor one_value_per_channel() {
  return torch::randn({1, kChannels, 1, 1});
}  // too few for a batch norm in training

TEST(Norms, AnExceptionBeforeTheNormalisingClosesTheScope) {
  Model model;
  auto bn = model->add("bn", nn::BatchNorm2d(kChannels));
  auto fc = model->add("fc", nn::Linear(1, 2));
  model->body = [&](Tensor x) {
    EXPECT_THROW(bn(x), c10::Error);
    return fc(x);
  };
  const Recorded run =
      record(*model, [&] { model->forward(one_value_per_channel()).sum().backward(); });
  ASSERT_THAT(run.scopes(), ElementsAre("", "bn", "fc"));
  const auto scopes = run.select(SpanKind::kScope);
  EXPECT_EQ(scopes[0].ended_by, EndedBy::kExit);
  EXPECT_EQ(scopes[1].ended_by, EndedBy::kException);
  EXPECT_EQ(scopes[2].ended_by, EndedBy::kExit);
  EXPECT_LE(scopes[1].end_ns, scopes[2].start_ns);
  EXPECT_EQ(run.profile.health.thrown_scopes, 1U);
  EXPECT_THAT(run.nodes(), ::testing::Contains("MmBackward0 of fc"));
}

TEST(Norms, AnExceptionThroughTheParentClosesBoth) {
  Model model;
  auto bn = model->add("bn", nn::BatchNorm2d(kChannels));
  model->body = [&](Tensor x) { return bn(x); };
  const Recorded run = record(*model, [&] {
    EXPECT_THROW(model->forward(one_value_per_channel()), c10::Error);
    model->forward(torch::randn({2, kChannels, 2, 2}));
  });
  EXPECT_THAT(run.scopes(), ElementsAre("", "bn", "", "bn"));
  EXPECT_EQ(run.profile.health.thrown_scopes, 2U);
}

TEST(Norms, AnExceptionOutsideAnyScopeClosesTheScope) {
  nn::Sequential model{nn::BatchNorm2d(kChannels), nn::Flatten()};
  const Recorded run = record(*model, [&] {
    EXPECT_THROW(model->forward(one_value_per_channel()), c10::Error);
    model->forward(torch::randn({2, kChannels, 2, 2}));
  });
  EXPECT_THAT(run.scopes(), ElementsAre("0", "0", "1"));
  for (const Span& scope : run.select(SpanKind::kScope)) {
    const auto* around =
        scope.around < 0 ? nullptr : &run.spans[static_cast<std::size_t>(scope.around)];
    EXPECT_TRUE(around == nullptr || around->kind != SpanKind::kScope)
        << scope.layer << " is inside " << around->layer;
  }
  EXPECT_EQ(run.profile.health.thrown_scopes, 1U);
}

// ---- Ways to call a layer ----

TEST(Calls, DirectlyThroughAHolderASequentialOrAnAnyModule) {
  Model model;
  auto direct = model->add("direct", nn::Linear(3, 3));
  auto holder = model->add("holder", nn::Conv1d(1, 1, 1));
  auto sequential =
      model->add("sequential", nn::Sequential(nn::Linear(3, 3), nn::BatchNorm1d(1), nn::ReLU()));
  auto wrapped = model->add("wrapped", nn::Linear(3, 3));
  nn::AnyModule any(wrapped);
  auto norm = model->add("norm", nn::BatchNorm1d(1));
  nn::AnyModule any_norm(norm);
  model->body = [&](Tensor x) {
    x = direct->forward(x);
    x = holder(x);
    x = sequential->forward(x);
    x = any.forward<Tensor>(x);
    return any_norm.forward<Tensor>(x);
  };
  const Recorded run = record(*model, [&] { model->forward(torch::randn({2, 1, 3})); });
  EXPECT_THAT(run.scopes(), ElementsAre("", "direct", "holder", "sequential.0", "sequential.1",
                                        "sequential.2", "wrapped", "norm"));
}

// ---- A class derived from a layer ----

struct MarkedLinearImpl : nn::LinearImpl {
  using nn::LinearImpl::LinearImpl;
  Tensor forward(const Tensor& x) {
    ModuleScope scope(this);
    Scope region("multiply");
    return nn::LinearImpl::forward(x) * 2;
  }
};
TORCH_MODULE(MarkedLinear);

struct PlainLinearImpl : nn::LinearImpl {
  using nn::LinearImpl::LinearImpl;
  Tensor forward(const Tensor& x) { return nn::LinearImpl::forward(x).relu(); }
};
TORCH_MODULE(PlainLinear);

struct MarkedNormImpl : nn::BatchNorm1dImpl {
  using nn::BatchNorm1dImpl::BatchNorm1dImpl;
  Tensor forward(const Tensor& x) {
    ModuleScope scope(this);
    return nn::BatchNorm1dImpl::forward(x) + 1;
  }
};
TORCH_MODULE(MarkedNorm);

// Calls the check of its base, but normalises with a weight of its own making.
struct ScaledNormImpl : nn::BatchNorm1dImpl {
  using nn::BatchNorm1dImpl::BatchNorm1dImpl;
  Tensor forward(const Tensor& x) {
    _check_input_dim(x);
    return torch::batch_norm(x, weight * 2, bias, {}, {}, true, 0.1, 1e-5, false);
  }
};
TORCH_MODULE(ScaledNorm);

TEST(Calls, ADerivedClassIsMarkedOnce) {
  Model model;
  auto marked = model->add("marked", MarkedLinear(3, 3));
  auto plain = model->add("plain", PlainLinear(3, 3));
  auto norm = model->add("norm", MarkedNorm(3));
  auto scaled = model->add("scaled", ScaledNorm(3));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    x = makers.call(marked, "marked", x);
    x = makers.call(norm, "norm", x);
    return makers.claim(makers.call(scaled, "scaled", x).sum(), kRoot);
  };
  const Recorded run = record(*model, [&] {
    model->forward(torch::randn({4, 3})).backward();
    plain->forward(torch::randn({4, 3}));
  });
  EXPECT_THAT(run.scopes(), ElementsAre("", "marked", "norm", "scaled", "plain"));
  EXPECT_EQ(run.layer("marked").type, "MarkedLinear");
  EXPECT_EQ(run.layer("plain").type, "PlainLinear");
  EXPECT_EQ(run.profile.health.thrown_scopes, 0U);
  expect_owners(run, makers);
}

}  // namespace
}  // namespace layertrace::test
