#include "summary.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "python_environment.h"

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;

// A build has the package beside the command; an installed one is found by its Python.
void prepend_package() {
  std::error_code error;
  const fs::path package = fs::read_symlink("/proc/self/exe", error).parent_path() / "../python";
  if (error || !fs::exists(package / "layertrace/__init__.py", error)) return;
  const char* before = std::getenv("PYTHONPATH");
  std::string paths = fs::canonical(package, error).string();
  if (before != nullptr && *before != '\0') paths += ":" + std::string(before);
  setenv("PYTHONPATH", paths.c_str(), 1);
}

}  // namespace

int run_python_command(const std::string& command, const std::vector<std::string>& arguments) {
  const auto pythons = pythons_to_ask("", [](const char* name) { return std::getenv(name); });
  prepend_package();
  for (const std::string& python : pythons) {
    std::vector<std::string> words = {python, "-m", "layertrace", command};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    if (errno != ENOENT) break;
  }
  std::fprintf(stderr,
               "layertrace: cannot look at a model: no Python to build it: %s. Name the one that "
               "has torch and layertrace by LAYERTRACE_PYTHON\n",
               std::strerror(errno));
  return 1;
}

}  // namespace layertrace::tools
