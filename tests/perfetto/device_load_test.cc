#include "perfetto/device_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace layertrace::test {
namespace {

constexpr std::uint64_t kMs = DeviceLoad::kBinNs;

struct Activity {
  std::uint64_t asked_ns;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

struct Figures {
  std::map<std::uint64_t, double> busy;
  std::map<std::uint64_t, double> queue;
};

// What it says, and that it says it in time order and only where something changes.
Figures figures_of(const std::vector<Activity>& activities) {
  Figures figures;
  DeviceLoad load([&](DeviceLoad::Figure figure, std::uint64_t ns, double value) {
    auto& values = figure == DeviceLoad::Figure::kBusy ? figures.busy : figures.queue;
    if (!values.empty()) {
      EXPECT_GT(ns, values.rbegin()->first);
      EXPECT_NE(value, values.rbegin()->second);
    }
    values[ns] = value;
  });
  for (const Activity& each : activities) load.add(each.asked_ns, each.start_ns, each.end_ns);
  load.finish();
  return figures;
}

double at(const std::map<std::uint64_t, double>& values, std::uint64_t ns) {
  const auto next = values.upper_bound(ns);
  return next == values.begin() ? 0 : std::prev(next)->second;
}

double brute_queue(const std::vector<Activity>& activities, std::uint64_t from) {
  std::uint64_t sum = 0;
  for (const Activity& each : activities) {
    const std::uint64_t begin = std::max(std::min(each.asked_ns, each.start_ns), from);
    const std::uint64_t end = std::min(each.end_ns, from + kMs);
    if (begin < end) sum += end - begin;
  }
  return static_cast<double>(sum) / kMs;
}

// Each nanosecond by itself would take too long: times are multiples of a grain.
double brute_busy(const std::vector<Activity>& activities, std::uint64_t from,
                  std::uint64_t grain) {
  std::vector<bool> busy(kMs / grain);
  for (const Activity& each : activities) {
    const std::uint64_t end = std::min(each.end_ns, from + kMs);
    for (std::uint64_t ns = std::max(each.start_ns, from); ns < end; ns += grain)
      busy[(ns - from) / grain] = true;
  }
  return 100.0 * static_cast<double>(std::count(busy.begin(), busy.end(), true)) /
         static_cast<double>(busy.size());
}

TEST(DeviceLoad, IsTheShareOfEachMillisecond) {
  const Figures figures = figures_of(
      {{10 * kMs, 10 * kMs + kMs / 4, 10 * kMs + kMs / 2}, {12 * kMs, 12 * kMs, 15 * kMs}});
  EXPECT_THAT(figures.busy,
              testing::ElementsAre(std::pair{10 * kMs, 25.0}, std::pair{11 * kMs, 0.0},
                                   std::pair{12 * kMs, 100.0}, std::pair{15 * kMs, 0.0}));
  EXPECT_THAT(figures.queue,
              testing::ElementsAre(std::pair{10 * kMs, 0.5}, std::pair{11 * kMs, 0.0},
                                   std::pair{12 * kMs, 1.0}, std::pair{15 * kMs, 0.0}));
}

TEST(DeviceLoad, CountsStreamsThatWorkAtATimeOnce) {
  const Figures figures = figures_of({{0, 0, kMs / 2}, {0, kMs / 4, kMs / 2}, {0, 0, kMs / 8}});
  EXPECT_EQ(at(figures.busy, 0), 50);
  EXPECT_EQ(at(figures.queue, 0), 1.125);
}

TEST(DeviceLoad, AgreesWithABruteForceCount) {
  constexpr std::uint64_t kGrain = 10'000;
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Activity> activities;
    std::uint64_t now = 5 * kMs;
    for (int i = 0; i < 400; ++i) {
      now += kGrain * (random() % 20);
      if (random() % 50 == 0) now += 7 * kMs;
      const std::uint64_t duration = random() % 30 == 0 ? random() % 900 : random() % 12;
      const std::uint64_t asked = now - std::min(now, kGrain * (random() % 300));
      activities.push_back({asked, now, now + kGrain * duration});
    }
    std::shuffle(activities.begin(), activities.end(), random);
    const Figures figures = figures_of(activities);
    for (std::uint64_t from = 0; from < now + 12 * kMs; from += kMs) {
      ASSERT_NEAR(at(figures.busy, from), brute_busy(activities, from, kGrain), 1e-9)
          << seed << " at " << from;
      ASSERT_NEAR(at(figures.queue, from), brute_queue(activities, from), 1e-9)
          << seed << " at " << from;
    }
  }
}

// Ten minutes of kernels, each a little out of order: the window goes with them.
TEST(DeviceLoad, AgreesAlsoWhereTheWindowHasGoneOn) {
  std::vector<Activity> activities;
  std::mt19937_64 random(1);
  for (std::uint64_t i = 1'000; i < 61'000; ++i) {
    const std::uint64_t start = 10 * kMs * i + 1'000 * (random() % 5'000);
    activities.push_back({start - 300 * kMs, start, start + 4 * kMs});
  }
  for (auto from = activities.begin(); from != activities.end(); from += 20) {
    std::shuffle(from, from + 20, random);
  }
  const Figures figures = figures_of(activities);
  const auto middle =
      std::vector<Activity>(activities.begin() + 30'000, activities.begin() + 30'200);
  for (std::uint64_t i = 31'100; i < 31'110; ++i) {
    EXPECT_NEAR(at(figures.busy, 10 * kMs * i + 4 * kMs),
                brute_busy(middle, 10 * kMs * i + 4 * kMs, 1'000), 1e-9);
    EXPECT_NEAR(at(figures.queue, 10 * kMs * i), brute_queue(middle, 10 * kMs * i), 1e-9);
  }
  EXPECT_EQ(figures.queue.rbegin()->second, 0);
}

TEST(DeviceLoad, SurvivesTimesThatCannotBe) {
  const Figures figures = figures_of({{0, kMs, 2 * kMs},
                                      {5, (std::uint64_t{1} << 62) - 10, std::uint64_t{1} << 62},
                                      {9, 8, 7},
                                      {0, 3 * kMs, 4 * kMs}});
  EXPECT_EQ(at(figures.busy, 3 * kMs), 100);
  EXPECT_EQ(at(figures.queue, 4 * kMs), 1);  // asked for, and done at the end of time
}

TEST(DeviceLoad, SaysNothingOfNothing) {
  const Figures figures = figures_of({});
  EXPECT_TRUE(figures.busy.empty());
  EXPECT_TRUE(figures.queue.empty());
}

}  // namespace
}  // namespace layertrace::test
