// The marks of layers' backward, as nodes come.
#include "capture/backward_run.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "capture/fakes.h"

namespace layertrace {
namespace {

constexpr std::uint32_t kOutermost = 0;

LayerChain calls_around(std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> calls) {
  LayerChain made;
  for (const auto& [layer, number] : calls) made.add({LayerId{layer}, number});
  return made;
}

class BackwardRunTest : public ::testing::Test {
 protected:
  test::MarkLog marks_;
  BackwardRun run_{&marks_};

  // What a node inside these calls does to the marks.
  std::string node(std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> calls,
                   std::uint32_t base = kOutermost) {
    run_.go_on(calls_around(calls), base);
    return marks_.take();
  }
  std::string parameter_node(const std::vector<LayerId>& ancestors,
                             std::uint32_t base = kOutermost) {
    run_.go_on_in_layer(ancestors, base);
    return marks_.take();
  }
  void TearDown() override {
    run_.close(0);
    EXPECT_TRUE(marks_.open.empty());
    EXPECT_EQ(marks_.too_many, 0);
    EXPECT_EQ(run_.depth(), 0u);
  }
};

TEST_F(BackwardRunTest, OpensTheLayersAroundANode) {
  EXPECT_EQ(run_.top(), kNoLayer);
  EXPECT_EQ(node({{1, 10}, {2, 11}}), "b1( b2(");
  EXPECT_EQ(run_.depth(), 2u);
  EXPECT_EQ(run_.top(), LayerId{2});
  for (const auto& mark : marks_.open) EXPECT_EQ(mark.frame, 0u);  // a backward has no record
}

TEST_F(BackwardRunTest, GoesOnWithWhatNodesShare) {
  node({{1, 10}, {2, 11}});
  EXPECT_EQ(node({{1, 10}, {2, 11}}), "");
  EXPECT_EQ(node({{1, 10}, {3, 12}}), ") b3(");
  EXPECT_EQ(node({{1, 10}}), ")");  // the layer around them made it itself
  EXPECT_EQ(node({{1, 10}, {2, 11}, {4, 13}}), "b2( b4(");
  EXPECT_EQ(node({{5, 20}}), ") ) ) b5(");
}

// A layer that is called twice has two runs, in the other order.
TEST_F(BackwardRunTest, TellsCallsOfOneLayerApart) {
  node({{1, 10}, {2, 12}});
  EXPECT_EQ(node({{1, 10}, {2, 11}}), ") b2(");
  EXPECT_EQ(node({{1, 9}, {2, 11}}), ") ) b1( b2(");
}

TEST_F(BackwardRunTest, StaysInTheLayerOfAParameter) {
  node({{1, 10}, {2, 11}});
  EXPECT_EQ(parameter_node({LayerId{1}, LayerId{2}}), "");
  EXPECT_EQ(parameter_node({LayerId{1}, LayerId{3}}), ") b3(");  // beside it, in what is around
  EXPECT_EQ(parameter_node({LayerId{1}}), ")");
  EXPECT_EQ(parameter_node({LayerId{7}, LayerId{8}}), ") b8(");  // of another model
}

// Only a node of a call tells which call it is.
TEST_F(BackwardRunTest, TakesARunThatAParameterOpenedForItsCalls) {
  EXPECT_EQ(parameter_node({LayerId{1}}), "b1(");
  EXPECT_EQ(node({{1, 10}, {2, 11}}), "b2(");
  EXPECT_EQ(node({{1, 10}}), ")");
  EXPECT_EQ(node({{1, 12}}), ") b1(");  // by now it is known to be another
}

TEST_F(BackwardRunTest, StaysInTheRunOfALayerWhoseCallIsNotKnown) {
  node({{1, 10}});
  EXPECT_EQ(node({{1, 0}}), "");  // made by a node of the layer
  EXPECT_EQ(node({{1, 10}}), "");
  EXPECT_EQ(node({{2, 0}}), ") b2(");
}

// A node that runs nodes: theirs open and close above its own.
TEST_F(BackwardRunTest, LeavesWhatIsBelowTheBaseAlone) {
  node({{1, 10}, {2, 11}});
  const std::uint32_t base = run_.depth();
  EXPECT_EQ(node({{1, 10}, {2, 11}}, base), "b1( b2(");  // the same layers: runs of their own
  EXPECT_EQ(node({{3, 12}}, base), ") ) b3(");
  EXPECT_EQ(parameter_node({LayerId{1}, LayerId{2}}, base), ") b2(");
  EXPECT_EQ(parameter_node({LayerId{1}, LayerId{2}}, base), "");
  run_.close(base);
  EXPECT_EQ(marks_.take(), ")");
  EXPECT_EQ(node({{1, 10}, {2, 11}}), "");  // the outer run goes on
}

TEST_F(BackwardRunTest, ClosesDownToADepth) {
  node({{1, 10}, {2, 11}, {3, 12}});
  run_.close(3);
  EXPECT_EQ(marks_.take(), "");
  run_.close(1);
  EXPECT_EQ(marks_.take(), ") )");
  EXPECT_EQ(run_.top(), LayerId{1});
  run_.close(5);
  EXPECT_EQ(marks_.take(), "");
}

TEST_F(BackwardRunTest, OpensNoMoreThanThereIsRoomFor) {
  LayerChain deep;
  for (std::uint32_t i = 0; i < LayerChain::kMost; ++i) deep.add({LayerId{i}, i + 1});
  for (int i = 0; i < 4; ++i) run_.go_on(deep, run_.depth());
  EXPECT_EQ(run_.depth(), 2 * LayerChain::kMost);
  EXPECT_EQ(marks_.open.size(), 2 * LayerChain::kMost);
}

}  // namespace
}  // namespace layertrace
