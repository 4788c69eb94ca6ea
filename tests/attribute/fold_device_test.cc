// The profile's figures of a GPU: launches, event pairs, idle time, kernels.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "attribute/fold.h"
#include "attribute/folding.h"

namespace layertrace::test {
namespace {

// A profile of a script on whose threads (their keys are the system's numbers) a device was used.
class DeviceFold : public ::testing::Test {
 protected:
  Profile fold(const std::function<void(Fold&)>& device, std::uint64_t end = kEnd) {
    Fold fold(script_.dictionary);
    fold.use_device("a GPU");
    feed(script_, fold, script_.written.size(), end);
    device(fold);
    Profile profile = fold.finish(end);
    expect_sound(profile);
    return profile;
  }
  DeviceSpan kernel(std::string_view layer, std::uint64_t asked, std::uint64_t start,
                    std::uint64_t end, std::string_view name = "gemm",
                    Phase phase = Phase::kForward) {
    DeviceSpan span{.start_ns = start,
                    .end_ns = end,
                    .launch_ns = asked,
                    .launch_tid = 1,
                    .phase = phase,
                    .layer = layer == "-" ? kNoLayer : script_.layer(layer),
                    .what = {}};
    span.what.name = script_.name(name);
    return span;
  }
  LaunchSpan call(std::string_view layer, std::uint64_t at, CallKind kind = CallKind::kAsk) {
    return {.start_ns = at,
            .end_ns = at + 2,
            .tid = 1,
            .kind = kind,
            .phase = Phase::kForward,
            .layer = layer == "-" ? kNoLayer : script_.layer(layer)};
  }
  EventSpan pair(std::string_view layer, std::uint64_t host, std::uint64_t start, std::uint64_t end,
                 Phase phase = Phase::kForward) {
    return {.start_ns = start,
            .end_ns = end,
            .host_ns = host,
            .phase = phase,
            .layer = script_.layer(layer)};
  }

  Script script_{{"", "a", "a.b", "a.c", "d"}};
};

TEST_F(DeviceFold, CountsLaunchesWithTheChildrens) {
  script_.thread().on(0).enter(10, "a").leave(20).step(100, 0).step(200, 1).off(200);
  const Profile profile = fold([&](Fold& fold) {
    fold.launch(call("a.b", 11));
    fold.launch(call("a", 12, CallKind::kCopy));
    fold.launch(call("a.b", 13, CallKind::kWait));  // asks for nothing
    fold.launch(call("-", 150));
    fold.launch(call("a", 300));  // nothing was recorded then
  });
  EXPECT_EQ(stats_of(profile, "a.b").launches.max, 1);
  EXPECT_EQ(stats_of(profile, "a").launches.max, 2);
  EXPECT_EQ(stats_of(profile, "").launches.max, 2);
  EXPECT_EQ(stats_of(profile, "").launches.mean, 1);
  EXPECT_EQ(outside(profile, Phase::kForward).launches.mean, 0.5);
  EXPECT_TRUE(profile.find("a.b")->ran);
}

// A step that only warms up is no part of the first that is recorded.
TEST_F(DeviceFold, LeavesOutWhatWasAskedForWhileNothingWasRecorded) {
  script_.thread().on(100).enter(110, "a").leave(120).step(200, 0).off(200);
  script_.thread().on(300, 5).enter(310, "a").leave(320).step(400, 5).off(400);
  const Profile profile = fold([&](Fold& fold) {
    for (const std::uint64_t asked : {50, 115, 250, 315, 450}) {
      fold.launch(call("a", asked));
      fold.device(kernel("a", asked, asked + 5, asked + 6));
      fold.event_pair(pair("a", asked, asked + 5, asked + 6));
    }
  });
  const PhaseStats& forward = profile.find("a")->phase(Phase::kForward);
  EXPECT_EQ(forward.activities.mean, 1);
  EXPECT_EQ(forward.launches.mean, 1);
  EXPECT_EQ(forward.event_ns.mean, 1);
  EXPECT_EQ(profile.health.gpu.outside_steps, 3u);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].count, 2u);
}

