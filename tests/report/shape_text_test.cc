// Shapes from text, and from text that is none.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/shape_text.h"

namespace layertrace::report {
namespace {

using Tensors = std::vector<TensorText>;
using Sizes = std::vector<std::int64_t>;

TEST(ShapeText, IsParsed) {
  EXPECT_EQ(parse_shapes("float32[2, 64, 512]"), (Tensors{{"float32", {2, 64, 512}}}));
  EXPECT_EQ(parse_shapes("float32[2, 3], int64[7]"),
            (Tensors{{"float32", {2, 3}}, {"int64", {7}}}));
  EXPECT_EQ(parse_shapes("float8_e4m3fn[1,2]"), (Tensors{{"float8_e4m3fn", {1, 2}}}));
  EXPECT_EQ(parse_shapes("float32[]"), (Tensors{{"float32", {}}}));  // a scalar
  EXPECT_EQ(parse_shapes("bool[0, 9223372036854775807]"),
            (Tensors{{"bool", {0, 9223372036854775807}}}));
}

TEST(ShapeText, MayStandInAnyStructure) {
  const Tensors both{{"float32", {4, 8}}, {"float32", {1}}};
  EXPECT_EQ(parse_shapes("(float32[4, 8], (None, float32[1]), 3)"), both);
  EXPECT_EQ(parse_shapes("{logits: float32[4, 8], loss=float32[1]}"), both);
  EXPECT_EQ(parse_shapes("[float32[4, 8], float32[1]]"), both);
  EXPECT_EQ(parse_shapes("float32[4, 8], float32[1], …"), both);
}

TEST(ShapeText, GivesNothingWhereItIsNone) {
  for (const std::string text : {"",
                                 "…",
                                 "None",
                                 "float32",
                                 "float32[",
                                 "float32[2",
                                 "float32[2,",
                                 "float32[2, ]",
                                 "float32[-1]",
                                 "float32[2, x]",
                                 "float32[2 3]",
                                 "float32[2]x[",
                                 "float32[1.5]",
                                 "float32[0x10]",
                                 "float32[9223372036854775808]",
                                 "float32[99999999999999999999999]",
                                 "[2]",
                                 "32[2]",
                                 "float32[2], float32[",
                                 "float32[[2]]",
                                 "\xff\xfe[2]",
                                 "float32[\n2]"}) {
    EXPECT_EQ(parse_shapes(text), Tensors{}) << text;
  }
  EXPECT_EQ(parse_shapes(std::string(100'000, '[')), Tensors{});
  EXPECT_EQ(parse_shapes(std::string("float32[2\0]", 11)), Tensors{});
}

TEST(ShapeText, HasItsElements) {
  EXPECT_EQ(product({2, 3, 4}), 24);
  EXPECT_EQ(product({2, 3, 4}, 1), 12);
  EXPECT_EQ(product({2, 3, 4}, 0, 2), 6);
  EXPECT_EQ(product({2, 3, 4}, 5), 1);
  EXPECT_EQ(product({}), 1);
  EXPECT_EQ(product({3, 0}), 0);
}

TEST(KernelSizeText, IsParsed) {
  EXPECT_EQ(parse_kernel_size("3 × 3"), (Sizes{3, 3}));
  EXPECT_EQ(parse_kernel_size("2"), (Sizes{2}));
  EXPECT_EQ(parse_kernel_size("1 × 2 × 3"), (Sizes{1, 2, 3}));
  for (const std::string text : {"", "x", "3 ×", "3 × ", "× 3", "3x3", "-1", "3 × 3 ", "3 \xc3"})
    EXPECT_EQ(parse_kernel_size(text), Sizes{}) << text;
}

}  // namespace
}  // namespace layertrace::report
