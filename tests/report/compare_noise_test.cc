// Comparisons of real runs: what compare() looks at of 20 pairs of equal runs, and of 20 runs with
// one layer slowed by 20 %, on a machine with much else to do (tests/data/noise/README.md). Nothing
// is timed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "report/compare/noise.h"
#include "report/compare/quiet.h"
#include "report/profiles.h"

namespace layertrace {
namespace {

using comparison::Piece;
using comparison::QuietTimes;
using comparison::RunNoise;
using NoiseJson = nlohmann::ordered_json;

// Least, median and mean, in µs.
Stat noise_stat(const NoiseJson& figures, std::size_t first = 0) {
  const double us = made::kUs;
  Stat stat{.mean = figures[first + 2].get<double>() * us,
            .min = figures[first].get<double>() * us,
            .median = figures[first + 1].get<double>() * us};
  stat.max = std::max(stat.mean, stat.median) * 2;
  return stat;
}

Profile recorded_run(const NoiseJson& run) {
  Profile profile;
  profile.step_count = run["steps"];
  profile.step_ns = noise_stat(run["step"]);
  profile.step_ns.max = run["step"][3].get<double>() * made::kUs;
  for (const auto& [path, phases] : run["layers"].items()) {
    Layer& layer = profile.layers.emplace_back();
    layer.path = path;
    layer.ran = true;
    layer.calls = 1;
    const std::size_t dot = path.rfind('.');
    const std::string above = dot == std::string::npos ? "" : path.substr(0, dot);
    if (!path.empty()) {
      const Layer* parent = profile.find(above);
      layer.parent = static_cast<int>(parent - profile.layers.data());
      profile.layers[static_cast<std::size_t>(layer.parent)].children.push_back(
          static_cast<int>(profile.layers.size()) - 1);
    }
    for (const auto& [phase, figures] :
         {std::pair{Phase::kForward, phases[0]}, std::pair{Phase::kBackward, phases[1]}}) {
      PhaseStats& stats = layer.phases[static_cast<std::size_t>(phase)];
      stats.self_host_ns = noise_stat(figures);
      stats.host_ns = noise_stat(figures, 3);
    }
  }
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const std::string name(phase_name(static_cast<Phase>(i)));
    if (run["outside"].contains(name))
      profile.outside[i].host_ns = noise_stat(run["outside"][name]);
  }
  return profile;
}

class RecordedNoise : public testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
    ASSERT_NE(source, nullptr) << "set LAYERTRACE_SOURCE_DIR, or use ctest";
    std::ifstream file(std::string(source) + "/tests/data/noise/encoder.json");
    ASSERT_TRUE(file);
    data_ = NoiseJson::parse(file);
    ASSERT_EQ(data_["pairs"].size(), 20U);
  }

  Comparison compare_roles(std::size_t pair, const char* before, const char* after) const {
    const NoiseJson& runs = data_["pairs"][pair];
    return compare({recorded_run(runs[before]), recorded_run(runs[after])});
  }

  NoiseJson data_;
};

bool is_judged_changed(const ComparedRow& row) {
  const Verdict verdict = row.runs.back().verdict;
  return verdict == Verdict::kFaster || verdict == Verdict::kSlower;
}

// Their steps took up to twice as long in one run as in the other.
TEST_F(RecordedNoise, EqualRunsDifferByNothing) {
  int with_a_change = 0;
  double largest_change = 0;
  for (std::size_t pair = 0; pair < 20; ++pair) {
    const Comparison comparison = compare_roles(pair, "before", "after");
    with_a_change += std::ranges::any_of(comparison.rows, is_judged_changed) ? 1 : 0;
    ASSERT_EQ(comparison.rows[0].metric, "step_ms");
    largest_change = std::max(largest_change, comparison.rows[0].runs[1].change);
  }
  EXPECT_LE(with_a_change, 1);
  EXPECT_GT(largest_change, 1);
}

TEST_F(RecordedNoise, TheSlowedLayerIsTheFirstRow) {
  const std::string slowed = data_["slowed"];
  int seen = 0;
  for (std::size_t pair = 0; pair < 20; ++pair) {
    const Comparison comparison = compare_roles(pair, "after", "slowed");
    const auto first = std::ranges::find(comparison.rows, "layer", &ComparedRow::kind);
    ASSERT_NE(first, comparison.rows.end());
    EXPECT_EQ(first->name, slowed) << "pair " << pair;
    seen += std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
      return row.name == slowed && row.metric == "forward_ms" &&
             row.runs[1].verdict == Verdict::kSlower;
    });
  }
  EXPECT_GE(seen, 12);  // in the others the noise is too large
}

// ---- Its parts ----

// From tables of Student's t.
TEST(Noise, KnowsStudentsT) {
  EXPECT_NEAR(comparison::chance_of_t(2.228, 10), 0.05, 1e-4);
  EXPECT_NEAR(comparison::chance_of_t(-3.169, 10), 0.01, 1e-4);
  EXPECT_NEAR(comparison::chance_of_t(8.610, 4), 0.001, 1e-5);
  EXPECT_NEAR(comparison::chance_of_t(3.646, 30), 0.001, 1e-5);
  EXPECT_NEAR(comparison::chance_of_t(1.95996, 1e7), 0.05, 1e-5);
  EXPECT_DOUBLE_EQ(comparison::chance_of_t(0, 5), 1);
}

