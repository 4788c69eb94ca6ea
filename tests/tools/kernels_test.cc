// `layertrace kernels` on a recorded run without a GPU. What a table says is tested in
// tests/report.
#include "kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace layertrace::tools {
namespace {

using testing::HasSubstr;

class KernelsCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
    if (source == nullptr) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to traces/";
    arguments_.file = std::string(source) + "/traces/residual_cnn.pftrace";
  }
  KernelArguments arguments_;
};

TEST_F(KernelsCommand, SaysThatThereWasNoGpu) {
  const auto text = kernels_report(arguments_);
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_THAT(*text, HasSubstr("\nNo GPU was recorded, so there are no kernels."));
  arguments_.format = "json";
  EXPECT_EQ(*kernels_report(arguments_), "{\"kernels\":[]}\n");
  arguments_.options.module = "blocks.0";
  EXPECT_TRUE(kernels_report(arguments_));
}

TEST_F(KernelsCommand, RefusesWhatItDoesNotKnow) {
  arguments_.options.module = "blocks.99";
  EXPECT_EQ(kernels_report(arguments_).error().message(),
            "cannot show the kernels of blocks.99: no layer has this path. `layertrace tree " +
                arguments_.file + "` shows those that exist");
  arguments_.options.module = "";
  arguments_.sort = "size";
  EXPECT_THAT(kernels_report(arguments_).error().message(), HasSubstr("time, count, name"));
  arguments_.sort = "time";
  arguments_.file += ".gone";
  EXPECT_FALSE(kernels_report(arguments_));
}

}  // namespace
}  // namespace layertrace::tools
