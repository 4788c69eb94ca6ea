// Cards of LibTorch's models: the same figures as in Python, and the model as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <layertrace/layertrace.h>

namespace layertrace::test {
namespace {

namespace nn = torch::nn;

double value_of(const ModelCard& card, const std::string& key) {
  for (const MetricValue& metric : card.metrics) {
    if (metric.info.key == key && metric.value) return *metric.value;
  }
  return -1;
}

nn::Sequential small_net() {
  return nn::Sequential(nn::BatchNorm1d(4), nn::Linear(4, 8), nn::Dropout(0.5));
}

TEST(Card, HasTheBuiltInMetrics) {
  nn::Sequential model = small_net();
  const auto card =
      layertrace::card(model, {.name = "net", .iterations = 3, .warmup = 1}, torch::ones({5, 4}));
  ASSERT_TRUE(card) << card.error().message();
  EXPECT_EQ(card->name, "net");
  EXPECT_EQ(card->device, "cpu");
  EXPECT_EQ(card->batch_size, 5);
  constexpr double kParameters = 4 + 4 + 4 * 8 + 8;
  constexpr double kBuffers = 4 * 4 + 4 * 4 + 8;
  EXPECT_EQ(value_of(*card, "parameters"), kParameters);
  EXPECT_EQ(value_of(*card, "model_size"), 4 * kParameters + kBuffers);
  EXPECT_EQ(value_of(*card, "macs"), 5 * 4 * 8);
  EXPECT_GE(value_of(*card, "memory_footprint"),
            4 * kParameters + kBuffers + 4 * 5 * 4 + 4 * 5 * 8);
  const double seconds = value_of(*card, "execution_time");
  EXPECT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(value_of(*card, "throughput"), 5 / seconds);
  ASSERT_NE(card->summary, nullptr);
  EXPECT_NE(card->summary->find("1"), nullptr);
}

TEST(Card, LeavesTheModelAsItWas) {
  nn::Sequential model = small_net();
  model->train();
  model[2]->as<nn::Dropout>()->eval();
  for (torch::Tensor& parameter : model->parameters())
    parameter.mutable_grad() = torch::ones_like(parameter);
  const torch::Tensor mean = model[0]->as<nn::BatchNorm1d>()->running_mean.clone();
  bool was_training = true;
  const CardOptions options{.evaluate = [&] {
    was_training = model->is_training() || torch::GradMode::is_enabled();
    return 0.5;
  }};
  const auto card = layertrace::card(model, options, torch::ones({5, 4}));
  ASSERT_TRUE(card) << card.error().message();
  EXPECT_EQ(value_of(*card, "evaluation"), 0.5);
  EXPECT_FALSE(was_training);
  EXPECT_TRUE(model->is_training());
  EXPECT_TRUE(model[1]->as<nn::Linear>()->is_training());
  EXPECT_FALSE(model[2]->as<nn::Dropout>()->is_training());
  EXPECT_TRUE(torch::GradMode::is_enabled());
  EXPECT_TRUE(torch::equal(model[0]->as<nn::BatchNorm1d>()->running_mean, mean));
  for (const torch::Tensor& parameter : model->parameters())
    EXPECT_TRUE(torch::equal(parameter.grad(), torch::ones_like(parameter)));
}

TEST(Card, TakesAModelOnTheStackAndACallOfOnesOwn) {
  nn::LinearImpl model(4, 8);
  int calls = 0;
  const auto forward = [&] {
    ++calls;
    return model.forward(torch::ones({6, 4}));
  };
  const auto card =
      layertrace::card(model, {.iterations = 2, .warmup = 1, .batch_size = 6}, forward);
  ASSERT_TRUE(card) << card.error().message();
  EXPECT_EQ(calls, 1 + 1 + 2);
  EXPECT_EQ(card->batch_size, 6);
  EXPECT_EQ(value_of(*card, "macs"), 6 * 4 * 8);
  const auto parameters_alone = layertrace::card(model, {});
  ASSERT_TRUE(parameters_alone) << parameters_alone.error().message();
  EXPECT_EQ(parameters_alone->metrics.size(), 2);
}

TEST(Card, LetsWhatACallThrowsThrough) {
  nn::Sequential model = small_net();
  EXPECT_THROW(static_cast<void>(layertrace::card(model, {}, torch::ones({5, 3}))), c10::Error);
  EXPECT_TRUE(model->is_training());
  EXPECT_TRUE(layertrace::card(model, {}, torch::ones({5, 4}))) << "the session is over";
  nn::Linear none(nullptr);
  EXPECT_FALSE(layertrace::card(none, {}));
}

TEST(Card, GivesMetricsTheModel) {
  ASSERT_TRUE(add_metric({.key = "modules"}, [](const MetricInput& input) {
    return static_cast<double>(module_of(input)->children().size());
  }));
  nn::Sequential model = small_net();
  const auto card = layertrace::card(model, {.metrics = {"modules"}});
  EXPECT_TRUE(remove_metric("modules"));
  ASSERT_TRUE(card) << card.error().message();
  EXPECT_EQ(value_of(*card, "modules"), 3);
}

TEST(RunMetricsOfASession, AreKeptAndRead) {
  const std::string path = testing::TempDir() + "metrics_of_a_session.pftrace";
  nn::Linear model(4, 4);
  auto session = Session::start(model, {.output = path});
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_TRUE(session->add_metric("loss", 2));
  model->forward(torch::ones({2, 4}));
  session->step();
  EXPECT_TRUE(session->add_metric("loss", 1));
  EXPECT_TRUE(session->stop());
  EXPECT_TRUE(session->add_metric(
      {{.key = "accuracy", .comparison = MetricComparison::kDifference}, 0.93}));
  EXPECT_FALSE(session->add_metric(MetricValue{{.key = "none"}, {}}));
  for (const auto& profile : {session->profile(), load(path)}) {
    ASSERT_TRUE(profile) << profile.error().message();
    ASSERT_EQ(profile->metrics.size(), 2);
    EXPECT_EQ(profile->metrics[0].info.key, "loss");
    EXPECT_EQ(profile->metrics[0].value, 1);
    EXPECT_EQ(profile->metrics[1].info.comparison, MetricComparison::kDifference);
    EXPECT_FALSE(profile->health.cut);
  }
}

}  // namespace
}  // namespace layertrace::test
