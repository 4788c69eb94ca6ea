#include "core/machine.h"

#include <gtest/gtest.h>

#include <vector>

namespace simgpu {
namespace {

Config config_with(const char* faults = "") {
  return std::get<Config>(read_config([&](const char* name) -> const char* {
    if (std::string_view(name) == "SIMGPU_FAULTS") return faults;
    if (std::string_view(name) == "SIMGPU_CLOCK") return "virtual";
    if (std::string_view(name) == "SIMGPU_DEVICES") return "2";
    return nullptr;
  }));
}

struct Seen final : Observer {
  void on_activity(const Activity& activity) override { activities.push_back(activity); }
  std::vector<Activity> activities;
};

TEST(Machine, TellsTheObserverOfAllThatRuns) {
  Machine machine(config_with());
  Seen seen;
  machine.set_observer(&seen);
  const Stream& stream = machine.device(1).legacy_stream;
  Activity kernel;
  kernel.name = "add";
  kernel.correlation = 5;
  const Slot ran = machine.run_kernel(stream, kernel, 1000);
  machine.run_copy(stream, CopyPath::kToDevice, 4096, 6);
  machine.run_fill(stream, 3, 512, 7);
  machine.set_observer(nullptr);
  machine.run_kernel(stream, kernel, 1000);

  ASSERT_EQ(seen.activities.size(), 3u);
  EXPECT_STREQ(seen.activities[0].name, "add");
  EXPECT_EQ(seen.activities[0].slot.end_ns, ran.end_ns);
  EXPECT_EQ(seen.activities[0].slot.end_ns - seen.activities[0].slot.start_ns, 1000u);
  EXPECT_EQ(seen.activities[1].bytes, 4096u);
  EXPECT_EQ(seen.activities[2].value, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen.activities[i].correlation, 5 + i);
    EXPECT_EQ(seen.activities[i].device, 1);
    EXPECT_EQ(seen.activities[i].stream_id, 7u);
  }
  EXPECT_GE(seen.activities[1].slot.start_ns, seen.activities[0].slot.end_ns);
  EXPECT_GE(seen.activities[2].slot.start_ns, seen.activities[1].slot.end_ns);
}

TEST(Machine, IsTheSameInEveryRunOfAVirtualClock) {
  const auto run = [] {
    Machine machine(config_with());
    std::vector<std::uint64_t> times;
    for (int i = 0; i < 100; ++i) {
      machine.clock().charge(400);
      times.push_back(machine.run_kernel(machine.device(0).legacy_stream, {}, 700).end_ns);
    }
    return times;
  };
  EXPECT_EQ(run(), run());
}

TEST(Machine, LaunchesNoSoonerThanTheLatency) {
  Machine machine(config_with());
  const std::uint64_t now = machine.clock().now();
  EXPECT_EQ(machine.run_kernel(machine.device(0).legacy_stream, {}, 1).start_ns,
            now + machine.profile().launch_latency_ns);
}

TEST(Machine, KnowsKernelsByTheirAddress) {
  Machine machine(config_with());
  const int function = 0;
  EXPECT_EQ(machine.kernel_name(&function), nullptr);
  machine.add_kernel(&function, "_Z3addPf");
  EXPECT_STREQ(machine.kernel_name(&function), "_Z3addPf");
}

TEST(Faults, LoseTheDeviceForGood) {
  Machine machine(config_with("device_lost=3"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(machine.count_launch());
  EXPECT_FALSE(machine.lost());
  EXPECT_FALSE(machine.count_launch());
  EXPECT_TRUE(machine.lost());
  EXPECT_FALSE(machine.count_launch());
  EXPECT_FALSE(machine.count_allocation());
}

TEST(Faults, FailOneAllocation) {
  Machine machine(config_with("allocation_fails=2"));
  EXPECT_TRUE(machine.count_allocation());
  EXPECT_FALSE(machine.count_allocation());
  EXPECT_TRUE(machine.count_allocation());
}

TEST(FaultsDeathTest, OfTheSetUpEndTheProcess) {
  EXPECT_EXIT(
      {
        setenv("SIMGPU_PROFILE", "abacus", 1);
        Machine::instance();
      },
      testing::ExitedWithCode(2), "simgpu: SIMGPU_PROFILE: there is no device 'abacus'");
}

}  // namespace
}  // namespace simgpu
