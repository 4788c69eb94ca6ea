#include "activity/library_places.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

namespace layertrace::cuda {
namespace {

namespace fs = std::filesystem;

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The versions whose names are tried where no folder can be listed, the newest first.
constexpr std::string_view kEndings[] = {".so.13", ".so.12", ".so"};

// The library's files in a folder: those with the names that programs ask for first.
void add_folder(const fs::path& folder, const WantedLibrary& library,
                std::vector<std::string>& places) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_named(entry.path().filename().string(), library)) found.push_back(entry.path().string());
  }
  const auto rank = [&](const std::string& path) {
    const auto same = [&](std::string_view ending) {
      return file_name(path) == std::string(library.stem).append(ending);
    };
    return std::ranges::find_if(kEndings, same) - std::begin(kEndings);
  };
  std::ranges::sort(found, [&](const std::string& left, const std::string& right) {
    return rank(left) != rank(right) ? rank(left) < rank(right) : left > right;
  });
  places.insert(places.end(), found.begin(), found.end());
}

void add_torch(const fs::path& lib, const WantedLibrary& library,
               std::vector<std::string>& places) {
  add_folder(lib, library, places);  // LibTorch's zip
  const fs::path wheels = lib.parent_path().parent_path() / "nvidia";
  add_folder(wheels / "cu13" / "lib", library, places);
  add_folder(wheels / library.wheel / "lib", library, places);
}

void add_toolkit(const fs::path& home, const WantedLibrary& library,
                 std::vector<std::string>& places) {
  if (!library.extra.empty()) add_folder(home / library.extra, library, places);
  add_folder(home / "lib64", library, places);
  add_folder(home / "lib", library, places);  // conda's
}

}  // namespace

bool is_named(std::string_view file, const WantedLibrary& library) {
  if (!file.starts_with(library.stem)) return false;
  file.remove_prefix(library.stem.size());
  return file.starts_with(".so") ||
         (file.starts_with('-') && file.find(".so") != std::string_view::npos);
}

std::vector<std::string> library_places(const WantedLibrary& library,
                                        const std::string& torch_folder,
                                        const GetVariable& environment) {
  std::vector<std::string> places;
  if (!torch_folder.empty()) add_torch(torch_folder, library, places);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"}) {
    const char* home = environment(variable);
    if (home != nullptr && *home != '\0') add_toolkit(home, library, places);
  }
  add_toolkit("/usr/local/cuda", library, places);
  for (const std::string_view ending : kEndings)
    places.push_back(std::string(library.stem).append(ending));
  return places;
}

std::string path_of_library(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : "";
}

std::string torch_folder_of(const std::vector<std::string>& loaded) {
  for (const std::string& path : loaded) {
    if (file_name(path) == "libtorch_cpu.so") return fs::path(path).parent_path().string();
  }
  return "";
}

void* open_library(const WantedLibrary& library, const std::vector<std::string>& loaded,
                   const std::vector<std::string>& places,
                   const std::function<bool(void*)>& serves) {
  // By path: a copy with a hash in its name is known to the loader by no other.
  for (const std::string& path : loaded) {
    if (!is_named(file_name(path), library)) continue;
    void* opened = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (opened != nullptr && serves(opened)) return opened;
  }
  for (const std::string& path : places) {
    void* opened = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (opened != nullptr && serves(opened)) return opened;
  }
  return nullptr;
}

}  // namespace layertrace::cuda
