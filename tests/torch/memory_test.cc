// Memory in a program of LibTorch's, where layertrace comes before LibTorch in the lookup order.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <layertrace/layertrace.h>

namespace layertrace::test {
namespace {

namespace nn = torch::nn;

TEST(MemoryOfLibTorch, IsTakenFromItsAllocatorsReports) {
  nn::Sequential model(nn::Linear(8, 64), nn::ReLU(), nn::Linear(64, 8));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const torch::Tensor inputs = torch::ones({32, 8});
  auto session = Session::start(model);
  ASSERT_TRUE(session.has_value()) << session.error().message();
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    model->forward(inputs).square().mean().backward();
    optimizer.step();
    session->step();
  }
  const auto profile = session->stop();
  ASSERT_TRUE(profile.has_value()) << profile.error().message();

  constexpr double kWide = 32 * 64 * sizeof(float);
  constexpr double kNarrow = 32 * 8 * sizeof(float);
  const MemoryStats relu{.allocated = kWide, .freed = kWide, .kept = kWide, .peak = 2 * kWide};
  ASSERT_NE(profile->find("1"), nullptr);
  EXPECT_EQ(profile->find("1")->phase(Phase::kForward).memory, relu);
  ASSERT_NE(profile->find("2"), nullptr);
  EXPECT_EQ(profile->find("2")->phase(Phase::kForward).memory.allocated, kNarrow);
  double parameter_bytes = 0;
  for (const torch::Tensor& each : model->parameters())
    parameter_bytes += static_cast<double>(each.nbytes());
  EXPECT_EQ(profile->gradient_bytes, parameter_bytes);
  EXPECT_EQ(profile->optimizer_bytes, parameter_bytes);  // the momentum
  ASSERT_EQ(profile->device_memory.size(), 1);
  EXPECT_EQ(profile->device_memory[0].device, -1);
}

template <typename Optimizer, typename... Given>
MemoryForecast forecast_after_warmup(Given... given) {
  nn::Sequential model(nn::Linear(8, 64), nn::ReLU(), nn::Linear(64, 8));
  Optimizer optimizer(model->parameters(), given...);
  const auto train = [&] {
    optimizer.zero_grad();
    model->forward(torch::ones({32, 8})).square().mean().backward();
    optimizer.step();
  };
  train();
  auto session = Session::start(model);
  EXPECT_TRUE(session.has_value());
  train();
  session->step();
  const auto profile = session->stop();
  EXPECT_TRUE(profile.has_value());
  EXPECT_EQ(profile->optimizer_bytes, 0) << "all was there before";
  return forecast(*profile);
}

TEST(MemoryOfLibTorch, ForecastsStateThatWasThereBefore) {
  constexpr double kParameters = (8 * 64 + 64 + 64 * 8 + 8) * sizeof(float);
  const MemoryForecast adam = forecast_after_warmup<torch::optim::Adam>();
  EXPECT_TRUE(adam.optimizer_known);
  EXPECT_EQ(adam.optimizer, 2 * kParameters);
  const MemoryForecast plain =
      forecast_after_warmup<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  EXPECT_TRUE(plain.optimizer_known);
  EXPECT_EQ(plain.optimizer, 0);
  const MemoryForecast momentum =
      forecast_after_warmup<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  EXPECT_EQ(momentum.optimizer, kParameters);
}

}  // namespace
}  // namespace layertrace::test
