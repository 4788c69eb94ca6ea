// Memory for records: bounded, and handed out without a lock.
#include "record/chunk_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace layertrace {
namespace {

TEST(ChunkPool, HandsOutNoMoreThanItsBound) {
  ChunkPool pool(3);
  std::set<Chunk*> chunks;
  for (int i = 0; i < 3; ++i) {
    Chunk* chunk = pool.take();
    ASSERT_NE(chunk, nullptr);
    chunks.insert(chunk);
  }
  EXPECT_EQ(chunks.size(), 3u);
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.allocated(), 3u);  // what was refused does not count

  Chunk* one = *chunks.begin();
  pool.give_back(one);
  EXPECT_EQ(pool.take(), one);
  EXPECT_EQ(pool.take(), nullptr);
  for (Chunk* chunk : chunks) pool.give_back(chunk);
}

TEST(ChunkPool, HasAtLeastTwo) {
  ChunkPool pool(0);
  Chunk* first = pool.take();
  Chunk* second = pool.take();
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  pool.give_back(first);
  pool.give_back(second);
}

TEST(ChunkPool, GivesCleanChunks) {
  ChunkPool pool(2);
  Chunk* chunk = pool.take();
  Chunk other;
  chunk->committed.store(7);
  chunk->next.store(&other);
  pool.give_back(chunk);
  chunk = pool.take();
  EXPECT_EQ(chunk->committed.load(), 0u);
  EXPECT_EQ(chunk->next.load(), nullptr);
  pool.give_back(chunk);
}

TEST(ChunkPool, StocksAndTrims) {
  ChunkPool pool(3);
  pool.stock(2);
  EXPECT_EQ(pool.allocated(), 2u);
  pool.stock(2);
  EXPECT_EQ(pool.allocated(), 2u);  // there are two already
  pool.stock(10);
  EXPECT_EQ(pool.allocated(), 3u);
  Chunk* used = pool.take();
  pool.trim();
  EXPECT_EQ(pool.allocated(), 1u);
  pool.give_back(used);
  pool.trim();
  EXPECT_EQ(pool.allocated(), 0u);
  Chunk* again = pool.take();  // trimming is not the end
  EXPECT_NE(again, nullptr);
  pool.give_back(again);
}

TEST(ChunkPool, GoesRoundManyTimes) {
  ChunkPool pool(5);  // not a power of two, as its queue is
  std::vector<Chunk*> held;
  for (int i = 0; i < 10'000; ++i) {
    const int wanted = i * 7 % 6;
    while (static_cast<int>(held.size()) < wanted) {
      Chunk* chunk = pool.take();
      if (chunk == nullptr) break;
      held.push_back(chunk);
    }
    while (static_cast<int>(held.size()) > wanted) {
      pool.give_back(held.back());
      held.pop_back();
    }
    ASSERT_LE(pool.allocated(), 5u);
  }
  for (Chunk* chunk : held) pool.give_back(chunk);
}

// Every chunk has one owner at a time, whoever takes, gives back, stocks or trims meanwhile.
TEST(ChunkPool, IsSharedByThreads) {
  constexpr int kThreads = 4;
  constexpr std::size_t kChunks = 6;
  ChunkPool pool(kChunks);
  std::atomic<bool> shared_twice{false};
  std::atomic<std::size_t> in_use{0};
  std::atomic<std::size_t> most{0};
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5'000; ++i) {
        Chunk* chunk = pool.take();
        if (chunk == nullptr) continue;
        const std::size_t now = in_use.fetch_add(1) + 1;
        std::size_t before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        chunk->records[0].value =
            static_cast<std::uint64_t>(t) << 32 | static_cast<std::uint64_t>(i);
        const std::uint64_t written = chunk->records[0].value;
        if (i % 16 == 0) std::this_thread::yield();
        if (chunk->records[0].value != written) shared_twice = true;
        in_use.fetch_sub(1);
        pool.give_back(chunk);
      }
      running.fetch_sub(1);
    });
  }
  while (running.load() != 0) {
    pool.stock(2);
    pool.trim();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared_twice);
  EXPECT_LE(most.load(), kChunks);
  pool.trim();
  EXPECT_EQ(pool.allocated(), 0u);
}

}  // namespace
}  // namespace layertrace
