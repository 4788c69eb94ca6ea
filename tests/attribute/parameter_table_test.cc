#include "attribute/parameter_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace layertrace {
namespace {

// "" holds "a" and "b"; "a" holds "a.c".
class ParameterTable : public testing::Test {
 protected:
  void add(std::uint64_t address, std::uint32_t owner, std::string name, std::uint64_t elements,
           bool trainable = true, bool buffer = false) {
    dictionary_.parameters.push_back({.address = address,
                                      .owner = LayerId{owner},
                                      .name = std::move(name),
                                      .shape = {static_cast<std::int64_t>(elements)},
                                      .dtype = "float32",
                                      .elements = elements,
                                      .bytes = 4 * elements,
                                      .trainable = trainable,
                                      .buffer = buffer});
  }
  const std::vector<Layer>& fill() {
    const std::vector<std::pair<std::string, int>> layers{{"", -1}, {"a", 0}, {"a.c", 1}, {"b", 0}};
    for (const auto& [path, parent] : layers) {
      Layer layer;
      layer.path = path;
      layer.parent = parent;
      profile_.layers.push_back(std::move(layer));
    }
    fill_parameters(profile_, dictionary_);
    return profile_.layers;
  }

  Dictionary dictionary_;
  Profile profile_;
};

TEST_F(ParameterTable, SumsOverChildren) {
  add(1, 2, "weight", 256);
  add(2, 2, "bias", 32, /*trainable=*/false);
  add(3, 3, "weight", 10);
  const auto& layers = fill();
  EXPECT_EQ(layers[0].params, 298U);
  EXPECT_EQ(layers[0].params_trainable, 266U);
  EXPECT_EQ(layers[0].self_params, 0U);
  EXPECT_EQ(layers[1].params, 288U);
  EXPECT_EQ(layers[1].param_bytes * 8, 9216U);  // of a Linear with 8 inputs and 32 outputs
  EXPECT_EQ(layers[2].self_params, 288U);
  EXPECT_EQ(layers[2].self_params_trainable, 256U);
  EXPECT_EQ(layers[2].self_param_bytes, 1152U);
  EXPECT_EQ(layers[3].params, 10U);
}

TEST_F(ParameterTable, CountsATensorOnceInEachSubtree) {
  add(1, 2, "weight", 100);
  add(1, 3, "tied", 100);
  add(1, 3, "again", 100);
  const auto& layers = fill();
  EXPECT_EQ(layers[0].params, 100U);
  EXPECT_EQ(layers[1].params, 100U);
  EXPECT_EQ(layers[2].params, 100U);
  EXPECT_EQ(layers[3].params, 100U);
  EXPECT_EQ(layers[3].self_params, 100U);
  ASSERT_EQ(layers[3].parameters.size(), 2U);
  EXPECT_EQ(layers[2].parameters[0].shared_with, "");
  EXPECT_EQ(layers[3].parameters[0].shared_with, "a.c.weight");
  EXPECT_EQ(layers[3].parameters[1].shared_with, "a.c.weight");
}

TEST_F(ParameterTable, KeepsBuffersApart) {
  add(1, 0, "scale", 1);
  add(2, 2, "running_mean", 8, /*trainable=*/false, /*buffer=*/true);
  const auto& layers = fill();
  EXPECT_EQ(layers[0].params, 1U);
  EXPECT_EQ(layers[0].buffer_bytes, 32U);
  EXPECT_EQ(layers[2].params, 0U);
  EXPECT_EQ(layers[2].buffer_bytes, 32U);
  EXPECT_TRUE(layers[2].parameters[0].buffer);
  EXPECT_EQ(layers[0].parameters[0].name, "scale");
}

TEST_F(ParameterTable, TakesTheLatestUnderAName) {
  add(1, 2, "weight", 100);
  add(2, 2, "bias", 5);
  add(3, 2, "weight", 200);
  const auto& layers = fill();
  EXPECT_EQ(layers[0].params, 205U);
  ASSERT_EQ(layers[2].parameters.size(), 2U);
  EXPECT_EQ(layers[2].parameters[0].elements, 200U);
}

}  // namespace
}  // namespace layertrace
