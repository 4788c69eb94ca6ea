// `layertrace tree` on a recorded run. What a tree says is tested in tests/report.
#include "tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace layertrace::tools {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TreeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
    if (source == nullptr) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to traces/";
    arguments_.file = std::string(source) + "/traces/residual_cnn.pftrace";
  }
  std::string report() const {
    const auto text = tree_report(arguments_);
    return text ? *text : "error: " + text.error().message();
  }
  TreeArguments arguments_;
};

TEST_F(TreeCommand, HasThreeForms) {
  EXPECT_THAT(report(), HasSubstr("ResidualNet"));
  arguments_.format = "repr";
  EXPECT_THAT(report(), StartsWith("ResidualNet(\n  Forward Time: "));
  arguments_.format = "json";
  EXPECT_THAT(report(), StartsWith("{\n \"name\": \"ResidualNet\""));
  arguments_.format = "yaml";
  EXPECT_EQ(report(),
            "error: cannot use \"yaml\" as a format: no such name. Use one of: text, repr, json");
}

TEST_F(TreeCommand, TakesSharesInPercent) {
  arguments_.columns = {"type"};
  for (const char* share : {"30%", "30", "30 %"}) {
    arguments_.min_share = share;
    EXPECT_THAT(report(), HasSubstr("with at least 30.0 % of the step")) << share;
    EXPECT_THAT(report(), Not(HasSubstr("── stem"))) << share;
  }
  for (const char* share : {"x", "-1", "101", "%", "nan"}) {
    arguments_.min_share = share;
    EXPECT_THAT(report(), HasSubstr("it is no percentage. Give a number from 0 to 100: 2.5%"))
        << share;
  }
}

TEST_F(TreeCommand, RefusesWhatItDoesNotKnow) {
  arguments_.view = "fast";
  EXPECT_THAT(report(), HasSubstr("Use one of: time, cost, memory, roofline, all"));
  arguments_.view = "time";
  arguments_.style = "round";
  EXPECT_THAT(report(), HasSubstr("Use one of: columns, brackets"));
  arguments_.style = "brackets";
  arguments_.options.start = "blocks.99";
  EXPECT_THAT(report(), HasSubstr("cannot show blocks.99: no layer has this path"));
}

}  // namespace
}  // namespace layertrace::tools
