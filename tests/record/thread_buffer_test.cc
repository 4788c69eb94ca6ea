// One thread's records: nothing is lost unseen, and whatever was opened is closed.
#include "record/thread_buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "record/buffers.h"

namespace layertrace {
namespace {

using test::op_begin;
using test::op_end;
using test::step_mark;
using test::take;
using test::Tally;
using test::tally;

TEST(ThreadBuffer, IsReadInTheOrderOfWriting) {
  ChunkPool pool(4);
  ThreadBuffer buffer(pool, 7, 8, "worker");
  EXPECT_EQ(buffer.key(), 7u);
  EXPECT_EQ(buffer.tid(), 8u);
  EXPECT_EQ(buffer.name(), "worker");
  EXPECT_EQ(buffer.committed(), 0u);
  EXPECT_TRUE(take(buffer).empty());

  ASSERT_TRUE(buffer.begin(op_begin(1)));
  EXPECT_EQ(buffer.committed(), 1u);
  buffer.end(op_end(2));
  ASSERT_TRUE(buffer.mark(step_mark(3)));
  const auto records = take(buffer);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].ticks, 1u);
  EXPECT_EQ(records[2].kind, RecordKind::kStep);
  EXPECT_EQ(buffer.consumed(), 3u);
  EXPECT_EQ(buffer.committed(), 3u);
  EXPECT_TRUE(take(buffer).empty());
}

TEST(ThreadBuffer, GoesOverManyChunksAndGivesThemBack) {
  ChunkPool pool(3);
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 700; ++i) {
      ASSERT_TRUE(buffer.begin(op_begin(written, written)));
      ++written;
      buffer.end(op_end(written, written));
      ++written;
    }
    EXPECT_EQ(buffer.committed(), written);
    for (const Record& record : take(buffer)) ASSERT_EQ(record.value, read++);
  }
  EXPECT_EQ(read, written);
  EXPECT_EQ(buffer.dropped(), 0u);
  EXPECT_LE(pool.allocated(), 3u);
}

