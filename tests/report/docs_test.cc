// The samples in the documentation are what the code prints, and every key is described.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

std::string read_doc(const std::string& name) {
  const char* source = std::getenv("LAYERTRACE_SOURCE_DIR");
  if (source == nullptr) return "";
  std::ostringstream text;
  text << std::ifstream(std::string(source) + "/docs/" + name).rdbuf();
  return text.str();
}

// All keys below a value, but those that are data: causes and names.
void collect_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured() && !key.starts_with("unattributed")) collect_keys(value, keys);
  }
}

TEST(Docs, ShowTreesAsTheyArePrinted) {
  const std::string doc = read_doc("tree.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/tree.md";
  EXPECT_NE(doc.find("```\n" + tree(made::small_net()) + "```\n"), std::string::npos);
  const std::string folded = tree(made::transformer());
  const std::size_t begin = folded.find("\n\n") + 2;
  const std::string table = folded.substr(begin, folded.find("\n\n", begin) + 1 - begin);
  EXPECT_NE(doc.find("```\n" + table + "```\n"), std::string::npos);
}

TEST(Docs, ShowTheGpuAsItIsPrinted) {
  const std::string doc = read_doc("gpu.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/gpu.md";
  EXPECT_NE(doc.find("```\n" + tree(made::gpu_net()) + "```\n"), std::string::npos);
  EXPECT_NE(doc.find("run.pftrace\n" + kernels_table(made::gpu_net()) + "```\n"),
            std::string::npos);
}

// The names of columns stand in the error of one that is unknown.
TEST(Docs, DescribeEveryColumn) {
  const std::string doc = read_doc("tree.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/tree.md";
  std::istringstream names(parse_column("").error().remedy.substr(12));
  int count = 0;
  for (std::string name; std::getline(names >> std::ws, name, ','); ++count)
    EXPECT_NE(doc.find("`" + name + "`"), std::string::npos) << name;
  EXPECT_EQ(count, 18);
}

TEST(Docs, DescribeEveryKeyOfTheJson) {
  const std::string doc = read_doc("json.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/json.md";
  Profile profile = made::gpu_net();
  for (PhaseStats& phase : profile.layers[0].phases) phase.calls = made::constant(1);
  std::set<std::string> keys{"count", "ns", "names"};
  collect_keys(nlohmann::json::parse(layers_json(profile)), keys);
  EXPECT_GT(keys.size(), 50u);
  for (const std::string& key : keys)
    EXPECT_NE(doc.find("`" + key + "`"), std::string::npos) << key;
}

}  // namespace
}  // namespace layertrace
