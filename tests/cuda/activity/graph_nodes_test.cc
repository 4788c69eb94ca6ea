#include "activity/graph_nodes.h"

#include <gtest/gtest.h>

#include <thread>

namespace layertrace::cuda {
namespace {

TEST(GraphNodes, HandsOverEachNodeOnce) {
  GraphNodes nodes;
  nodes.created(5, 100);
  nodes.created(6, 101);
  const auto fresh = nodes.take_new();
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0].node, 5u);
  EXPECT_EQ(fresh[0].frame, 100u);
  EXPECT_EQ(fresh[1].node, 6u);
  EXPECT_EQ(fresh[1].frame, 101u);
  EXPECT_TRUE(nodes.take_new().empty());
}

TEST(GraphNodes, GivesACopyTheFrameOfItsOriginal) {
  GraphNodes nodes;
  nodes.created(5, 100);
  static_cast<void>(nodes.take_new());
  nodes.cloned(50, 5);
  nodes.cloned(500, 50);  // a copy of the copy
  const auto fresh = nodes.take_new();
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0].node, 50u);
  EXPECT_EQ(fresh[0].frame, 100u);
  EXPECT_EQ(fresh[1].node, 500u);
  EXPECT_EQ(fresh[1].frame, 100u);
}

TEST(GraphNodes, KnowsNothingOfCopiesOfNodesItHasNotSeen) {
  GraphNodes nodes;
  nodes.cloned(50, 5);
  EXPECT_TRUE(nodes.take_new().empty());
}

TEST(GraphNodes, IsFilledWhileItIsRead) {
  constexpr std::uint64_t kNodes = 5'000;
  GraphNodes nodes;
  std::thread capturing([&] {
    for (std::uint64_t i = 0; i < kNodes; ++i) nodes.created(i, i + 1);
  });
  std::uint64_t next = 0;
  while (next != kNodes) {
    for (const DeviceGraphNode& node : nodes.take_new()) {
      ASSERT_EQ(node.node, next);
      ASSERT_EQ(node.frame, ++next);
    }
  }
  capturing.join();
}

}  // namespace
}  // namespace layertrace::cuda
