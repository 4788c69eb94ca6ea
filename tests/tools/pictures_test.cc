// `layertrace graph` and `layertrace report` on a recorded run. What is in them is tested in
// tests/report, and how the page behaves in tests/browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "graph.h"
#include "output.h"
#include "report.h"

namespace layertrace::tools {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Pictures : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
    if (source == nullptr) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to traces/";
    trace_ = std::string(source) + "/traces/residual_cnn.pftrace";
    folder_ = std::filesystem::temp_directory_path() /
              ("layertrace_pictures_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }
  std::string trace_;
  std::filesystem::path folder_;
};

TEST_F(Pictures, GraphIsTextByItsEnding) {
  GraphArguments arguments{trace_, in_folder("tree.dot"), {}, {}};
  ASSERT_TRUE(write_graph(arguments));
  EXPECT_THAT(*read_file(arguments.output), StartsWith("digraph layers {"));
}

TEST_F(Pictures, GraphIsDrawnByDotAndSaysWhereThereIsNone) {
  GraphArguments arguments{trace_, in_folder("tree.svg"), {}, {}};
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.c_str(), 1);
  const auto without = write_graph(arguments);
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message(), HasSubstr("there is no `dot` on PATH. Install Graphviz"));
  EXPECT_FALSE(std::filesystem::exists(arguments.output));
  const auto drawn = write_graph(arguments);
  ASSERT_TRUE(drawn) << drawn.error().message();
  EXPECT_THAT(*read_file(arguments.output), HasSubstr("</svg>"));
}

TEST_F(Pictures, GraphRefusesWhatItDoesNotKnow) {
  GraphArguments arguments{trace_, in_folder("tree.jpeg2000"), {}, {}};
  EXPECT_THAT(write_graph(arguments).error().message(),
              EndsWith("Give a name that ends in .dot, .gv, .svg, .pdf or .png"));
  arguments.output = in_folder("tree.dot");
  arguments.options.start = "blocks.99";
  EXPECT_THAT(write_graph(arguments).error().message(),
              StartsWith("cannot draw blocks.99: no layer has this path."));
  arguments.options.start = "";
  arguments.output = in_folder("gone/tree.dot");
  EXPECT_THAT(write_graph(arguments).error().message(), HasSubstr("No such file or directory"));
}

TEST_F(Pictures, ReportIsBesideTheTraceUnlessAnotherPlaceIsGiven) {
  const std::string copy = in_folder("run.pftrace");
  std::filesystem::copy_file(trace_, copy);
  ReportArguments arguments;
  arguments.file = copy;
  const auto written = write_report(arguments);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(*written, in_folder("run.html"));
  EXPECT_THAT(*read_file(*written), StartsWith("<!doctype html>"));
  arguments.output = in_folder("other.html");
  arguments.embed_trace = true;
  ASSERT_TRUE(write_report(arguments));
  EXPECT_GT(std::filesystem::file_size(arguments.output),
            std::filesystem::file_size(*written) + std::filesystem::file_size(copy));
}

TEST_F(Pictures, ReportLeavesTheTraceAlone) {
  const std::string copy = in_folder("run.html");
  std::filesystem::copy_file(trace_, copy);
  ReportArguments arguments;
  arguments.file = copy;
  EXPECT_THAT(write_report(arguments).error().message(), HasSubstr("that is the trace itself"));
  EXPECT_EQ(std::filesystem::file_size(copy), std::filesystem::file_size(trace_));
}

}  // namespace
}  // namespace layertrace::tools
