// From a script to its Profile, and checks that hold for every Profile.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string_view>

#include <layertrace/profile.h>

#include "attribute/fold.h"
#include "attribute/records.h"
#include "attribute/span_log.h"

namespace layertrace::test {

// What must be so in any Profile.
inline void expect_sound(const Profile& profile) {
  for (const Step& step : profile.steps) {
    const std::uint64_t sum =
        std::accumulate(step.phase_ns.begin(), step.phase_ns.end(), std::uint64_t{0});
    EXPECT_EQ(sum, step.wall_ns) << "step " << step.index;
  }
  for (const Layer& layer : profile.layers) {
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      const PhaseStats& stats = layer.phases[p];
      EXPECT_LE(stats.self_host_ns.mean, stats.host_ns.mean) << layer.path;
      EXPECT_LE(stats.self_activity_ns.mean, stats.activity_ns.mean) << layer.path;
      EXPECT_LE(stats.host_ns.min, stats.host_ns.max);
      if (layer.parent < 0) continue;
      const Layer& parent = profile.layers[static_cast<std::size_t>(layer.parent)];
      EXPECT_LE(stats.host_ns.mean, parent.phases[p].host_ns.mean) << layer.path;
      EXPECT_LE(stats.activity_ns.mean, parent.phases[p].activity_ns.mean) << layer.path;
      EXPECT_LE(stats.activities.mean, parent.phases[p].activities.mean) << layer.path;
    }
  }
  EXPECT_GE(profile.health.attributed_share, 0);
  EXPECT_LE(profile.health.attributed_share, 1);
}

inline Profile fold(const Script& script, std::uint64_t end = kEnd) {
  Fold fold(script.dictionary);
  feed(script, fold, std::max<std::size_t>(script.written.size(), 1), end);
  Profile profile = fold.finish(end);
  expect_sound(profile);
  return profile;
}

inline const PhaseStats& stats_of(const Profile& profile, std::string_view path,
                                  Phase phase = Phase::kForward) {
  static const PhaseStats kNone;
  const Layer* layer = profile.find(path);
  EXPECT_NE(layer, nullptr) << path;
  return layer == nullptr ? kNone : layer->phase(phase);
}

inline const PhaseStats& outside(const Profile& profile, Phase phase) {
  return profile.outside[static_cast<std::size_t>(phase)];
}

inline std::uint64_t phase_ns(const Step& step, Phase phase) {
  return step.phase_ns[static_cast<std::size_t>(phase)];
}

}  // namespace layertrace::test
