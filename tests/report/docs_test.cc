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

TEST(Docs, ShowWhatWasCountedAsItIsPrinted) {
  const std::string doc = read_doc("tree.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/tree.md";
  EXPECT_NE(doc.find("```\n" + tree(made::counted_net()) + "```\n"), std::string::npos)
      << tree(made::counted_net());
}

// Those of a phase are told once for all.
TEST(Docs, NameEveryColumnOfTheTables) {
  const std::string doc = read_doc("tables.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/tables.md";
  for (const bool by_layer : {false, true}) {
    for (int kind = 0; kind <= static_cast<int>(TableKind::kMetrics); ++kind) {
      const auto table = layertrace::table(made::small_net(), static_cast<TableKind>(kind),
                                           {.by_layer = by_layer});
      if (!table) continue;  // calls
      const std::size_t begin = doc.find("\n## " + table->name);
      const std::string part = doc.substr(begin, doc.find("\n## ", begin + 1) - begin);
      for (const TableColumn& column : table->columns) {
        std::string of_phase = column.name;
        of_phase.replace(0, of_phase.find('_'), "`P");
        EXPECT_TRUE(part.find(column.name) != std::string::npos ||
                    part.find(of_phase + "`") != std::string::npos)
            << table->name << ": " << column.name;
      }
    }
  }
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
  EXPECT_EQ(count, 46);
}

TEST(Docs, ShowOtherFormsAsTheyArePrinted) {
  const std::string doc = read_doc("tree.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/tree.md";
  const auto table_of = [](const std::string& text) {
    const std::size_t begin = text.find("\n\n") + 2;
    return text.substr(begin, text.find("\n\n", begin) + 1 - begin);
  };
  const std::string brackets =
      table_of(tree(made::counted_net(),
                    {.columns = {Column::kType, Column::kParams, Column::kMacs, Column::kForward},
                     .style = TreeStyle::kBrackets}));
  EXPECT_NE(doc.find("```\n" + brackets + "```\n"), std::string::npos) << brackets;
  const std::string repr = repr_tree(made::small_net());
  EXPECT_NE(doc.find("```\n" + repr + "```\n"), std::string::npos) << repr;
  const std::string filtered = table_of(tree(
      made::transformer(), {.columns = {Column::kType, Column::kForward}, .type = "GELU,Emb*"}));
  EXPECT_NE(doc.find("```\n" + filtered + "```\n"), std::string::npos) << filtered;
}

TEST(Docs, DescribeEveryKeyOfTheNestedJson) {
  const std::string doc = read_doc("json.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/json.md";
  const std::size_t section = doc.find("## Nested layers");
  ASSERT_NE(section, std::string::npos);
  const auto nested = nlohmann::json::parse(nested_json(made::counted_net()));
  for (const auto& [key, value] : nested.items())
    EXPECT_NE(doc.find("`" + key + "`", section), std::string::npos) << key;
}

TEST(Docs, DescribeEveryKeyOfTheJson) {
  const std::string doc = read_doc("json.md");
  if (doc.empty()) GTEST_SKIP() << "LAYERTRACE_SOURCE_DIR does not lead to docs/json.md";
  Profile profile = made::gpu_net();
  const Profile counted = made::counted_net();
  profile.layers.insert(profile.layers.end(), counted.layers.begin(), counted.layers.end());
  profile.operators = counted.operators;
  profile.device = counted.device;
  for (PhaseStats& phase : profile.layers[0].phases) phase.calls = made::constant(1);
  std::set<std::string> keys{"count", "ns", "names"};
  collect_keys(nlohmann::json::parse(layers_json(profile)), keys);
  EXPECT_GT(keys.size(), 50u);
  for (const std::string& key : keys)
    EXPECT_NE(doc.find("`" + key + "`"), std::string::npos) << key;
}

}  // namespace
}  // namespace layertrace