TEST_F(DeviceFold, TakesEventsOfTheLayerItselfOrElseOfItsChildren) {
  script_.thread().on(0).step(100, 0).off(100);
  const Profile profile = fold([&](Fold& fold) {
    fold.event_pair(pair("a.b", 10, 1010, 1020));
    fold.event_pair(pair("a.c", 20, 1025, 1030));
    fold.event_pair(pair("a", 5, 1005, 1040));
    fold.event_pair(pair("a", 50, 1100, 1101));
    fold.event_pair(pair("d", 60, 1110, 1112));
    fold.event_pair(pair("a.b", 70, 1200, 1207, Phase::kBackward));
  });
  EXPECT_EQ(stats_of(profile, "a.b").event_ns.mean, 10);
  EXPECT_EQ(stats_of(profile, "a.c").event_ns.mean, 5);
  EXPECT_EQ(stats_of(profile, "a").event_ns.mean, 36);  // its own two, around the others
  EXPECT_EQ(stats_of(profile, "").event_ns.mean, 38);   // never entered: a's and d's
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).event_ns.mean, 7);
  EXPECT_EQ(stats_of(profile, "", Phase::kBackward).event_ns.mean, 7);
  EXPECT_EQ(profile.health.gpu.event_pairs, 6u);
}

TEST_F(DeviceFold, CountsEarlierGraphsWithALayerAndWithout) {
  script_.thread().on(0).step(100, 0).off(100);
  Profile profile = fold([&](Fold& fold) {
    for (const char* layer : {"a", "-"}) {
      DeviceSpan span = kernel(layer, 10, 20, 30);
      span.cause = Cause::kEarlierGraph;
      fold.device(span);
    }
    fold.device(kernel("a", 10, 40, 50));
  });
  EXPECT_EQ(profile.health.gpu.earlier_graphs, 2u);
  EXPECT_EQ(stats_of(profile, "a").activities.mean, 2);
  ASSERT_EQ(profile.health.unattributed.size(), 1u);
  EXPECT_EQ(profile.health.unattributed[0].cause, cause_text(Cause::kEarlierGraph));
  EXPECT_EQ(profile.health.unattributed[0].count, 1u);

  Health closing;
  closing.gpu.records = 17;
  closing.gpu.event_pairs = 99;  // which the spans know better
  add_closing(profile.health, closing);
  EXPECT_EQ(profile.health.gpu.records, 17u);
  EXPECT_EQ(profile.health.gpu.earlier_graphs, 2u);
  EXPECT_EQ(profile.health.gpu.event_pairs, 0u);
}

// Two clocks need not agree. What is told is kept, and said to be odd.
TEST_F(DeviceFold, KeepsAndCountsWhatBeginsBeforeItWasAskedFor) {
  script_.thread().on(0).step(100, 0).off(100);
  const Profile profile = fold([&](Fold& fold) {
    fold.device(kernel("a", 30, 20, 25));
    fold.device(kernel("a", 30, 30, 35));
    DeviceSpan unasked = kernel("a", 0, 40, 45);  // by a call that was not recorded
    unasked.launch_ns = 0;
    fold.device(unasked);
  });
  EXPECT_EQ(profile.health.gpu.early, 1u);
  EXPECT_EQ(stats_of(profile, "a").activities.mean, 3);
  EXPECT_EQ(stats_of(profile, "a").activity_ns.mean, 15);
}

TEST_F(DeviceFold, ChargesIdleTimeToTheInnermostLayer) {
  ThreadScript& t = script_.thread();
  t.on(0).enter(10, "a").region(12, "part").enter(20, "a.b").leave(40).end_region(45).leave(50);
  t.region(60, "data", Phase::kData).end_region(80).step(100, 0).off(100);
  const Profile profile = fold([&](Fold& fold) {
    fold.device(kernel("a.b", 30, 35, 40));
    fold.device(kernel("-", 95, 95, 100, "fill", Phase::kOther));
    fold.launch(call("a", 42, CallKind::kWait));
  });
  ASSERT_EQ(profile.steps.size(), 1u);
  EXPECT_EQ(profile.steps[0].devices, (std::vector<DeviceStep>{{0, 10, 90, 0}}));
  // [0,35): outside, a, b until asked and until started; [40,95): a, waiting for two; the data.
  EXPECT_EQ(stats_of(profile, "a.b").idle_ns.mean, 15);
  EXPECT_EQ(stats_of(profile, "a").idle_ns.mean, 35);
  EXPECT_EQ(stats_of(profile, "").idle_ns.mean, 35);
  EXPECT_EQ(outside(profile, Phase::kData).idle_ns.mean, 20);
  EXPECT_EQ(outside(profile, Phase::kOther).idle_ns.mean, 35);
  ASSERT_EQ(profile.idle.size(), 5u);
  EXPECT_EQ(profile.idle[0].layer, -1);
  EXPECT_EQ(profile.idle[0].ns, 35);
  EXPECT_EQ(profile.idle[0].gaps, 2);
  EXPECT_EQ(profile.idle[1].cause, IdleCause::kData);
  EXPECT_EQ(profile.idle[2].ns, 18);  // a
  EXPECT_EQ(profile.idle[4].cause, IdleCause::kSynchronisation);
  EXPECT_EQ(profile.idle[4].ns, 2);
}

