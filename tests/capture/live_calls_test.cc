// Which call made a node, as it is known while the program runs.
#include "capture/live_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace layertrace {
namespace {

constexpr LayerId kRoot{1};
constexpr LayerId kBlock{2};
constexpr LayerId kConv{3};

class LiveCallsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<LiveCalls> calls_ = std::make_unique<LiveCalls>();

  // "1 2": the layers of the calls around the node, outermost first; "" for none.
  std::string find(std::uint64_t sequence) const {
    LayerChain chain;
    std::string text;
    if (!calls_->find(sequence, chain)) return text;
    for (std::size_t i = 0; i < chain.count; ++i)
      text += (i == 0 ? "" : " ") + std::to_string(index(chain.calls[i].layer));
    return text;
  }
  LayerChain chain_of(std::uint64_t sequence) const {
    LayerChain chain;
    EXPECT_TRUE(calls_->find(sequence, chain));
    return chain;
  }
};

TEST_F(LiveCallsTest, KnowsNothingAtFirst) {
  EXPECT_EQ(find(0), "");
  EXPECT_EQ(find(17), "");
}

TEST_F(LiveCallsTest, FindsTheInnermostCallAndThoseAroundIt) {
  const auto root = calls_->open(10, kRoot, 0);
  const auto block = calls_->open(12, kBlock, root);
  const auto conv = calls_->open(13, kConv, block);
  calls_->close(conv, 15);
  calls_->close(block, 16);
  calls_->close(root, 18);
  EXPECT_EQ(find(9), "");  // before all
  EXPECT_EQ(find(10), "1");
  EXPECT_EQ(find(11), "1");
  EXPECT_EQ(find(12), "1 2");
  EXPECT_EQ(find(13), "1 2 3");
  EXPECT_EQ(find(14), "1 2 3");
  EXPECT_EQ(find(15), "1 2");
  EXPECT_EQ(find(16), "1");
  EXPECT_EQ(find(17), "1");
  EXPECT_EQ(find(18), "");  // the next node, made by nobody
}

TEST_F(LiveCallsTest, GivesEachCallANumberOfItsOwn) {
  const auto first = calls_->open(0, kConv, 0);
  calls_->close(first, 2);
  const auto second = calls_->open(2, kConv, 0);
  calls_->close(second, 4);
  EXPECT_NE(first, second);
  EXPECT_EQ(chain_of(1).calls[0].number, first);
  EXPECT_EQ(chain_of(2).calls[0].number, second);
}

