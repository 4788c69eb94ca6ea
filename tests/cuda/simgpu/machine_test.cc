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
  void on_enter(ApiCall& /*call*/) override {}
  void on_leave(ApiCall& /*call*/) override {}
  void on_activity(const Activity& activity) override { activities.push_back(activity); }
  void on_synchronization(const Synchronization& /*what*/) override {}
  void on_event(const EventMark& /*mark*/) override {}
  void on_graph_run(const GraphRun& run) override { runs.push_back(run); }
  void on_resource(const ResourceChange& change) override { changes.push_back(change); }
  std::vector<Activity> activities;
  std::vector<GraphRun> runs;
  std::vector<ResourceChange> changes;
};

Task kernel_of(const char* name, std::uint64_t duration_ns) {
  Task task;
  task.activity.name = name;
  task.duration_ns = duration_ns;
  return task;
}

TEST(Machine, TellsTheObserverOfAllThatRuns) {
  Machine machine(config_with());
  Seen seen;
  machine.set_observer(&seen);
  const Stream& stream = machine.device(1).legacy_stream;
  const Slot ran = machine.run(stream, kernel_of("add", 1000), 5);
  machine.run(stream, machine.copy(CopyPath::kToDevice, 4096), 6);
  machine.run(stream, machine.fill(3, 512), 7);
  machine.set_observer(nullptr);
  machine.run(stream, kernel_of("add", 1000), 8);

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
      times.push_back(machine.run(machine.device(0).legacy_stream, kernel_of("", 700), 1).end_ns);
    }
    return times;
  };
  EXPECT_EQ(run(), run());
}

TEST(Machine, LaunchesNoSoonerThanTheLatency) {
  Machine machine(config_with());
  const std::uint64_t now = machine.clock().now();
  EXPECT_EQ(machine.run(machine.device(0).legacy_stream, kernel_of("", 1), 1).start_ns,
            now + machine.profile().launch_latency_ns);
}

TEST(Machine, KnowsKernelsByTheirAddress) {
  Machine machine(config_with());
  const int function = 0;
  EXPECT_EQ(machine.find_kernel(&function), nullptr);
  machine.add_kernel(&function, "_Z3addPf");
  ASSERT_NE(machine.find_kernel(&function), nullptr);
  EXPECT_STREQ(machine.find_kernel(&function)->name, "_Z3addPf");
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
