// Which commit is checked out? Read from the repository's own files: no program is started.
#pragma once

#include <filesystem>
#include <string>

namespace layertrace {

// Of the repository that holds this folder, in full; "" where there is none, or no commit yet. Says
// nothing of changes that are not committed.
std::string git_commit(const std::filesystem::path& folder);

}  // namespace layertrace
