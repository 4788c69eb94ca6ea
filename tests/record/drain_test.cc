// All threads' records, in an order that attribution can trust.
#include "record/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "record/buffers.h"

namespace layertrace {
namespace {

using test::KeepingConsumer;
using test::op_begin;
using test::op_end;
using test::step_mark;
using test::Tally;
using test::tally;
using ::testing::ElementsAre;

std::shared_ptr<ThreadBuffer> make_buffer(ChunkPool& pool, std::uint64_t key) {
  return std::make_shared<ThreadBuffer>(pool, key, key, "");
}

std::vector<std::uint64_t> ticks_in_order(const KeepingConsumer& consumer) {
  std::vector<std::uint64_t> ticks;
  for (const auto& each : consumer.order) ticks.push_back(each.record.ticks);
  return ticks;
}

TEST(Drain, MergesLanesByTime) {
  ChunkPool pool(8);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto a = make_buffer(pool, 10);
  const auto b = make_buffer(pool, 20);
  const auto c = make_buffer(pool, 30);
  for (const auto& buffer : {a, b, c}) drain.add(buffer);
  for (const std::uint64_t t : {1, 2, 7, 20}) a->mark(step_mark(t));
  for (const std::uint64_t t : {3, 4, 5}) b->mark(step_mark(t));
  for (const std::uint64_t t : {6, 8, 9, 30}) c->mark(step_mark(t));
  EXPECT_EQ(drain.pump(), 11u);
  EXPECT_THAT(ticks_in_order(consumer), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 30));
  EXPECT_THAT(consumer.keys,
              ElementsAre(std::pair(0u, 10u), std::pair(1u, 20u), std::pair(2u, 30u)));
  EXPECT_EQ(drain.pump(), 0u);
  EXPECT_EQ(drain.recorded(), 11u);
}

TEST(Drain, KeepsALanesOrderWhateverItsClockSays) {
  ChunkPool pool(8);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto a = make_buffer(pool, 1);
  const auto b = make_buffer(pool, 2);
  drain.add(a);
  drain.add(b);
  for (const std::uint64_t t : {10, 5, 5, 30, 2, 40}) a->mark(step_mark(t, t));
  for (const std::uint64_t t : {1, 1, 20, 3}) b->mark(step_mark(t, t));
  EXPECT_EQ(drain.pump(), 10u);
  std::vector<std::uint64_t> of_a;
  for (const Record& record : consumer.resolved[0]) of_a.push_back(record.ticks);
  EXPECT_THAT(of_a, ElementsAre(10, 5, 5, 30, 2, 40));
}

TEST(Drain, GoesOverChunkBordersOfAllLanes) {
  ChunkPool pool(32);
  KeepingConsumer consumer;
  Drain drain(consumer);
  std::vector<std::shared_ptr<ThreadBuffer>> buffers;
  for (std::uint64_t i = 0; i < 3; ++i) {
    buffers.push_back(make_buffer(pool, i));
    drain.add(buffers.back());
  }
  constexpr std::uint64_t kRecords = 15'000;
  for (std::uint64_t t = 0; t < kRecords; ++t) buffers[t * t % 3]->mark(step_mark(t));
  EXPECT_EQ(drain.pump(), kRecords);
  std::uint64_t next = 0;
  for (const auto& each : consumer.order) ASSERT_EQ(each.record.ticks, next++);
}

// A consumer that does something while a drain is at work: when it asks for new threads, or between
// its first count and its second.
class Meanwhile final : public KeepingConsumer {
 public:
  void add_threads() override { act(at_birth_); }
  void refresh() override { act(between_counts_); }
  void at_birth(std::function<void()> action) { at_birth_ = std::move(action); }
  void then(std::function<void()> action) { between_counts_ = std::move(action); }

