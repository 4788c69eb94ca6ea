// The fault "no_cupti": a library of that name cannot be loaded while the program runs. With
// "ancient_cupti", the one that is loaded already can. It is preloaded only where one of them was
// asked for, since it comes between a program and its dlopen().
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

thread_local std::string last_error;

bool leaves_the_loaded_one() {
  const char* faults = std::getenv("SIMGPU_FAULTS");
  return faults != nullptr &&
         std::string_view(faults).find("ancient_cupti") != std::string_view::npos;
}

bool is_hidden(const char* file, int mode) {
  if (file == nullptr || std::string_view(file).find("libcupti") == std::string_view::npos)
    return false;
  return (mode & RTLD_NOLOAD) == 0 || !leaves_the_loaded_one();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* file,
                                                               int mode) noexcept {
  using Dlopen = void* (*)(const char*, int);
  static const auto original = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  if (is_hidden(file, mode)) {
    last_error = std::string(file) +
                 ": cannot open shared object file: No such file or directory (SIMGPU_FAULTS)";
    return nullptr;
  }
  return original(file, mode);
}

extern "C" __attribute__((visibility("default"))) char* dlerror() noexcept {
  using Dlerror = char* (*)();
  static const auto original = reinterpret_cast<Dlerror>(dlsym(RTLD_NEXT, "dlerror"));
  if (last_error.empty()) return original();
  static thread_local std::string told;
  told.swap(last_error);
  last_error.clear();
  return told.data();
}
