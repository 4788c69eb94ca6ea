// Preloaded into every process that `layertrace run` leads to. It looks once whether the program
// links LibTorch. If not, it is as if it were not there. If so, it starts the program again with
// liblayertrace.so in front of LibTorch, which records on its own (src/torch/auto_session.cc), and
// lets the children of the program start as this one did.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Search {
  std::string_view library;
  std::string_view end;
  std::string folder;
};

int visit(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  if (!search.end.empty() && name.ends_with(search.end)) return 1;
  if (!name.ends_with(search.library)) return 0;
  search.folder = name.substr(0, name.size() - search.library.size());
  return 1;
}

// The folder of a loaded library; "" if it is not loaded, or not in front of `end`.
std::string folder_of(std::string_view library, std::string_view end = "") {
  Search search{library, end, ""};
  dl_iterate_phdr(&visit, &search);
  return search.folder;
}

std::string read_file(const char* path) {
  std::string text;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char block[4096];
  for (ssize_t count = 0; (count = read(file, block, sizeof(block))) > 0;)
    text.append(block, static_cast<std::size_t>(count));
  close(file);
  return text;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The program's file. By /proc/self/exe it would run under the name "exe"; that will do only where
// the file is there no more.
std::string own_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[4096];
  const ssize_t size = readlink(kSelf, path, sizeof(path) - 1);
  if (size <= 0) return kSelf;
  path[size] = '\0';
  struct stat self {};
  struct stat there {};
  const bool same = stat(kSelf, &self) == 0 && stat(path, &there) == 0 &&
                    self.st_dev == there.st_dev && self.st_ino == there.st_ino;
  return same ? path : kSelf;
}

// The variable may be gone: liblayertrace.so takes it away, and may be ready before us. But then
// that is loaded in front of us; one that the program links itself comes after.
bool was_started_again() {
  return !variable("LAYERTRACE_RUN_PRELOADED").empty() ||
         !folder_of("/liblayertrace.so.0", "/liblayertrace_run.so").empty();
}

void start_again(const std::string& own_folder, const std::string& torch_folder) {
  const std::string preload = variable("LD_PRELOAD");
  const std::string path = variable("LD_LIBRARY_PATH");
  // As they are now, for the program to hand on.
  setenv("LAYERTRACE_RUN_LD_PRELOAD", preload.c_str(), 1);
  setenv("LAYERTRACE_RUN_LD_LIBRARY_PATH", path.c_str(), 1);
  setenv("LD_PRELOAD", (own_folder + "/liblayertrace.so.0:" + preload).c_str(), 1);
  // The program's own LibTorch, before the one that layertrace was built against.
  setenv("LD_LIBRARY_PATH", (torch_folder + (path.empty() ? "" : ":" + path)).c_str(), 1);
  setenv("LAYERTRACE_RUN_PRELOADED", "1", 1);

  std::string words = read_file("/proc/self/cmdline");
  std::vector<char*> arguments;
  for (std::size_t i = 0; i < words.size(); i += std::strlen(words.c_str() + i) + 1)
    arguments.push_back(words.data() + i);
  arguments.push_back(nullptr);
  if (arguments.size() > 1) execv(own_program().c_str(), arguments.data());
  std::fprintf(stderr, "layertrace: nothing is recorded: the program could not be started again\n");
}

__attribute__((constructor)) void look() {
  if (variable("LAYERTRACE_RUN").empty() || was_started_again()) return;
  const std::string torch_folder = folder_of("/libtorch_cpu.so");
  Dl_info own{};
  if (torch_folder.empty() || dladdr(reinterpret_cast<const void*>(&look), &own) == 0) return;
  const std::string_view file = own.dli_fname;
  start_again(std::string(file.substr(0, file.rfind('/'))), torch_folder);
}

}  // namespace
