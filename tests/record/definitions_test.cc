#include "record/definitions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "record/record.h"

namespace layertrace {
namespace {

TEST(Definitions, AreCopiedOnceEach) {
  Definitions definitions;
  std::vector<LayerDef> layers;
  std::vector<ParameterDef> parameters;
  EXPECT_EQ(definitions.add_layer({.path = "", .type = "Net"}), LayerId{0});
  EXPECT_EQ(definitions.add_layer({.path = "a", .parent = LayerId{0}}), LayerId{1});
  definitions.add_parameter({100, LayerId{1}});
  definitions.copy_new(layers, parameters);
  ASSERT_EQ(layers.size(), 2u);
  ASSERT_EQ(parameters.size(), 1u);
  definitions.copy_new(layers, parameters);
  EXPECT_EQ(layers.size(), 2u);
  definitions.add_layer({.path = "b"});
  definitions.copy_new(layers, parameters);
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[1].path, "a");
  EXPECT_EQ(layers[1].parent, LayerId{0});
  EXPECT_EQ(layers[2].path, "b");
  EXPECT_EQ(parameters[0].address, 100u);
}

TEST(Definitions, GiveATiedWeightToItsFirstOwner) {
  Definitions definitions;
  definitions.add_layer({.path = "a"});
  definitions.add_layer({.path = "b"});
  definitions.add_parameter({.address = 100, .owner = LayerId{0}, .name = "weight"});
  definitions.add_parameter({.address = 100, .owner = LayerId{1}, .name = "tied"});
  EXPECT_EQ(definitions.try_owner_of(100), LayerId{0});
  std::vector<LayerDef> layers;
  std::vector<ParameterDef> parameters;
  definitions.copy_new(layers, parameters);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[1].name, "tied");
  EXPECT_EQ(parameters[1].owner, LayerId{1});
}

TEST(NameTable, GivesEachNameOneId) {
  NameTable& names = NameTable::instance();
  const NameId one = names.intern("definitions_test one");
  const NameId two = names.intern("definitions_test two");
  EXPECT_NE(one, two);
  EXPECT_EQ(names.intern("definitions_test one"), one);
  EXPECT_EQ(names.text(two), "definitions_test two");
  const NameId empty = names.intern("");
  EXPECT_EQ(names.text(empty), "");
  const std::string odd("a\0\xff\n", 4);
  EXPECT_EQ(names.text(names.intern(odd)), odd);

  std::vector<std::string> known;
  names.copy_new(known);
  ASSERT_EQ(known.size(), names.size());
  EXPECT_EQ(known[index(one)], "definitions_test one");
  const std::size_t before = known.size();
  names.intern("definitions_test three");
  names.copy_new(known);
  EXPECT_EQ(known.size(), before + 1);
}

TEST(NameTable, IsSharedByThreads) {
  constexpr int kNames = 300;
  std::vector<std::vector<NameId>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kNames; ++i) {
        mine.push_back(NameTable::instance().intern("shared " + std::to_string(i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids[0]);
  for (int i = 0; i < kNames; ++i) {
    EXPECT_EQ(NameTable::instance().text(ids[0][static_cast<std::size_t>(i)]),
              "shared " + std::to_string(i));
  }
}

TEST(NameTable, IsBounded) {
  NameTable& names = NameTable::instance();
  const NameId known = names.intern("known before it is full");
  for (std::size_t i = 0; names.size() < NameTable::kMaxNames; ++i) {
    names.intern("filler " + std::to_string(i));
  }
  const NameId beyond = names.intern("one too many");
  EXPECT_EQ(names.text(beyond), "(too many names)");
  EXPECT_EQ(names.intern("another"), beyond);
  EXPECT_EQ(names.intern("known before it is full"), known);
  EXPECT_EQ(names.size(), NameTable::kMaxNames);
}

TEST(NodeRef, FitsIntoAValueOrIsUnknown) {
  const NodeRef node{(std::uint64_t{1} << 40) - 2, (std::uint64_t{1} << 24) - 1};
  EXPECT_EQ(unpack_node(pack(node)).sequence, node.sequence);
  EXPECT_EQ(unpack_node(pack(node)).thread, node.thread);
  EXPECT_EQ(pack({std::uint64_t{1} << 40, 0}), kUnknownNode);
  EXPECT_EQ(pack({0, std::uint64_t{1} << 24}), kUnknownNode);
  EXPECT_EQ(pack({~std::uint64_t{0}, 1}), kUnknownNode);  // a node without a number
}

}  // namespace
}  // namespace layertrace
