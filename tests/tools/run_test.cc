// What `layertrace run` hands on to a program. That it works is tested in tests/python/run.
#include "run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace layertrace::tools {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(RunSteps, AreARange) {
  const auto expect = [](const char* steps, std::uint64_t skip, std::uint64_t warmup,
                         std::uint64_t record) {
    const auto schedule = parse_steps(steps);
    ASSERT_TRUE(schedule) << steps;
    EXPECT_EQ(schedule->skip, skip) << steps;
    EXPECT_EQ(schedule->warmup, warmup) << steps;
    EXPECT_EQ(schedule->record, record) << steps;
    EXPECT_EQ(schedule->repeat, 1U);
  };
  expect("", 0, 7, 5);
  expect("5:10", 0, 5, 5);
  expect("30:40", 28, 2, 10);
  expect("0:3", 0, 0, 3);
  expect(":3", 0, 0, 3);
  expect("1:2", 0, 1, 1);
  expect("7:", 0, 7, 0);
}

TEST(RunSteps, AreRefusedWhereTheyAreNone) {
  for (const char* steps : {"5", "a:b", "5:5", "10:5", "-1:3", "1:2:3", "1:2x", " 1:2"}) {
    const auto schedule = parse_steps(steps);
    ASSERT_FALSE(schedule) << steps;
    EXPECT_THAT(schedule.error().message(), HasSubstr("as in 5:10")) << steps;
  }
}

class RunEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "inject");
    std::filesystem::create_directories(root_ / "lib");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::filesystem::path& file) const { std::ofstream(root_ / file) << ""; }

  // Each test is a process of its own, and several run at once.
  const std::filesystem::path root_ =
      std::filesystem::absolute("run_environment_" + std::to_string(getpid()));
};

TEST_F(RunEnvironment, RefusesAnOutputInAFolderThatIsNotThere) {
  put("inject/sitecustomize.py");
  put("lib/liblayertrace_run.so");
  const RunOptions options{
      .steps = "", .output = (root_ / "missing/x.pftrace").string(), .program = {"p"}};
  const auto variables = run_environment(root_, "", options, {});
  ASSERT_FALSE(variables);
  EXPECT_THAT(variables.error().message(), ::testing::HasSubstr("Create it first"));
}

TEST_F(RunEnvironment, PutsLayertraceBeforeWhatIsThere) {
  put("inject/sitecustomize.py");
  put("lib/liblayertrace_run.so");
  const RunOptions options{
      .steps = "2:4", .output = "x.pftrace", .ops = false, .name = "wide", .program = {"p"}};
  const auto variables =
      run_environment(root_, "/notes", options,
                      {{"PYTHONPATH", "/own"}, {"LD_PRELOAD", "/own.so"}, {"HOME", "/h"}});
  ASSERT_TRUE(variables) << variables.error().message();
  EXPECT_EQ(variables->at("PYTHONPATH"), (root_ / "inject").string() + ":/own");
  EXPECT_EQ(variables->at("LD_PRELOAD"),
            (root_ / "lib/liblayertrace_run.so").string() + ":/own.so");
  EXPECT_EQ(variables->at("LAYERTRACE_RUN_SCHEDULE"), "0:2:2");
  EXPECT_EQ(variables->at("LAYERTRACE_RUN_OPS"), "0");
  EXPECT_EQ(variables->at("LAYERTRACE_RUN_COUNT"), "first");
  EXPECT_EQ(variables->at("LAYERTRACE_RUN_NAME"), "wide");
  EXPECT_EQ(variables->at("LAYERTRACE_RUN_NOTES"), "/notes");
  EXPECT_THAT(variables->at("LAYERTRACE_RUN_OUTPUT"), EndsWith("/x.pftrace"));
  EXPECT_FALSE(variables->contains("HOME"));
}

TEST_F(RunEnvironment, DoesWithWhatIsInstalled) {
  put("lib/liblayertrace_run.so");
  const auto cpp_only = run_environment(root_, "", {}, {});
  ASSERT_TRUE(cpp_only);
  EXPECT_FALSE(cpp_only->contains("PYTHONPATH"));
  EXPECT_EQ(cpp_only->at("LD_PRELOAD"), (root_ / "lib/liblayertrace_run.so").string());
}

TEST_F(RunEnvironment, SaysWhenOperatorsAreCounted) {
  put("lib/liblayertrace_run.so");
  RunOptions options;
  options.count = "always";
  EXPECT_EQ(run_environment(root_, "", options, {})->at("LAYERTRACE_RUN_COUNT"), "always");
  options.count = "never";
  const auto refused = run_environment(root_, "", options, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("first, always, off"));
}

TEST_F(RunEnvironment, SaysWhatIsMissing) {
  const auto variables = run_environment(root_, "", {}, {});
  ASSERT_FALSE(variables);
  EXPECT_THAT(variables.error().message(), HasSubstr("make build"));
}

}  // namespace
}  // namespace layertrace::tools
