#include "base/host_info.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/command_line.h"
#include "base/git_commit.h"

namespace layertrace {
namespace {

// The value of `key<separator>value` in a file of such lines.
std::string find_value(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    if (first == std::string::npos) return "";
    return line.substr(first, line.find_last_not_of(" \t\"") - first + 1);
  }
  return "";
}

// Of the repository of the script that is run, else of the folder in which it is, else of the
// program's own.
std::string commit_of(const std::vector<std::string>& words) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> folders;
  const auto script = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
    return word.ends_with(".py") && fs::is_regular_file(word, ignored);
  });
  if (script != words.end()) folders.push_back(fs::absolute(*script, ignored).parent_path());
  folders.push_back(fs::current_path(ignored));
  // An interpreter's folder says nothing of the program.
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.filename().string().starts_with("python")) folders.push_back(program.parent_path());
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    if (std::string commit = git_commit(folder); !commit.empty()) return commit;
  }
  return "";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace

void describe_host(RunInfo& run) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) run.host = host.data();
  utsname system{};
  uname(&system);
  run.os = find_value("/etc/os-release", "PRETTY_NAME", '=');
  if (run.os.empty()) run.os = system.sysname;
  run.os += std::string(", ") + system.sysname + " " + system.release;
  run.cpu = find_value("/proc/cpuinfo", "model name", ':');
  if (run.cpu.empty()) run.cpu = system.machine;
  run.cpu_count = static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN));
  run.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  run.pid = static_cast<std::uint64_t>(getpid());
  run.program = program_invocation_short_name;
  const std::vector<std::string> words = command_words();
  run.command = shown_command(words);
  run.commit = commit_of(words);
  run.created = utc_now();
}

}  // namespace layertrace