// The example of Benjamini and Hochberg's paper of 1995: four of fifteen.
TEST(Noise, BelievesAsManyAsTheyMayBe) {
  const std::vector<double> chances = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201,
                                       0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
                                       0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  EXPECT_DOUBLE_EQ(comparison::largest_believed(chances, 0.05), 0.0095);
  EXPECT_LT(comparison::largest_believed({0.5, 0.9}, 0.05), 0);
  EXPECT_LT(comparison::largest_believed({}, 0.05), 0);
}

TEST(RunNoise, KnowsWhatAllHaveInCommonAndHowTheyScatter) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 100; ++i) {
    const double size = 1e3 * std::pow(1.1, i);
    const double sign = i % 2 == 0 ? 1 : -1;
    // Short times scatter by 20 %, long ones by 4 %; all are slower by 10 %.
    const double away = sign * (i < 50 ? 0.2 : 0.04);
    pieces.push_back({size, size * std::exp(std::log(1.1) + away)});
  }
  const RunNoise noise(pieces);
  EXPECT_NEAR(noise.common({Phase::kForward}), std::log(1.1), 0.05);
  EXPECT_GT(noise.scatter(2e3), 0.2);
  EXPECT_LT(noise.scatter(1e7), 0.15);
  EXPECT_GE(RunNoise({}).scatter(1e6), 0.01);  // never nothing
}

TEST(RunNoise, IsNotLedByWhatChanged) {
  std::vector<Piece> pieces(40, Piece{1e6, 1e6});
  for (std::size_t i = 0; i < 10; ++i) pieces[i].after = 3e6;
  // Neither do all of a phase lead another's.
  for (int i = 0; i < 40; ++i) pieces.push_back({1e6, 2e6, Phase::kBackward});
  const RunNoise noise(pieces);
  EXPECT_EQ(noise.common({Phase::kForward}), 0);
  EXPECT_DOUBLE_EQ(noise.common({Phase::kBackward}), std::log(2));
  EXPECT_LT(noise.scatter(1e6), 0.05);
}

TEST(RunNoise, IsNotLedByTheOneThatTakesLongest) {
  for (const double factor : {4.0, 0.25}) {
    std::vector<Piece> pieces;
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      for (int i = 0; i < 12; ++i) pieces.push_back({1e4, i % 2 == 0 ? 1.01e4 : 0.99e4, phase});
      pieces.push_back({1e8, factor * 1e8, phase});
    }
    const RunNoise noise(pieces);
    EXPECT_NEAR(noise.common({Phase::kForward}), 0, 0.011);
    EXPECT_NEAR(noise.common({Phase::kBackward}), 0, 0.011);
    EXPECT_LT(noise.scatter(1e8), 0.05);
  }
}

// Between two that disagree, the one that did not change is what is usual.
TEST(RunNoise, TakesTheLesserOfTwo) {
  for (const double factor : {4.0, 0.25}) {
    const RunNoise noise({{1e4, 1e4}, {1e8, factor * 1e8}});
    EXPECT_DOUBLE_EQ(noise.common({Phase::kForward}), 0);
  }
}

TEST(RunNoise, KnowsHowFarPiecesChangedTheOtherWay) {
  std::vector<Piece> pieces(20, Piece{1e6, 3e6});
  pieces.resize(30, Piece{1e6, 1e6 * std::exp(-0.2)});
  const RunNoise noise(pieces);
  EXPECT_NEAR(noise.scatter_against(1), 1.8 * 0.2, 1e-9);
  EXPECT_NEAR(noise.scatter_against(-1), 1.8 * std::log(3), 1e-9);
  EXPECT_DOUBLE_EQ(RunNoise({{1e6, 3e6}}).scatter_against(1), 0.1);  // what equal runs differ by
}

TEST(QuietTimes, AreWhatIsLeftWithoutDisturbances) {
  made::ProfileMaker net;
  const int root = net.root("Net");
  const int first = net.layer(root, "a", "Linear");
  const int second = net.layer(root, "b", "Linear");
  const auto set = [&](int layer, const Stat& own, const Stat& whole) {
    PhaseStats& forward = net[layer].phases[static_cast<std::size_t>(Phase::kForward)];
    forward.self_host_ns = own;
    forward.host_ns = whole;
  };
  // In one of two steps the first is interrupted for 100 ns, in the other the second.
  const Stat hit{.mean = 60, .min = 10, .max = 110, .median = 60};
  set(first, hit, hit);
  set(second, hit, hit);
  const Stat own{.mean = 5, .min = 5, .max = 5, .median = 5};
  set(root, own, {.mean = 125, .min = 125, .max = 125, .median = 125});
  net.profile.step_ns = {.mean = 130, .min = 130, .max = 130, .median = 130};
  const QuietTimes quiet(net.profile);
  EXPECT_DOUBLE_EQ(quiet.layer_ns(0, {Phase::kForward}), 25);
  EXPECT_DOUBLE_EQ(quiet.models_ns({Phase::kForward}), 25);
  EXPECT_DOUBLE_EQ(quiet.layer_ns(1, {Phase::kForward, Phase::kBackward}), 10);
  EXPECT_DOUBLE_EQ(quiet.step_ns(), 30);  // 5 are nobody's
}

}  // namespace
}  // namespace layertrace