TEST(ThreadBuffer, IsReadPieceByPiece) {
  ChunkPool pool(8);
  ThreadBuffer buffer(pool, 1, 1, "");
  for (std::uint64_t i = 0; i < 5'000; ++i) ASSERT_TRUE(buffer.mark(step_mark(i, i)));
  std::mt19937 random(3);
  std::uint64_t next = 0;
  while (next < 5'000) {
    std::vector<std::span<const Record>> spans;
    buffer.unread(spans);
    std::uint64_t expected = next;
    for (const auto span : spans) {
      for (const Record& record : span) ASSERT_EQ(record.value, expected++);
    }
    ASSERT_EQ(expected, 5'000u);
    const std::uint64_t count = std::min<std::uint64_t>(random() % 900, 5'000 - next);
    buffer.consume(count);
    next += count;
    ASSERT_EQ(buffer.consumed(), next);
    ASSERT_EQ(buffer.committed(), 5'000u);
  }
  EXPECT_TRUE(take(buffer).empty());
}

// ---- Loss ----

TEST(ThreadBuffer, HasRoomForTheEndOfEveryBeginItTook) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t begun = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {  // nested, far deeper than there is room
    if (buffer.begin(op_begin(i))) {
      ++begun;
    } else {
      ++refused;
    }
  }
  ASSERT_GT(refused, 0u);
  for (std::uint64_t i = 0; i < begun; ++i) buffer.end(op_end(i));
  EXPECT_EQ(buffer.dropped(), 2 * refused);

  const Tally read = tally(take(buffer));
  EXPECT_EQ(read.begins, begun);
  EXPECT_EQ(read.ends, begun);
  EXPECT_TRUE(read.nested);
}

TEST(ThreadBuffer, RefusesWhatIsNestedDeeperThanAChunk) {
  ChunkPool pool(64);  // there is memory, but open ends must fit into one chunk
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t begun = 0;
  while (begun < 10'000 && buffer.begin(op_begin(begun))) ++begun;
  EXPECT_GT(begun, Chunk::kCapacity / 2);
  EXPECT_LT(begun, 2 * Chunk::kCapacity);
  EXPECT_LT(pool.allocated(), 64u);
  for (std::uint64_t i = 0; i < begun; ++i) buffer.end(op_end(i));
  EXPECT_TRUE(buffer.begin(op_begin(1)));  // and goes on
  buffer.end(op_end(2));
  const Tally read = tally(take(buffer));
  EXPECT_EQ(read.begins, begun + 1);
  EXPECT_EQ(read.open, 0);
  EXPECT_EQ(read.gap_total, buffer.dropped());
}

TEST(ThreadBuffer, TakesAFewMarksWhenItTakesNothingElse) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  while (buffer.begin(op_begin(0))) buffer.end(op_end(0));
  int marks = 0;
  while (buffer.mark(step_mark(0))) ++marks;
  EXPECT_GE(marks, 8);
  EXPECT_EQ(buffer.dropped(), 2u + 1u);
}

TEST(ThreadBuffer, MarksThePlaceAndSizeOfAGap) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t ticks = 0;
  while (buffer.begin(op_begin(ticks))) buffer.end(op_end(ticks++));
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(buffer.begin(op_begin(ticks)));
  EXPECT_EQ(buffer.dropped(), 10u);
  const Tally before = tally(take(buffer));  // room again
  EXPECT_EQ(before.gaps, 0u);

  ASSERT_TRUE(buffer.begin(op_begin(5'000)));
  buffer.end(op_end(5'001));
  const auto records = take(buffer);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, RecordKind::kGap);
  EXPECT_EQ(records[0].value, 10u);
  // Not later than what follows it: readers rely on a lane's records being in order of time.
  EXPECT_EQ(records[0].ticks, 5'000u);
  EXPECT_EQ(records[1].kind, RecordKind::kOpBegin);
  EXPECT_EQ(records[2].kind, RecordKind::kOpEnd);
}

TEST(ThreadBuffer, MarksAGapBeforeTheStepThatItIsIn) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t ticks = 0;
  while (buffer.begin(op_begin(ticks))) buffer.end(op_end(ticks++));
  // No memory yet, but a step ends: what was lost was lost in that step.
  ASSERT_TRUE(buffer.mark(step_mark(9'000, 1)));
  const auto records = take(buffer);
  ASSERT_GE(records.size(), 2u);
  EXPECT_EQ(records[records.size() - 2].kind, RecordKind::kGap);
  EXPECT_EQ(records[records.size() - 2].value, 2u);
  EXPECT_EQ(records[records.size() - 1].kind, RecordKind::kStep);
}

TEST(ThreadBuffer, GoesOnWhereAForgottenEndMadeRoom) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t begun = 0;
  while (buffer.begin(op_begin(begun))) ++begun;
  for (std::uint64_t i = 0; i < begun; ++i) buffer.forget_end();
  ASSERT_TRUE(buffer.begin(op_begin(7'000)));
  buffer.end(op_end(7'001));
  const auto records = take(buffer);
  // The gap is before what was taken after it.
  ASSERT_GE(records.size(), 3u);
  EXPECT_EQ(records[records.size() - 3].kind, RecordKind::kGap);
  EXPECT_EQ(tally(records).gap_total, buffer.dropped());
}

// Random nesting against a reader that comes by at random: all that was tried is accounted for.
TEST(ThreadBuffer, AccountsForEveryRecord) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    ChunkPool pool(2 + seed % 3);
    ThreadBuffer buffer(pool, 1, 1, "");
    Tally read;
    std::vector<bool> open;  // was its begin taken?
    std::uint64_t emitted = 0;
    std::uint64_t ticks = 0;
    for (int i = 0; i < 60'000; ++i) {
      ++ticks;
      const auto choice = static_cast<unsigned>(random() % 100);
      if (choice < 49 && open.size() < 100) {
        open.push_back(buffer.begin(op_begin(ticks)));
        emitted += 2;
      } else if (choice < 98) {
        if (open.empty()) continue;
        if (open.back()) buffer.end(op_end(ticks));
        open.pop_back();
      } else {
        static_cast<void>(buffer.mark(step_mark(ticks)));
        ++emitted;
      }
      if (random() % 20'000 == 0) read.add(take(buffer));
    }
    for (; !open.empty(); open.pop_back()) {
      if (open.back()) buffer.end(op_end(ticks));
    }
    read.add(take(buffer));
    ASSERT_GT(buffer.dropped(), 0u) << "seed " << seed;
    ASSERT_EQ(read.records + buffer.dropped(), emitted) << "seed " << seed;
    ASSERT_EQ(read.begins, read.ends);
    ASSERT_TRUE(read.nested);

    // With room again the last gap is marked too, and the marks tell of all that was lost.
    ASSERT_TRUE(buffer.mark(step_mark(ticks)));
    read.add(take(buffer));
    ASSERT_EQ(read.gap_total, buffer.dropped()) << "seed " << seed;
  }
}

// The same with the reader on another thread.
TEST(ThreadBuffer, LosesNothingUnseenWithAReaderBeside) {
  ChunkPool pool(2);
  ThreadBuffer buffer(pool, 1, 1, "");
  constexpr std::uint64_t kPairs = 200'000;
  std::atomic<bool> done{false};
  std::uint64_t refused = 0;
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kPairs; ++i) {
      const bool outer = buffer.begin(op_begin(2 * i, i));
      const bool inner = buffer.begin(op_begin(2 * i, i));
      if (inner) buffer.end(op_end(2 * i + 1, i));
      if (outer) buffer.end(op_end(2 * i + 1, i));
      refused += (outer ? 0 : 1) + (inner ? 0 : 1);
    }
    done.store(true, std::memory_order_release);
  });
  Tally read;
  std::uint64_t last = 0;
  bool ordered = true;
  for (bool last_round = false; !last_round;) {
    last_round = done.load(std::memory_order_acquire);
    const auto records = take(buffer);
    read.add(records);
    for (const Record& record : records) {
      if (record.kind == RecordKind::kGap) continue;
      ordered = ordered && record.value >= last;
      last = record.value;
    }
  }
  writer.join();
  EXPECT_EQ(buffer.dropped(), 2 * refused);
  EXPECT_EQ(read.records + buffer.dropped(), 4 * kPairs);
  EXPECT_LE(read.gap_total, buffer.dropped());
  EXPECT_TRUE(read.nested);
  EXPECT_EQ(read.open, 0);
  EXPECT_TRUE(ordered);
}

// Others hold all chunks: it goes on in the one that it has, as soon as that is read.
TEST(ThreadBuffer, BeginsItsOnlyChunkAgainOnceAllIsRead) {
  ChunkPool pool(2);
  Chunk* others = pool.take();
  ThreadBuffer buffer(pool, 1, 1, "");
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int round = 0; round < 5; ++round) {
    while (buffer.begin(op_begin(written))) {
      buffer.end(op_end(written + 1));
      written += 2;
      if (written % 700 != 0) continue;  // the reader follows in uneven steps
      for (const Record& record : take(buffer)) {
        if (record.kind == RecordKind::kGap) continue;
        EXPECT_EQ(record.ticks, read++);
      }
    }
    EXPECT_EQ(buffer.committed() - buffer.consumed(), written - read);
    for (const Record& record : take(buffer)) {
      if (record.kind == RecordKind::kGap) continue;
      EXPECT_EQ(record.ticks, read++);
    }
    EXPECT_EQ(read, written);
  }
  EXPECT_GT(written, 4u * (Chunk::kCapacity - 64));
  EXPECT_EQ(buffer.dropped(), 10u);
  pool.give_back(others);
}

TEST(ThreadBuffer, GivesItsChunksBackAtTheEnd) {
  ChunkPool pool(4);
  {
    ThreadBuffer buffer(pool, 1, 1, "");
    constexpr std::uint32_t kRecords = 2 * Chunk::kCapacity + 100;
    for (std::uint32_t i = 0; i < kRecords; ++i) static_cast<void>(buffer.mark(step_mark(0)));
    EXPECT_EQ(pool.allocated(), 3u);
  }
  pool.trim();
  EXPECT_EQ(pool.allocated(), 0u);
}

}  // namespace
}  // namespace layertrace
