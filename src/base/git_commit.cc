#include "base/git_commit.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <system_error>

namespace layertrace {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
    line.pop_back();
  return line;
}

bool is_hash(std::string_view text) {
  constexpr std::size_t kSha1 = 40;
  constexpr std::size_t kSha256 = 64;
  return (text.size() == kSha1 || text.size() == kSha256) &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// What the line says behind this word; "" where it does not begin with it.
std::string behind(const std::string& line, std::string_view word) {
  return line.starts_with(word) ? line.substr(word.size()) : "";
}

// The folder of the repository's own files: ".git" above or beside, or where a work tree's file of
// that name points.
fs::path repository_of(fs::path folder) {
  std::error_code ignored;
  for (folder = fs::absolute(folder, ignored);; folder = folder.parent_path()) {
    fs::path git = folder / ".git";
    if (fs::is_directory(git, ignored)) return git;
    if (const std::string elsewhere = behind(first_line(git), "gitdir: "); !elsewhere.empty())
      return folder / elsewhere;
    if (!folder.has_relative_path()) return {};
  }
}

// "<hash> <reference>" in each line that is of use.
std::string packed(const fs::path& file, const std::string& reference) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos && std::string_view(line).substr(space + 1) == reference)
      return line.substr(0, space);
  }
  return "";
}

}  // namespace

std::string git_commit(const fs::path& folder) {
  const fs::path repository = repository_of(folder);
  if (repository.empty()) return "";
  std::string head = first_line(repository / "HEAD");
  if (is_hash(head)) return head;
  const std::string reference = behind(head, "ref: ");
  if (reference.empty()) return "";
  // A second work tree shares its branches with the first.
  fs::path shared = repository;
  if (const std::string common = first_line(repository / "commondir"); !common.empty())
    shared = repository / common;
  for (const std::string& found :
       {first_line(repository / reference), first_line(shared / reference),
        packed(shared / "packed-refs", reference)}) {
    if (is_hash(found)) return found;
  }
  return "";
}

}  // namespace layertrace
