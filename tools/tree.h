// `layertrace tree`: the layers of a run, as a tree, as the model's own repr, or as nested JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <layertrace/report.h>
#include <layertrace/result.h>

namespace layertrace::tools {

struct TreeArguments {
  std::string file;
  std::vector<std::string> columns;
  std::string sort = "definition";
  std::string style = "columns";
  std::string view;
  std::string min_share;
  std::string format = "text";
  std::string color = "auto";
  bool no_fold = false;
  TreeOptions options;
};

// "2%" and "2" are 0.02.
Result<double> parse_share(std::string_view text);

enum class TreeFormat { kText, kRepr, kJson };
// "text", "repr" or "json".
Result<TreeFormat> parse_tree_format(std::string_view name);

// An unknown name or start node is an error that says what there is.
Result<std::string> tree_report(const TreeArguments& arguments);

}  // namespace layertrace::tools