TEST_F(DeviceFold, HasNoDevicesWhereNoneDidAnything) {
  script_.thread().on(0).enter(10, "a").leave(50).step(100, 0).off(100);
  const Profile profile = fold([](Fold&) {});
  EXPECT_TRUE(profile.steps.at(0).devices.empty());
  EXPECT_TRUE(profile.idle.empty());
  EXPECT_TRUE(profile.kernels.empty());
}

// ---- Kernels ----

TEST_F(DeviceFold, SumsKernelsByNameWithWhomTheyServe) {
  script_.thread().on(0).step(100, 0).step(200, 1).step(300, 2);  // what follows is no step
  const Profile profile = fold(
      [&](Fold& fold) {
        DeviceSpan longest = kernel("a.b", 110, 120, 150, "void ns::gemm<float>(int)");
        longest.what.grid = {8, 2, 1};
        longest.what.block = {128, 1, 1};
        longest.what.registers = 40;
        longest.what.shared_bytes = 4096;
        longest.what.occupancy = 0.5F;
        fold.device(kernel("a", 10, 20, 25, "void ns::gemm<float>(int)"));
        fold.device(longest);
        fold.device(kernel("a.b", 10, 30, 40, "void ns::gemm<float>(int)"));
        fold.device(kernel("d", 350, 400, 900, "void ns::gemm<float>(int)"));
        DeviceSpan copy = kernel("-", 10, 60, 70, "copy HtoD", Phase::kData);
        copy.what.kind = DeviceKind::kCopy;
        copy.what.bytes = 1000;
        fold.device(copy);
        copy.what.bytes = 24;
        fold.device(copy);
      },
      1000);
  ASSERT_EQ(profile.kernels.size(), 2u);
  const Kernel& gemm = profile.kernels[0];
  EXPECT_EQ(gemm.name, "void ns::gemm<float>(int)");
  EXPECT_EQ(gemm.short_name, "gemm");
  EXPECT_EQ(gemm.kind, "kernel");
  EXPECT_EQ(gemm.count, 3u);
  EXPECT_EQ(gemm.ns, 45u);
  EXPECT_EQ(gemm.min_ns, 5u);
  EXPECT_EQ(gemm.max_ns, 30u);
  EXPECT_EQ(gemm.grid, (std::array<std::uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(gemm.block, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(gemm.registers, 40u);
  EXPECT_EQ(gemm.shared_bytes, 4096u);
  EXPECT_EQ(gemm.occupancy, 0.5);
  ASSERT_EQ(gemm.uses.size(), 2u);
  EXPECT_EQ(profile.layers.at(static_cast<std::size_t>(gemm.uses[0].layer)).path, "a.b");
  EXPECT_EQ(gemm.uses[0].phase, Phase::kForward);
  EXPECT_EQ(gemm.uses[0].count, 2u);
  EXPECT_EQ(gemm.uses[0].ns, 40u);
  EXPECT_EQ(gemm.uses[0].longest.grid, gemm.grid);
  EXPECT_EQ(gemm.uses[1].count, 1u);
  EXPECT_EQ(gemm.uses[1].longest.grid, (std::array<std::uint32_t, 3>{0, 0, 0}));  // its own
  const Kernel& copy = profile.kernels[1];
  EXPECT_EQ(copy.short_name, "copy HtoD");
  EXPECT_EQ(copy.kind, "copy");
  EXPECT_EQ(copy.bytes, 1024u);
  EXPECT_EQ(copy.uses.at(0).layer, -1);
  EXPECT_EQ(copy.uses[0].phase, Phase::kData);
}

TEST_F(DeviceFold, SumsKernelsOfARecordingWithoutSteps) {
  script_.thread().on(0).enter(10, "a").leave(50);
  const Profile profile = fold([&](Fold& fold) { fold.device(kernel("a", 10, 20, 25)); }, 100);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].count, 1u);
  EXPECT_EQ(profile.steps.at(0).devices, (std::vector<DeviceStep>{{0, 5, 95, 0}}));
}

TEST(KernelTable, HasSoManyNamesAndOneForTheRest) {
  KernelTable table(2);
  KernelTable more(2);
  const auto add = [](KernelTable& to, std::uint32_t name, std::uint64_t ns) {
    DeviceSpan span{.start_ns = 0, .end_ns = ns, .what = {}};
    span.what.name = NameId{name};
    to.add(span);
  };
  add(table, 0, 1);
  add(table, 1, 2);
  add(table, 2, 4);
  add(more, 2, 8);
  add(more, 0, 16);
  table.merge(more);
  const std::vector<Kernel> kernels = table.kernels({"zero", "one", "two"});
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].name, "zero");
  EXPECT_EQ(kernels[0].ns, 17u);
  EXPECT_EQ(kernels[1].name, "(too many names)");
  EXPECT_EQ(kernels[1].short_name, "(too many names)");
  EXPECT_EQ(kernels[1].ns, 12u);
  EXPECT_EQ(kernels[1].min_ns, 4u);
  EXPECT_EQ(kernels[2].ns, 2u);
}