TEST_F(LiveCallsTest, KnowsCallsThatAreStillOpen) {
  const auto root = calls_->open(0, kRoot, 0);
  calls_->open(3, kBlock, root);
  EXPECT_EQ(find(2), "1");
  EXPECT_EQ(find(3), "1 2");
  EXPECT_EQ(find(1'000), "1 2");
}

TEST_F(LiveCallsTest, KnowsWhatWasMadeBetweenCalls) {
  const auto first = calls_->open(0, kBlock, 0);
  calls_->close(first, 2);
  const auto second = calls_->open(5, kConv, 0);
  calls_->close(second, 7);
  EXPECT_EQ(find(1), "2");
  EXPECT_EQ(find(2), "");
  EXPECT_EQ(find(4), "");
  EXPECT_EQ(find(5), "3");
}

// A call may make no node: the one that begins at the same number has it.
TEST_F(LiveCallsTest, PassesOverCallsThatMadeNothing) {
  const auto root = calls_->open(5, kRoot, 0);
  const auto empty = calls_->open(5, kBlock, root);
  calls_->close(empty, 5);
  EXPECT_EQ(find(5), "1");
  const auto conv = calls_->open(5, kConv, root);
  calls_->close(conv, 6);
  const auto last = calls_->open(6, kBlock, root);
  calls_->close(last, 6);
  calls_->close(root, 6);
  EXPECT_EQ(find(5), "1 3");
  EXPECT_EQ(find(6), "");
}

TEST_F(LiveCallsTest, KnowsAsManyCallsAsFitIntoAChain) {
  std::uint64_t call = 0;
  for (std::uint32_t i = 0; i < LayerChain::kMost + 10; ++i)
    call = calls_->open(i, LayerId{i}, call);
  const LayerChain chain = chain_of(1'000);
  EXPECT_EQ(chain.count, LayerChain::kMost);
  EXPECT_EQ(chain.calls[chain.count - 1].layer, LayerId{LayerChain::kMost + 9});  // the innermost
}

// ---- More calls than are kept ----

TEST_F(LiveCallsTest, ForgetsTheOldestCalls) {
  constexpr std::uint64_t kMore = 100;
  for (std::uint64_t i = 0; i < LiveCalls::kCalls + kMore; ++i) {
    const auto call = calls_->open(2 * i, LayerId{static_cast<std::uint32_t>(i)}, 0);
    calls_->close(call, 2 * i + 1);
  }
  for (std::uint64_t i = 0; i < LiveCalls::kCalls + kMore; ++i) {
    ASSERT_EQ(find(2 * i), i < kMore ? "" : std::to_string(i));
    ASSERT_EQ(find(2 * i + 1), "");
  }
}

// One call around more than are kept, as of a net that is unrolled in time.
class LongCallTest : public LiveCallsTest {
 protected:
  void SetUp() override {
    root_ = calls_->open(0, kRoot, 0);
    for (std::uint64_t i = 1; i <= LiveCalls::kCalls; ++i) {
      const auto call = calls_->open(3 * i, kConv, root_);
      calls_->close(call, 3 * i + 1);
    }
  }
  std::uint64_t root_ = 0;
  static constexpr std::uint64_t kEnd = 3 * LiveCalls::kCalls + 3;
};

TEST_F(LongCallTest, MissesWhatWasAroundTheOthersAndIsForgotten) {
  EXPECT_EQ(find(3), "3");
  EXPECT_EQ(find(4), "");
  EXPECT_EQ(find(kEnd - 3), "3");
  EXPECT_EQ(find(kEnd - 1), "");
}

// Its place is another's by now, which must not end where it does.
TEST_F(LongCallTest, LeavesOthersAloneWhenItEnds) {
  calls_->close(root_, kEnd);
  EXPECT_EQ(find(kEnd - 3), "3");
  EXPECT_EQ(find(kEnd - 2), "");
  EXPECT_EQ(find(kEnd - 1), "");
}

// ---- Nodes that made nodes ----

TEST_F(LiveCallsTest, KnowsNodesThatMadeNodes) {
  const auto root = calls_->open(0, kRoot, 0);
  calls_->close(root, 5);
  calls_->add_node(5, 8, kBlock);
  calls_->add_node(8, 9, kConv);
  EXPECT_EQ(find(4), "1");
  EXPECT_EQ(find(5), "2");
  EXPECT_EQ(find(7), "2");
  EXPECT_EQ(find(8), "3");
  EXPECT_EQ(find(9), "");
  EXPECT_EQ(chain_of(6).calls[0].number, 0u);  // of no known call
}

// A backward inside a node: what the inner node made is not the outer one's. The inner ends first.
TEST_F(LiveCallsTest, PrefersTheInnerOfTwoNodes) {
  calls_->add_node(12, 14, kConv);
  calls_->add_node(10, 20, kBlock);
  EXPECT_EQ(find(11), "2");
  EXPECT_EQ(find(12), "3");
  EXPECT_EQ(find(13), "3");
  EXPECT_EQ(find(14), "2");
}

// A layer's forward is run again inside a node (checkpointing): the call is the nearer one.
TEST_F(LiveCallsTest, PrefersACallInsideTheNode) {
  const auto call = calls_->open(10, kConv, 0);
  calls_->close(call, 12);
  calls_->add_node(10, 13, kBlock);
  EXPECT_EQ(find(10), "3");
  EXPECT_EQ(find(11), "3");
  EXPECT_EQ(find(12), "2");
}

// And a node inside a call (a backward in a forward) is nearer than the call, whosever it is.
TEST_F(LiveCallsTest, PrefersANodeInsideTheCall) {
  const auto call = calls_->open(10, kConv, 0);
  calls_->add_node(11, 13, kBlock);
  calls_->add_node(14, 15, kNoLayer);
  for (const bool closed : {false, true}) {
    EXPECT_EQ(find(10), "3");
    EXPECT_EQ(find(11), "2");
    EXPECT_EQ(find(13), "3");
    EXPECT_EQ(find(14), "");
    EXPECT_EQ(find(15), "3");
    if (!closed) calls_->close(call, 16);
  }
}

// A call in a node in a call: they are no chain, but what the outer makes afterwards is its own.
TEST_F(LiveCallsTest, EndsTheChainAtANode) {
  const auto outer = calls_->open(10, kRoot, 0);
  const auto inner = calls_->open(11, kConv, outer, /*in_node=*/true);
  calls_->close(inner, 12);
  calls_->add_node(11, 12, kBlock);
  EXPECT_EQ(find(10), "1");
  EXPECT_EQ(find(11), "3");
  EXPECT_EQ(find(12), "1");
}

TEST_F(LiveCallsTest, ForgetsTheOldestNodes) {
  constexpr std::uint64_t kMore = 10;
  for (std::uint64_t i = 0; i < LiveCalls::kNodes + kMore; ++i)
    calls_->add_node(2 * i, 2 * i + 1, LayerId{static_cast<std::uint32_t>(i)});
  for (std::uint64_t i = 0; i < LiveCalls::kNodes + kMore; ++i)
    EXPECT_EQ(find(2 * i), i < kMore ? "" : std::to_string(i));
}

// ---- Two threads ----

// Each step of the writer is a call of layer 2i % 64, in it one of the next layer, both making
// nodes; node 4i is the outer's, 4i + 1 the inner's, 4i + 2 the outer's, 4i + 3 nobody's.
class LiveCallsThreads : public LiveCallsTest {
 protected:
  static LayerId outer_of(std::uint64_t i) {
    return LayerId{static_cast<std::uint32_t>(2 * i) % 64};
  }
  static LayerId inner_of(std::uint64_t i) {
    return LayerId{static_cast<std::uint32_t>(2 * i) % 64 + 1};
  }

  void make_step(std::uint64_t i) {
    const auto outer = calls_->open(4 * i, outer_of(i), 0);
    made_.store(4 * i, std::memory_order_release);
    const auto inner = calls_->open(4 * i + 1, inner_of(i), outer);
    made_.store(4 * i + 1, std::memory_order_release);
    calls_->close(inner, 4 * i + 2);
    made_.store(4 * i + 2, std::memory_order_release);
    calls_->close(outer, 4 * i + 3);
    made_.store(4 * i + 3, std::memory_order_release);
  }

  // Right, or none.
  void check(std::uint64_t sequence) {
    LayerChain chain;
    if (!calls_->find(sequence, chain)) return;
    ++found_;
    const std::uint64_t i = sequence / 4;
    const bool in_inner = sequence % 4 == 1;
    // Of the two only the inner one is known where the other is the first that was forgotten.
    const std::uint64_t newest = 2 * (made_.load(std::memory_order_acquire) / 4) + 4;  // at most
    const bool is_cut = in_inner && chain.count == 1 && chain.calls[0].layer == inner_of(i) &&
                        chain.calls[0].number == 2 * i + 2 &&
                        newest >= 2 * i + 1 + LiveCalls::kCalls;
    const bool right = sequence % 4 != 3 && chain.count == (in_inner ? 2U : 1U) &&
                       chain.calls[0].layer == outer_of(i) && chain.calls[0].number == 2 * i + 1 &&
                       (!in_inner || chain.calls[1].layer == inner_of(i));
    if (!right && !is_cut) ++wrong_;
  }

  std::atomic<std::uint64_t> made_{0};  // the newest node's number
  std::uint64_t found_ = 0;
  std::uint64_t wrong_ = 0;
};

TEST_F(LiveCallsThreads, AnswersRightOrNotAtAllWhileCallsAreMade) {
  constexpr std::uint64_t kSteps = 3 * LiveCalls::kCalls;
  make_step(0);
  std::thread writer([this] {
    for (std::uint64_t i = 1; i < kSteps; ++i) make_step(i);
  });
  std::uint64_t random = 1;
  while (made_.load(std::memory_order_acquire) != 4 * kSteps - 1) {
    const std::uint64_t newest = made_.load(std::memory_order_acquire);
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t back = (random >> 33) % (random >> 63 != 0 ? 8 : 4 * LiveCalls::kCalls);
    check(newest - std::min(newest, back));
  }
  writer.join();
  for (std::uint64_t i = kSteps - LiveCalls::kCalls / 2; i < kSteps; ++i) check(4 * i + 1);
  EXPECT_GE(found_, LiveCalls::kCalls / 2);
  EXPECT_EQ(wrong_, 0u);
}

// Node interval i is [10i, 10i + 5), of layer i % 1000.
TEST_F(LiveCallsThreads, AnswersRightOrNotAtAllWhileNodesAreMade) {
  constexpr std::uint64_t kIntervals = 100'000;
  const auto owner = [](std::uint64_t i) { return LayerId{static_cast<std::uint32_t>(i % 1'000)}; };
  calls_->add_node(0, 5, owner(0));
  std::thread writer([&] {
    for (std::uint64_t i = 1; i < kIntervals; ++i) {
      calls_->add_node(10 * i, 10 * i + 5, owner(i));
      made_.store(i, std::memory_order_release);
    }
  });
  std::uint64_t back = 0;
  for (std::uint64_t newest = 0; newest != kIntervals - 1;) {
    newest = made_.load(std::memory_order_acquire);
    back = (back + 37) % (LiveCalls::kNodes + 20);
    const std::uint64_t i = newest - std::min(newest, back);
    LayerChain chain;
    if (calls_->find(10 * i + 7, chain)) ++wrong_;
    if (!calls_->find(10 * i + 2, chain)) continue;
    ++found_;
    if (chain.count != 1 || chain.calls[0].layer != owner(i)) ++wrong_;
  }
  writer.join();
  EXPECT_GT(found_, 0u);
  EXPECT_EQ(wrong_, 0u);
}

}  // namespace
}  // namespace layertrace
