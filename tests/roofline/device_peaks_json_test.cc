// A device of the user's: read, or told what is wrong with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "roofline/device_peaks.h"

namespace layertrace::roofline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(std::string_view json) {
  const auto peaks = parse_device_peaks(json);
  return peaks ? "no error" : peaks.error().message();
}

TEST(OwnDevice, IsRead) {
  const auto peaks = parse_device_peaks(
      R"({"name": "My GPU", "fp32_tflops": 19.5, "fp64_matrix_tflops": 2, "bf16_tflops": 312,
          "int8_tops": 624, "bandwidth_gbs": 2039, "source": "its datasheet"})");
  ASSERT_TRUE(peaks) << peaks.error().message();
  EXPECT_EQ(peaks->name, "My GPU");
  EXPECT_EQ(peaks->origin, Origin::kGiven);
  EXPECT_EQ(peaks->source, "its datasheet");
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kFp32).vector, 19.5e12);
  EXPECT_EQ(peaks->of(Dtype::kFp32).matrix, 0);
  EXPECT_DOUBLE_EQ(peaks->of(Dtype::kFp64).matrix, 2e12);
  EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kBf16), 312e12);
  EXPECT_DOUBLE_EQ(peaks->peak(Dtype::kInt8), 624e12);
  EXPECT_EQ(peaks->peak(Dtype::kFp16), 0);
  EXPECT_DOUBLE_EQ(peaks->bytes_per_s, 2039e9);
}

TEST(OwnDevice, NeedsNoMoreThanANameAndOneFigure) {
  EXPECT_TRUE(parse_device_peaks(R"({"name": "a", "fp32_tflops": 1})"));
  EXPECT_TRUE(parse_device_peaks(R"({"name": "a", "bandwidth_gbs": 1})"));
  EXPECT_EQ(parse_device_peaks(R"({"name": "a", "fp4_tflops": 1})")->source, "given by the user");
}

TEST(OwnDevice, SaysWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("it is not JSON"));
  EXPECT_THAT(error_of(R"({"name": "a", "fp32_tflops": })"), HasSubstr("column 30"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("it is [1], not an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no \"name\""));
  EXPECT_THAT(error_of(R"({"fp32_tflops": 1})"), HasSubstr("no \"name\""));
  EXPECT_THAT(error_of(R"({"name": "", "fp32_tflops": 1})"), HasSubstr("must be a text"));
  EXPECT_THAT(error_of(R"({"name": 7, "fp32_tflops": 1})"), HasSubstr("\"name\" is 7"));
  EXPECT_THAT(error_of(R"({"name": "a"})"), HasSubstr("\"a\" has no figure"));
  EXPECT_THAT(error_of(R"({"name": "a", "fp32_tflop": 1})"), HasSubstr("\"fp32_tflop\" is no key"));
  EXPECT_THAT(error_of(R"({"name": "a", "fp32_tflops": "19"})"),
              HasSubstr("\"fp32_tflops\" is \"19\", and must be a number above 0"));
  EXPECT_THAT(error_of(R"({"name": "a", "fp32_tflops": -1})"), HasSubstr("is -1, and must be"));
  EXPECT_THAT(error_of(R"({"name": "a", "bandwidth_gbs": 0})"), HasSubstr("is 0, and must be"));
  EXPECT_THAT(error_of(R"({"name": "a", "bandwidth_gbs": null})"), HasSubstr("is null"));
  EXPECT_THAT(error_of(R"({"name": "a", "bandwidth_gbs": 1e999})"), HasSubstr("it is not JSON"));
  EXPECT_THAT(error_of("{\"name\": \"\xff\"}"), HasSubstr("it is not JSON"));
}

TEST(OwnDevice, NamesTheKeysThatThereAre) {
  EXPECT_THAT(error_of(R"({"name": "a", "gflops": 1})"),
              AllOf(HasSubstr("fp64_tflops, fp64_matrix_tflops, fp32_tflops"),
                    HasSubstr("int8_tops"), HasSubstr("bandwidth_gbs, source")));
}

}  // namespace
}  // namespace layertrace::roofline