// Live and from a file: the same spans in another order.
TEST_F(DeviceFold, DoesNotDependOnTheOrderOfWhatDevicesDid) {
  ThreadScript& t = script_.thread();
  t.on(0);
  std::vector<DeviceSpan> spans;
  std::vector<LaunchSpan> calls;
  constexpr std::uint64_t kSteps = 40;  // more than are kept open
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    const std::uint64_t at = 1000 * i;
    t.enter(at + 10, "a").enter(at + 100, "a.b").leave(at + 300).leave(at + 500).step(at + 1000, i);
    for (std::uint64_t k = 0; k < 9; ++k) {
      const std::uint64_t asked = at + 50 * k;
      spans.push_back(kernel(k % 2 == 0 ? "a" : "a.b", asked, asked + 7, asked + 20 + 5 * k));
      spans.back().what.kind = k % 4 == 0 ? DeviceKind::kCopy : DeviceKind::kKernel;
      spans.back().what.grid = {static_cast<std::uint32_t>(k), 1, 1};
      calls.push_back(call("a", asked + 25, k % 3 == 0 ? CallKind::kWait : CallKind::kAsk));
    }
  }
  t.off(1000 * kSteps);
  const auto describe = [&](bool reversed) {
    // All of the host's before; so the last of those steps that are still open.
    const Profile profile = fold([&](Fold& fold) {
      for (std::size_t i = 0; i < spans.size(); ++i) {
        fold.launch(calls[reversed ? spans.size() - 1 - i : i]);
        fold.device(spans[reversed ? spans.size() - 1 - i : i]);
      }
    });
    std::string text;
    for (const Step& step : profile.steps) {
      for (const DeviceStep& d : step.devices)
        text += fmt::format("{} {} {} {}\n", step.index, d.busy_ns, d.idle_ns, d.exposed_copy_ns);
    }
    for (const Idle& idle : profile.idle) {
      text += fmt::format("{} {} {} {:a} {:a}\n", idle.layer, phase_name(idle.phase),
                          idle_cause_name(idle.cause), idle.ns, idle.gaps);
    }
    for (const Kernel& each : profile.kernels) {
      text += fmt::format("{} {} {} {} {}\n", each.kind, each.count, each.ns, each.grid[0],
                          each.uses.size());
    }
    return text;
  };
  const std::string expected = describe(false);
  EXPECT_NE(expected.find("\n39 "), std::string::npos) << expected;
  EXPECT_EQ(describe(true), expected);
}

}  // namespace
}  // namespace layertrace::test
