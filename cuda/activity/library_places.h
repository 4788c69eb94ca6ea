// Where CUDA's libraries may be. The same file has many homes: NVIDIA's wheels beside torch (one
// folder for all since CUDA 13, one for each before), LibTorch's zip, which carries a copy with a
// hash in its name, the toolkit, conda, a package of the distribution.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "activity/cuda_environment.h"

namespace layertrace::cuda {

struct WantedLibrary {
  std::string_view stem;   // "libcupti"
  std::string_view wheel;  // its folder in the wheels of CUDA 12: "cuda_cupti"
  std::string_view extra;  // its own folder in a toolkit, "" if it has none
};
inline constexpr WantedLibrary kCupti{"libcupti", "cuda_cupti", "extras/CUPTI/lib64"};
inline constexpr WantedLibrary kRuntime{"libcudart", "cuda_runtime", ""};

// The file name of such a library: libcupti.so.13, libcupti-4af2d9c1.so.12; not libcupti_static.a.
bool is_named(std::string_view file, const WantedLibrary& library);

// What dlopen is to try, in this order: beside torch (`torch_folder` is its lib/, "" if unknown),
// in toolkits, on the loader's own path. Files are named only if they are there.
std::vector<std::string> library_places(const WantedLibrary& library,
                                        const std::string& torch_folder,
                                        const GetVariable& environment);

// Where an open library was loaded from.
std::string path_of_library(void* library);

// The lib/ folder of the torch that is loaded, "" where none is.
std::string torch_folder_of(const std::vector<std::string>& loaded);

// Opens one after the other, those that this process has loaded and then those of `places`, until
// one `serves`. nullptr if none does. What was opened in vain stays open: not every library of
// NVIDIA's can be closed.
void* open_library(const WantedLibrary& library, const std::vector<std::string>& loaded,
                   const std::vector<std::string>& places,
                   const std::function<bool(void*)>& serves);

}  // namespace layertrace::cuda
