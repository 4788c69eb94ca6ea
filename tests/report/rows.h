// The rows of a tree: what stands between its two empty lines.
#pragma once

#include <string>

#include <layertrace/report.h>

namespace layertrace {

inline std::string table_of(const std::string& tree) {
  const std::size_t begin = tree.find("\n\n") + 2;
  return tree.substr(begin, tree.find("\n\n", begin) + 1 - begin);
}

// After a line break, as raw strings begin.
inline std::string rows(const Profile& profile, const TreeOptions& options = {}) {
  return '\n' + table_of(tree(profile, options));
}

}  // namespace layertrace