 private:
  static void act(std::function<void()>& action) {
    if (const auto now = std::exchange(action, nullptr)) now();
  }
  std::function<void()> at_birth_;
  std::function<void()> between_counts_;
};

TEST(Drain, IndexesUpToTheSecondCountAndResolvesUpToTheFirst) {
  ChunkPool pool(8);
  Meanwhile consumer;
  Drain drain(consumer);
  const auto a = make_buffer(pool, 1);
  const auto b = make_buffer(pool, 2);
  drain.add(a);
  drain.add(b);
  a->begin(op_begin(1));
  consumer.then([&] {
    b->begin(op_begin(2));
    a->end(op_end(3));
  });
  EXPECT_EQ(drain.pump(), 1u);
  EXPECT_EQ(consumer.indexed[0].size(), 2u);
  EXPECT_EQ(consumer.indexed[1].size(), 1u);
  EXPECT_EQ(consumer.resolved[0].size(), 1u);
  EXPECT_EQ(consumer.resolved[1].size(), 0u);

  b->end(op_end(4));
  EXPECT_EQ(drain.pump(), 3u);
  EXPECT_EQ(consumer.indexed[0].size(), 2u);  // each record once
  EXPECT_EQ(consumer.indexed[1].size(), 2u);
  EXPECT_THAT(ticks_in_order(consumer), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(consumer.index_was_late);
}

TEST(Drain, IndexesAThreadThatIsBornBetweenTheCounts) {
  ChunkPool pool(8);
  Meanwhile consumer;
  Drain drain(consumer);
  const auto a = make_buffer(pool, 1);
  const auto born = make_buffer(pool, 2);
  drain.add(a);
  born->begin(op_begin(1));
  a->begin(op_begin(2));  // may depend on the newborn's
  consumer.then([&] { drain.add(born); });
  EXPECT_EQ(drain.pump(), 1u);
  EXPECT_EQ(consumer.indexed[1].size(), 1u);
  EXPECT_EQ(consumer.resolved[1].size(), 0u);
  EXPECT_EQ(drain.pump(), 1u);
  EXPECT_EQ(consumer.resolved[1].size(), 1u);
}

TEST(Drain, LetsEndedThreadsGoOnceTheyAreRead) {
  ChunkPool pool(4);
  KeepingConsumer consumer;
  Drain drain(consumer);
  auto buffer = make_buffer(pool, 1);
  const std::weak_ptr<ThreadBuffer> watched = buffer;
  drain.add(buffer);
  buffer->mark(step_mark(1));
  drain.pump();
  EXPECT_TRUE(consumer.closed.empty());
  buffer->mark(step_mark(2));
  buffer->retire();
  buffer.reset();
  EXPECT_EQ(drain.pump(), 1u);  // what it wrote last is read first
  EXPECT_THAT(consumer.closed, ElementsAre(0u));
  EXPECT_TRUE(watched.expired());
  pool.trim();
  EXPECT_EQ(pool.allocated(), 0u);
  drain.add(make_buffer(pool, 2));  // lanes are not used again
  EXPECT_EQ(consumer.keys.rbegin()->first, 1u);
}

TEST(Drain, TellsWhatANewThreadDidInItsTime) {
  ChunkPool pool(8);
  Meanwhile consumer;
  Drain drain(consumer);
  const auto old = make_buffer(pool, 1);
  const auto fresh = make_buffer(pool, 2);
  drain.add(old);
  old->begin(op_begin(1));
  fresh->begin(op_begin(2));
  fresh->end(op_end(3));
  old->end(op_end(4));
  consumer.at_birth([&] { drain.add(fresh); });
  EXPECT_EQ(drain.pump(), 4u);
  EXPECT_THAT(ticks_in_order(consumer), ElementsAre(1, 2, 3, 4));
}

TEST(Drain, TellsNothingFromBeyondTheHorizon) {
  ChunkPool pool(8);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto a = make_buffer(pool, 1);
  const auto b = make_buffer(pool, 2);
  drain.add(a);
  drain.add(b);
  for (std::uint64_t ticks = 0; ticks < 10; ticks += 2) {
    a->begin(op_begin(ticks));
    a->end(op_end(ticks + 1));
  }
  b->begin(op_begin(20));
  EXPECT_EQ(drain.pump(6), 7u);
  EXPECT_EQ(drain.pump(6), 0u);
  EXPECT_EQ(drain.pump(15), 3u);
  EXPECT_EQ(drain.pump(), 1u);
  EXPECT_THAT(ticks_in_order(consumer), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20));
  EXPECT_FALSE(consumer.index_was_late);
}

// Whoever reads them remembers a bounded part of the past.
TEST(Drain, GoesNoFurtherAtOnceThanSoManyRecordsOfALaneReach) {
  constexpr std::uint64_t kMany = 3 * Drain::kMostAtOnce;
  ChunkPool pool(2 * kMany / Chunk::kCapacity);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto busy = make_buffer(pool, 1);
  const auto quiet = make_buffer(pool, 2);
  drain.add(busy);
  drain.add(quiet);
  for (std::uint64_t ticks = 0; ticks < kMany; ticks += 2) {
    busy->begin(op_begin(ticks));
    busy->end(op_end(ticks + 1));
  }
  for (std::uint64_t ticks = 500; ticks < kMany; ticks += 1000) quiet->mark(step_mark(ticks));
  const std::uint64_t horizon = kMany - 10;
  EXPECT_EQ(drain.pump(horizon), Drain::kMostAtOnce + Drain::kMostAtOnce / 1000);
  EXPECT_EQ(drain.reached_ticks(), Drain::kMostAtOnce - 1);
  EXPECT_EQ(consumer.indexed[0].size(), Drain::kMostAtOnce + Drain::kIndexedAhead);
  int pumps = 1;
  for (; drain.reached_ticks() < horizon; ++pumps) drain.pump(horizon);
  EXPECT_EQ(pumps, 3);
  EXPECT_EQ(drain.reached_ticks(), horizon);
  drain.pump();
  EXPECT_EQ(consumer.order.size(), kMany + kMany / 1000);
  const auto ticks = ticks_in_order(consumer);
  EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
  EXPECT_FALSE(consumer.index_was_late);
}

// A thread may come from a processor whose counter is ahead.
TEST(Drain, GoesOnAlsoWhereALanesTimeRunsBackwards) {
  constexpr std::uint64_t kMany = 2 * Drain::kMostAtOnce;
  ChunkPool pool(2 * kMany / Chunk::kCapacity);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto buffer = make_buffer(pool, 1);
  drain.add(buffer);
  buffer->mark(step_mark(10 * kMany));
  for (std::uint64_t ticks = 1; ticks < kMany; ++ticks) buffer->mark(step_mark(ticks));
  std::uint64_t read = 0;
  for (int pumps = 0; pumps < 10 && read < kMany; ++pumps) read += drain.pump(20 * kMany);
  EXPECT_EQ(read, kMany);
}

TEST(Drain, LetsAThreadGoNoSoonerThanOthersRecordsFromBeforeIt) {
  ChunkPool pool(2);
  Meanwhile consumer;
  Drain drain(consumer);
  const auto first = make_buffer(pool, 1);
  while (first->begin(op_begin(10))) first->end(op_end(11));
  const auto without_room = make_buffer(pool, 2);
  EXPECT_FALSE(without_room->begin(op_begin(20)));
  without_room->retire();
  consumer.at_birth([&] {
    drain.add(first);
    drain.add(without_room);
  });
  EXPECT_GT(drain.pump(), 0u);
  EXPECT_THAT(consumer.closed, ElementsAre(1u));
  // Its loss is told of at a time that the others know.
  EXPECT_EQ(consumer.resolved[1].at(0).kind, RecordKind::kGap);
  EXPECT_EQ(consumer.resolved[1].at(0).ticks, 11u);
  EXPECT_EQ(consumer.order.back().lane, 1u);
}

TEST(Drain, CountsWhatWasDroppedByThreadsThatEnded) {
  ChunkPool pool(2);
  KeepingConsumer consumer;
  Drain drain(consumer);
  auto buffer = make_buffer(pool, 1);
  drain.add(buffer);
  std::uint64_t emitted = 0;
  for (int i = 0; i < 10'000; ++i) {
    emitted += 2;
    if (buffer->begin(op_begin(1))) buffer->end(op_end(1));
  }
  buffer->retire();
  buffer.reset();
  drain.pump();
  EXPECT_THAT(consumer.closed, ElementsAre(0u));
  EXPECT_GT(drain.dropped(), 0u);
  EXPECT_EQ(drain.recorded() + drain.dropped(), emitted);
  // The last gap had no record after it to stand before, and is told of all the same.
  EXPECT_EQ(tally(consumer.resolved[0]).gap_total, drain.dropped());
}

TEST(Drain, TellsOfGapsThatHaveNoEnd) {
  ChunkPool pool(2);
  KeepingConsumer consumer;
  Drain drain(consumer);
  const auto buffer = make_buffer(pool, 1);
  const auto never_had_room = make_buffer(pool, 2);
  drain.add(buffer);
  drain.add(never_had_room);
  for (int i = 0; i < 5'000; ++i) {
    if (buffer->begin(op_begin(1))) buffer->end(op_end(1));
  }
  EXPECT_FALSE(never_had_room->begin(op_begin(2)));
  drain.pump();
  drain.mark_open_gaps(9'000);
  EXPECT_EQ(consumer.resolved[0].back().kind, RecordKind::kGap);
  EXPECT_EQ(consumer.resolved[0].back().ticks, 9'000u);
  EXPECT_EQ(tally(consumer.resolved[0]).gap_total, buffer->dropped());
  EXPECT_EQ(tally(consumer.resolved[1]).gap_total, 2u);
  drain.mark_open_gaps(9'001);  // once is enough
  EXPECT_EQ(tally(consumer.resolved[1]).gap_total, 2u);
}

// Threads are born, write and die while the drain runs: no record is lost or seen twice.
TEST(Drain, FollowsThreadsWhileTheyWrite) {
  constexpr std::uint64_t kThreads = 12;
  constexpr std::uint64_t kPairs = 6'000;
  ChunkPool pool(6);
  Meanwhile consumer;
  Drain drain(consumer);
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadBuffer>> born;
  std::atomic<std::uint64_t> emitted{0};
  std::atomic<bool> done{false};
  std::thread program([&] {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto buffer = make_buffer(pool, t);
        {
          const std::lock_guard lock(mutex);
          born.push_back(buffer);
        }
        for (std::uint64_t i = 0; i < kPairs; ++i) {
          if (buffer->begin(op_begin(i, i))) buffer->end(op_end(i, i));
        }
        emitted.fetch_add(2 * kPairs);
        buffer->retire();
      });
      if (t % 3 == 2) {
        for (std::thread& thread : threads) thread.join();
        threads.clear();
      }
    }
    for (std::thread& thread : threads) thread.join();
    done.store(true);
  });
  const auto pump = [&] {
    consumer.then([&] {
      const std::lock_guard lock(mutex);
      for (auto& buffer : born) drain.add(std::move(buffer));
      born.clear();
    });
    return drain.pump();
  };
  while (!done.load()) pump();
  program.join();
  pump();
  pump();
  EXPECT_EQ(consumer.closed.size(), kThreads);
  EXPECT_EQ(drain.recorded() + drain.dropped(), emitted.load());
  EXPECT_FALSE(consumer.index_was_late);
  std::uint64_t gap_total = 0;
  for (const auto& [lane, records] : consumer.resolved) {
    const Tally read = tally(records);
    EXPECT_TRUE(read.nested);
    EXPECT_EQ(read.open, 0);
    gap_total += read.gap_total;
  }
  EXPECT_EQ(gap_total, drain.dropped());
}

}  // namespace
}  // namespace layertrace
