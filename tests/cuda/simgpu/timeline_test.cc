#include "core/timeline.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace simgpu {
namespace {

constexpr auto kLegacy = Timeline::kLegacyStream;

TEST(Stream, RunsOneAfterTheOther) {
  Timeline timeline;
  const auto stream = timeline.add_stream(false);
  const Slot first = timeline.enqueue(stream, 100, 50);
  EXPECT_EQ(first.start_ns, 100u);
  EXPECT_EQ(first.end_ns, 150u);
  EXPECT_EQ(timeline.enqueue(stream, 110, 10).start_ns, 150u);  // had to wait
  EXPECT_EQ(timeline.enqueue(stream, 500, 10).start_ns, 500u);  // came to an idle stream
  EXPECT_EQ(timeline.idle_at(stream), 510u);
}

TEST(Stream, RunsBesideTheOthers) {
  Timeline timeline;
  const auto a = timeline.add_stream(false);
  const auto b = timeline.add_stream(false);
  timeline.enqueue(a, 100, 1000);
  EXPECT_EQ(timeline.enqueue(b, 110, 10).start_ns, 110u);
  EXPECT_EQ(timeline.idle_at(), 1100u);
  EXPECT_EQ(timeline.idle_at(b), 120u);
}

TEST(Stream, WaitsForAnEventOfAnother) {
  Timeline timeline;
  const auto a = timeline.add_stream(false);
  const auto b = timeline.add_stream(false);
  timeline.enqueue(a, 100, 1000);
  const std::uint64_t event = timeline.mark(a, 105);
  EXPECT_EQ(event, 1100u);
  timeline.enqueue(a, 110, 50);  // after the event
  timeline.wait(b, event);
  EXPECT_EQ(timeline.enqueue(b, 120, 10).start_ns, 1100u);
  EXPECT_EQ(timeline.mark(b, 5000), 5000u);  // an idle stream's event is now
}

TEST(LegacyStream, WaitsForBlockingStreamsAndTheyForIt) {
  Timeline timeline;
  const auto blocking = timeline.add_stream(true);
  const auto other = timeline.add_stream(true);
  const auto free = timeline.add_stream(false);
  timeline.enqueue(blocking, 0, 100);
  timeline.enqueue(free, 0, 1000);
  EXPECT_EQ(timeline.enqueue(kLegacy, 10, 50).start_ns, 100u);
  EXPECT_EQ(timeline.enqueue(other, 20, 10).start_ns, 150u);
  EXPECT_EQ(timeline.enqueue(free, 30, 10).start_ns, 1000u);
  EXPECT_EQ(timeline.mark(kLegacy, 0), 160u);
}

TEST(Engine, CopiesOneWayOneAtATime) {
  Timeline timeline;
  const auto a = timeline.add_stream(false);
  const auto b = timeline.add_stream(false);
  const auto c = timeline.add_stream(false);
  EXPECT_EQ(timeline.enqueue(a, 0, 100, Engine::kToDevice).start_ns, 0u);
  EXPECT_EQ(timeline.enqueue(b, 0, 100, Engine::kToDevice).start_ns, 100u);
  EXPECT_EQ(timeline.enqueue(c, 0, 100, Engine::kToHost).start_ns, 0u);
}

TEST(RemovedStream, FinishesItsWorkAndLeavesItsPlaceToAnother) {
  Timeline timeline;
  const auto gone = timeline.add_stream(true);
  timeline.enqueue(gone, 0, 1000);
  timeline.remove_stream(gone);
  EXPECT_EQ(timeline.idle_at(), 1000u);
  const auto fresh = timeline.add_stream(false);
  EXPECT_EQ(fresh, gone);
  EXPECT_EQ(timeline.enqueue(fresh, 10, 10).start_ns, 10u);
}

TEST(Timeline, IsKeptInOrderByManyThreads) {
  Timeline timeline;
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<std::thread> threads;
  std::vector<int> bad(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto stream = timeline.add_stream(i % 2 == 0);
      std::uint64_t last = 0;
      for (int n = 0; n < kEach; ++n) {
        const Slot slot = timeline.enqueue(stream, static_cast<std::uint64_t>(n), 5);
        if (slot.start_ns < last || slot.end_ns != slot.start_ns + 5)
          ++bad[static_cast<std::size_t>(i)];
        last = slot.end_ns;
        if (n % 100 == 0) timeline.enqueue(kLegacy, static_cast<std::uint64_t>(n), 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, std::vector<int>(kThreads));
  EXPECT_GE(timeline.idle_at(), std::uint64_t{5} * kEach);
}

}  // namespace
}  // namespace simgpu
