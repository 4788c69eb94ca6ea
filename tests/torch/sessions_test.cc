// Models as programs have them: where the root lives, what is registered when, containers, and
// PyTorch's own examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/run.h"

namespace layertrace::test {
namespace {

namespace nn = torch::nn;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::Tensor;

struct NetImpl : nn::Module {
  NetImpl() { fc = register_module("fc", nn::Linear(3, 2)); }
  Tensor forward(const Tensor& x) {
    ModuleScope scope(this);
    return fc(x).relu();
  }
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

Strings paths(const Profile& profile) {
  Strings result;
  for (const Layer& layer : profile.layers) result.push_back(layer.path);
  return result;
}

// ---- The root ----

template <typename Start, typename Forward>
void expect_net(Start start, Forward forward) {
  auto session = start();
  ASSERT_TRUE(session.has_value()) << session.error().message();
  EXPECT_TRUE(session->recording());
  forward();
  session->step();
  const auto profile = session->stop();
  ASSERT_TRUE(profile.has_value()) << profile.error().message();
  EXPECT_FALSE(session->recording());
  EXPECT_THAT(paths(*profile), ElementsAre("", "fc"));
  EXPECT_EQ(profile->layers[0].name, "Net");
  EXPECT_EQ(profile->layers[0].type, "Net");
  EXPECT_EQ(profile->layers[0].parent, -1);
  EXPECT_EQ(profile->layers[1].type, "Linear");
  EXPECT_EQ(profile->layers[1].parent, 0);
  EXPECT_EQ(profile->layers[0].calls, 1);
  EXPECT_EQ(profile->layers[1].calls, 1);
}

TEST(Sessions, TheRootByReferenceSharedPointerOrHolder) {
  const Tensor x = torch::randn({2, 3});
  NetImpl on_stack;
  EXPECT_ANY_THROW(on_stack.named_modules());  // why the tree is not read with it
  expect_net([&] { return Session::start(on_stack); }, [&] { on_stack.forward(x); });
  nn::Module& base = on_stack;
  expect_net([&] { return Session::start(base); }, [&] { on_stack.forward(x); });
  const auto shared = std::make_shared<NetImpl>();
  expect_net([&] { return Session::start(shared); }, [&] { shared->forward(x); });
  const std::shared_ptr<nn::Module> shared_base = shared;
  expect_net([&] { return Session::start(shared_base); }, [&] { shared->forward(x); });
  Net holder;
  expect_net([&] { return Session::start(holder); }, [&] { holder->forward(x); });
  const Net& constant = holder;
  expect_net([&] { return Session::start(constant); }, [&] { holder->forward(x); });
  expect_net([&] { return Session::start(Net(holder)); }, [&] { holder->forward(x); });
}

TEST(Sessions, SeveralRoots) {
  Net left;
  Net right;
  const Recorded run = record(Models{{"left", left.get()}, {"right", right.get()}}, [&] {
    const Tensor x = torch::randn({2, 3});
    const Tensor y = left->forward(x);
    (y + right->forward(x)).sum().backward();
  });
  EXPECT_THAT(paths(run.profile), ElementsAre("left", "left.fc", "right", "right.fc"));
  EXPECT_EQ(run.layer("left").name, "left");
  EXPECT_EQ(run.layer("left").type, "Net");
  EXPECT_EQ(run.layer("right").parent, -1);
  EXPECT_THAT(run.scopes(), ElementsAre("left", "left.fc", "right", "right.fc"));
  EXPECT_THAT(run.nodes(), Contains("AddmmBackward0 of left.fc"));
  EXPECT_THAT(run.nodes(), Contains("ReluBackward0 of right"));
}

TEST(Sessions, RootsThatCannotBeRecorded) {
  Net net;
  const auto message = [](const Result<Session>& session) {
    return session ? "" : session.error().message();
  };
  EXPECT_THAT(message(Session::start(Models{{"a", net.get()}, {"", net.get()}})),
              HasSubstr("has no name"));
  EXPECT_THAT(message(Session::start(Models{{"a", net.get()}, {"a", net.get()}})),
              HasSubstr("two models are called 'a'"));
  EXPECT_THAT(message(Session::start(Models{{"a", nullptr}})), HasSubstr("'a' is null"));
  EXPECT_THAT(message(Session::start(Models{{"a.b", net.get()}})), HasSubstr("'a.b' has a dot"));
  EXPECT_THAT(message(Session::start(std::shared_ptr<NetImpl>())), HasSubstr("the model is null"));
  EXPECT_THAT(message(Session::start(Net(nullptr))), HasSubstr("the model is null"));
}

// ---- Modules that come and go ----

TEST(Sessions, AModuleAddedAfterTheStart) {
  Model model;
  auto first = model->add("first", nn::Linear(3, 3));
  auto block = model->add("block", Model());
  Makers makers;
  const Recorded run = record(*model, [&] {
    auto late = model->add("late", nn::Linear(3, 3));
    auto inner =
        block->add("inner", nn::Sequential(nn::Linear(3, 3), nn::MultiheadAttention(4, 2)));
    makers = Makers(*model);
    auto linear = inner->ptr<nn::LinearImpl>(0);
    block->body = [&](Tensor x) { return makers.call(linear, "block.inner.0", x, "block"); };
    model->body = [&](Tensor x) {
      x = makers.call(late, "late", makers.call(first, "first", x));
      return makers.claim(makers.call(block, "block", x).sum(), kRoot);
    };
    model->forward(torch::randn({2, 3})).backward();
  });
  expect_owners(run, makers);
  EXPECT_THAT(run.scopes(), ElementsAre("", "first", "late", "block", "block.inner.0"));
  EXPECT_TRUE(run.layer("late").registered);
  // All of what was added is known, called or not.
  EXPECT_THAT(paths(run.profile), Contains("block.inner.1.out_proj"));
}

TEST(Sessions, AModuleAddedToARootWithoutAScope) {
  nn::Sequential model(nn::Linear(3, 3));
  const Recorded run = record(*model, [&] {
    model->push_back(nn::Linear(3, 3));
    model->forward(torch::randn({2, 3})).sum().backward();
  });
  EXPECT_THAT(run.scopes(), ElementsAre("0", "1"));
  EXPECT_THAT(run.nodes(),
              ElementsAre("SumBackward0 of (none)", "AddmmBackward0 of 1", "AccumulateGrad of 1",
                          "TBackward0 of 1", "AccumulateGrad of 1", "AddmmBackward0 of 0",
                          "AccumulateGrad of 0", "TBackward0 of 0", "AccumulateGrad of 0"));
}

TEST(Sessions, AModulePutInAnothersPlaceTakesItsLayer) {
  Model model;
  model->add("fc", nn::Linear(3, 3));
  model->add("block", nn::Sequential(nn::Linear(3, 3), nn::ReLU()));
  Makers makers;
  nn::Linear fc{nullptr};
  nn::Sequential block{nullptr};
  model->body = [&](Tensor x) {
    x = makers.call(fc, "fc", x);
    x = makers.claim(block->forward(x), "block.0");
    return makers.claim(x.sum(), kRoot);
  };
  const Recorded run = record(*model,
                              [&] {
                                fc = nn::Linear(3, 3);
                                block = nn::Sequential(nn::Linear(3, 3));
                                model->replace_module("fc", fc);
                                model->replace_module("block", block);
                                makers = Makers(*model);
                                model->forward(torch::randn({2, 3})).backward();
                              },
                              {});
  expect_owners(run, makers);
  EXPECT_THAT(run.scopes(), ElementsAre("", "fc", "block.0"));
  EXPECT_THAT(paths(run.profile), ElementsAre("", "fc", "block", "block.0", "block.1"));
}

// The old module's memory must not pass for the old module: a temporary of the same class may come
// to lie there.
TEST(Sessions, ATemporaryInAFreedModulesPlaceIsNotThatModule) {
  Model model;
  model->add("old", nn::Linear(3, 3));
  model->body = [&](Tensor x) {
    for (int i = 0; i < 8; ++i) x = nn::Linear(3, 3)->forward(x);
    return x.sum();
  };
  const Recorded run = record(*model, [&] {
    model->unregister_module("old");
    model->forward(torch::randn({2, 3})).backward();
  });
  EXPECT_FALSE(run.layer("old").ran);
  EXPECT_EQ(run.calls("<Linear>"), 8);
}

// Nor where the thread has met the old one, and knows the way.
TEST(Sessions, AModuleInTheFreedPlaceOfOneThatRanIsAnother) {
  Model model;
  model->add("old", nn::Linear(3, 3));
  model->body = [&](Tensor x) {
    x = model->named_children()["old"]->as<nn::Linear>()->forward(x);
    model->unregister_module("old");
    for (int i = 0; i < 8; ++i) x = nn::Linear(3, 3)->forward(x);
    for (int i = 0; i < 8; ++i) {  // each in a temporary's place, but the model's own
      const std::string name = "new" + std::to_string(i);
      x = model->register_module(name, nn::Linear(3, 3))->forward(x);
    }
    return x.sum();
  };
  const Recorded run = record(*model, [&] { model->forward(torch::randn({2, 3})).backward(); });
  EXPECT_EQ(run.calls("old"), 1);
  EXPECT_EQ(run.calls("<Linear>"), 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(run.calls("new" + std::to_string(i)), 1) << i;
}

TEST(Sessions, TemporariesShareALayerBelowTheirCaller) {
  Model model;
  auto block = model->add("block", Model([](Tensor x) { return nn::ReLU()(nn::ReLU()(x)); }));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    x = makers.claim(x * 2, kRoot);
    x = makers.claim(block->forward(x), "block.<ReLU>");
    nn::ReLU relu;
    return makers.claim(makers.call(relu, "<ReLU>", x).sum(), kRoot);
  };
  const Recorded run = record(
      *model, [&] { model->forward(torch::randn({2, 3}, torch::requires_grad())).backward(); });
  expect_owners(run, makers);
  EXPECT_THAT(run.scopes(), ElementsAre("", "block", "block.<ReLU>", "block.<ReLU>", "<ReLU>"));
  EXPECT_FALSE(run.layer("block.<ReLU>").registered);
  EXPECT_EQ(run.layer("block.<ReLU>").type, "ReLU");
  EXPECT_EQ(run.profile.layers[static_cast<std::size_t>(run.layer("block.<ReLU>").parent)].path,
            "block");
}

TEST(Sessions, ACopyOfTheModelHasATreeOfItsOwn) {
  Net net;
  const Recorded run = record(*net, [&] {
    const auto copy = std::make_shared<NetImpl>();  // never registered
    copy->forward(torch::randn({2, 3}));
  });
  EXPECT_THAT(run.scopes(), ElementsAre("(Net)", "(Net).fc"));
  EXPECT_FALSE(run.layer("").ran);
  EXPECT_FALSE(run.layer("(Net).fc").registered);
}

TEST(Sessions, ALossModuleOutsideTheModelBelongsToTheLoss) {
  Net net;
  nn::CrossEntropyLoss loss;
  const Recorded run = record(
      *net, [&] { loss(net->forward(torch::randn({2, 3})), torch::tensor({0, 1})).backward(); });
  EXPECT_THAT(run.scopes(), ElementsAre("", "fc", "(CrossEntropyLoss) loss"));
  EXPECT_EQ(run.calls("(CrossEntropyLoss)", Phase::kLoss), 1);
  EXPECT_FALSE(run.layer("(CrossEntropyLoss)").registered);
  EXPECT_THAT(run.nodes(), Contains("NllLossBackward0 of (CrossEntropyLoss)"));
  EXPECT_THAT(run.nodes(), Contains("LogSoftmaxBackward0 of (CrossEntropyLoss)"));
  EXPECT_THAT(run.profile.health.unattributed_nodes, IsEmpty());
}

// ---- Containers ----

// A layer profiler's classic: a raw parameter and functional ops in the root, a list, a dict and a
// Sequential.
TEST(Sessions, ListsDictsAndSequentials) {
  Model model;
  const Tensor weight = model->register_parameter("weight", torch::randn({10, 1}));
  auto linear1 = model->add("linear1", nn::Linear(10, 11));
  auto linear2 = model->add("linear2", nn::Linear(10, 10));
  auto linear3 = model->add("linear3", nn::ModuleList(nn::Linear(11, 12), nn::Linear(12, 11)));
  auto linear4 =
      model->add("linear4", nn::Sequential(nn::Linear(11, 7), nn::Tanh(), nn::Linear(7, 8)));
  auto linear5 = model->add(
      "linear5", nn::ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
                     {"a", nn::Linear(8, 3).ptr()}, {"b", nn::Linear(3, 1).ptr()}}));
  model->add("unused", nn::ModuleList(nn::Linear(3, 3)));
  Makers makers(*model);
  model->body = [&](Tensor x) {
    const auto in_list = [&](std::size_t i) { return linear3->ptr<nn::LinearImpl>(i); };
    auto list0 = in_list(0);
    auto list1 = in_list(1);
    auto a = std::dynamic_pointer_cast<nn::LinearImpl>((*linear5)["a"]);
    auto b = std::dynamic_pointer_cast<nn::LinearImpl>((*linear5)["b"]);
    const Tensor left =
        makers.claim(torch::tanh(makers.call(linear2, "linear2", x).matmul(weight)), kRoot);
    const Tensor right = makers.call(list0, "linear3.0", makers.call(linear1, "linear1", x));
    x = makers.call(list1, "linear3.1", left + right);
    for (std::size_t i = 0; i < linear4->size(); ++i) {
      const std::string path = "linear4." + std::to_string(i);
      if (i == 1) {
        auto tanh = linear4->ptr<nn::TanhImpl>(i);
        x = makers.call(tanh, path, x);
      } else {
        auto linear = linear4->ptr<nn::LinearImpl>(i);
        x = makers.call(linear, path, x);
      }
    }
    x = makers.call(a, "linear5.a", x);
    return makers.claim(makers.call(b, "linear5.b", x).sum(), kRoot);
  };
  for_each_way([&](const RunOptions& options) {
    model->zero_grad();
    const Recorded run =
        record(*model, [&] { model->forward(torch::randn({16, 10})).backward(); }, options);
    expect_owners(run, makers);
    EXPECT_THAT(run.scopes(),
                ElementsAre("", "linear2", "linear1", "linear3.0", "linear3.1", "linear4.0",
                            "linear4.1", "linear4.2", "linear5.a", "linear5.b"));
    for (const char* container : {"linear3", "linear4", "linear5"}) {
      const Layer& layer = run.layer(container);
      EXPECT_EQ(layer.calls, 0) << container;
      EXPECT_TRUE(layer.ran) << container;
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        double host_ns = 0;
        double activities = 0;
        double busy_ns = 0;
        for (const int child : layer.children) {
          const PhaseStats& stats =
              run.profile.layers[static_cast<std::size_t>(child)].phase(phase);
          host_ns += stats.host_ns.mean;
          activities += stats.activities.mean;
          busy_ns += stats.busy_ns.mean;
        }
        EXPECT_GT(host_ns, 0) << container;
        EXPECT_DOUBLE_EQ(layer.phase(phase).host_ns.mean, host_ns) << container;
        EXPECT_EQ(layer.phase(phase).self_host_ns.mean, 0) << container;
        EXPECT_DOUBLE_EQ(layer.phase(phase).activities.mean, activities) << container;
        EXPECT_DOUBLE_EQ(layer.phase(phase).busy_ns.mean, busy_ns) << container;
      }
    }
    EXPECT_FALSE(run.layer("unused").ran);
    EXPECT_FALSE(run.layer("unused.0").ran);
    EXPECT_TRUE(run.layer("unused.0").phase(Phase::kForward).empty());
    EXPECT_TRUE(run.layer("unused.0").phase(Phase::kBackward).empty());
  });
}

}  // namespace
}  // namespace layertrace::test
