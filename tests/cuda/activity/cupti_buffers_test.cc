#include "activity/cupti_buffers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace layertrace::cuda {
namespace {

using std::chrono::milliseconds;

class CuptiBuffersTest : public ::testing::Test {
 protected:
  CuptiBuffers buffers_;

  void SetUp() override { buffers_.want(true); }
  std::uint8_t* take() { return buffers_.take().data; }
  // As CUPTI does: a record begins with its kind.
  static void write_in(std::uint8_t* buffer) { *buffer = 1; }
  // Under AddressSanitizer, what was not freed is found.
  void TearDown() override { buffers_.want(false); }
};

TEST_F(CuptiBuffersTest, GivesMemoryThatIsAllUsable) {
  std::uint8_t* buffer = take();
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 8, 0u);
  std::memset(buffer, 1, CuptiBuffers::kBytes);
  buffers_.give_back(buffer, 0);
}

TEST_F(CuptiBuffersTest, HandsOverWhatWasFilledInItsOrder) {
  std::uint8_t* first = take();
  std::uint8_t* second = take();
  std::uint8_t* empty = take();
  buffers_.give_back(second, 20);
  buffers_.give_back(empty, 0);
  buffers_.give_back(first, 10);
  const auto filled = buffers_.take_filled();
  ASSERT_EQ(filled.size(), 2u);
  EXPECT_EQ(filled[0].data, second);
  EXPECT_EQ(filled[0].bytes, 20u);
  EXPECT_EQ(filled[1].data, first);
  EXPECT_EQ(filled[1].bytes, 10u);
  EXPECT_TRUE(buffers_.take_filled().empty());
  EXPECT_EQ(take(), empty);  // used again before new memory is taken
  buffers_.give_back(empty, 0);
  buffers_.reuse(filled);
}

TEST_F(CuptiBuffersTest, MakesSoManyAndCountsWhatItRefuses) {
  std::vector<std::uint8_t*> taken;
  for (std::size_t i = 0; i < CuptiBuffers::kMost; ++i) {
    taken.push_back(take());
    ASSERT_NE(taken.back(), nullptr);
  }
  EXPECT_EQ(buffers_.refused(), 0u);
  EXPECT_EQ(take(), nullptr);
  EXPECT_EQ(take(), nullptr);
  EXPECT_EQ(buffers_.refused(), 2u);
  buffers_.give_back(taken.back(), 8);
  EXPECT_EQ(take(), nullptr);  // not before it was read
  buffers_.reuse(buffers_.take_filled());
  EXPECT_EQ(take(), taken.back());
  for (std::uint8_t* buffer : taken) buffers_.give_back(buffer, 0);
}

// A CUPTI from before 12.9 that is given nothing crashes.
TEST_F(CuptiBuffersTest, GivesWhatIsNotReadToACuptiThatWantsABufferAlways) {
  buffers_.want(true, /*always=*/true);
  std::vector<std::uint8_t*> taken;
  for (std::size_t i = 0; i < CuptiBuffers::kMost; ++i) taken.push_back(take());
  const CuptiBuffers::Lent spare = buffers_.take();
  ASSERT_NE(spare.data, nullptr);
  EXPECT_GE(spare.bytes, 4096u);
  EXPECT_EQ(buffers_.refused(), 1u);
  std::memset(spare.data, 1, spare.bytes);
  buffers_.give_back(spare.data, spare.bytes);
  EXPECT_TRUE(buffers_.take_filled().empty());
  for (std::uint8_t* buffer : taken) buffers_.give_back(buffer, 0);
}

// CUPTI may hand over a buffer without memory, when it found none.
TEST_F(CuptiBuffersTest, CountsABufferWithoutMemoryAsLost) {
  buffers_.give_back(nullptr, 100);
  buffers_.give_back(nullptr, 0);
  EXPECT_EQ(buffers_.lost(), 2u);
  EXPECT_TRUE(buffers_.take_filled().empty());
}

TEST_F(CuptiBuffersTest, FreesWhatNobodyWants) {
  std::uint8_t* filled = take();
  std::uint8_t* empty = take();
  std::uint8_t* late = take();
  buffers_.give_back(filled, 10);
  buffers_.give_back(empty, 0);
  buffers_.want(false);
  EXPECT_TRUE(buffers_.take_filled().empty());
  buffers_.give_back(late, 10);  // CUPTI had it when the session ended
  EXPECT_TRUE(buffers_.take_filled().empty());
  EXPECT_EQ(buffers_.wait_for_all(milliseconds(0)), 0u);
  // All are free to be made again.
  buffers_.want(true);
  std::vector<std::uint8_t*> taken;
  for (std::size_t i = 0; i < CuptiBuffers::kMost; ++i) taken.push_back(take());
  EXPECT_NE(taken.back(), nullptr);
  for (std::uint8_t* buffer : taken) buffers_.give_back(buffer, 0);
}

// A client that was there before has left CUPTI a buffer of its own.
TEST_F(CuptiBuffersTest, CopiesWhatIsNotOursAndLeavesItToItsOwner) {
  std::uint8_t* const ours = take();
  write_in(ours);
  auto theirs = std::make_unique<std::vector<std::uint8_t>>(16, 7);
  std::uint8_t* const memory = theirs->data();  // not to be freed by us, nor given to CUPTI
  buffers_.give_back(memory, 16);
  EXPECT_EQ(buffers_.wait_for_all(milliseconds(0)), 1u);
  buffers_.give_back(memory, 0);  // without records
  theirs.reset();                 // they may do so
  const auto filled = buffers_.take_filled();
  ASSERT_EQ(filled.size(), 1u);
  EXPECT_EQ(filled[0].bytes, 16u);
  EXPECT_EQ(std::vector(filled[0].data, filled[0].data + 16), std::vector<std::uint8_t>(16, 7));
  buffers_.reuse(filled);
  std::uint8_t* const second = take();
  std::memset(second, 1, CuptiBuffers::kBytes);  // one of a buffer's size, not the copy
  std::vector<std::uint8_t> others(16, 7);
  buffers_.give_back(others.data(), 16);
  buffers_.want(false);                   // unread
  buffers_.give_back(others.data(), 16);  // nobody listens
  for (std::uint8_t* buffer : {ours, second}) buffers_.give_back(buffer, 0);
}

TEST_F(CuptiBuffersTest, WaitsForWhatCuptiHolds) {
  std::uint8_t* first = take();
  std::uint8_t* second = take();
  std::uint8_t* empty = take();
  EXPECT_EQ(buffers_.wait_for_all(std::chrono::minutes(1)), 0u);  // it may keep those for later
  write_in(first);
  EXPECT_EQ(buffers_.wait_for_all(milliseconds(1)), 1u);
  write_in(second);
  EXPECT_EQ(buffers_.wait_for_all(milliseconds(1)), 1u);  // the first was told
  EXPECT_EQ(buffers_.wait_for_all(std::chrono::minutes(1)), 0u);
  for (std::uint8_t* buffer : {first, second, empty}) buffers_.give_back(buffer, 0);
  second = take();
  write_in(second);
  std::thread cupti([&] { buffers_.give_back(second, 10); });
  EXPECT_EQ(buffers_.wait_for_all(std::chrono::minutes(1)), 0u);
  cupti.join();
  const auto filled = buffers_.take_filled();
  EXPECT_EQ(filled.size(), 1u);
  buffers_.reuse(filled);
}

}  // namespace
}  // namespace layertrace::cuda
