# layertrace::torch: LibTorch's headers and libraries, taken from the first of
#
#   1. the target `torch`, where the including project has called find_package(Torch);
#   2. LAYERTRACE_TORCH_DIR: an unpacked LibTorch, or a site-packages/torch;
#   3. the torch that a Python has: LAYERTRACE_PYTHON, the project's .venv, or python3.
#
# Not by find_package(Torch): the pip wheel's own CMake files ask for a CUDA toolkit, which the wheel does not carry
# whole (seen with 2.15.0). Part of the installed package as well, so it refers to nothing of layertrace's sources.
#
# Sets LAYERTRACE_TORCH_LIBRARY_DIR and LAYERTRACE_TORCH_VERSION (empty where unknown).
include_guard(GLOBAL)

include(${CMAKE_CURRENT_LIST_DIR}/LayertraceTorchDir.cmake)

# From LibTorch's own version.h; "" where it has none.
function(layertrace_read_torch_version include_dirs result)
  set(${result} "" PARENT_SCOPE)
  foreach(directory ${include_dirs})
    foreach(header torch/headeronly/version.h torch/version.h)
      if(EXISTS ${directory}/${header})
        file(STRINGS ${directory}/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
        if(lines)
          list(TRANSFORM lines REPLACE "[^0-9]+" "")
          list(JOIN lines "." version)
          set(${result} ${version} PARENT_SCOPE)
          return()
        endif()
      endif()
    endforeach()
  endforeach()
endfunction()

function(layertrace_add_torch_from_target)
  add_library(layertrace::torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(layertrace::torch INTERFACE torch)
  if(TORCH_INCLUDE_DIRS)
    target_include_directories(layertrace::torch INTERFACE ${TORCH_INCLUDE_DIRS})
  endif()
  get_target_property(library torch IMPORTED_LOCATION)
  if(NOT library AND TORCH_LIBRARY)
    set(library ${TORCH_LIBRARY})
  endif()
  get_filename_component(directory "${library}" DIRECTORY)
  layertrace_read_torch_version("${TORCH_INCLUDE_DIRS}" version)
  set(LAYERTRACE_TORCH_LIBRARY_DIR "${directory}" PARENT_SCOPE)
  set(LAYERTRACE_TORCH_VERSION "${version}" PARENT_SCOPE)
  message(STATUS "layertrace: LibTorch ${version} from the target `torch`")
endfunction()

function(layertrace_add_torch_from_directory directory)
  set(include_dirs ${directory}/include ${directory}/include/torch/csrc/api/include)
  foreach(name torch torch_cpu c10)
    add_library(layertrace::lib${name} SHARED IMPORTED GLOBAL)
    set_target_properties(layertrace::lib${name} PROPERTIES
      IMPORTED_LOCATION ${directory}/lib/lib${name}.so
      IMPORTED_SONAME lib${name}.so)
  endforeach()

  # --no-as-needed: libtorch.so has no symbol that a program uses, but brings the CUDA backend in when it is loaded.
  add_library(layertrace::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(layertrace::torch INTERFACE ${include_dirs})
  target_link_libraries(layertrace::torch INTERFACE
    -Wl,--push-state,--no-as-needed layertrace::libtorch layertrace::libtorch_cpu layertrace::libc10
    -Wl,--pop-state)
  target_compile_features(layertrace::torch INTERFACE cxx_std_20)

  layertrace_read_torch_version("${include_dirs}" version)
  set(LAYERTRACE_TORCH_LIBRARY_DIR ${directory}/lib PARENT_SCOPE)
  set(LAYERTRACE_TORCH_VERSION "${version}" PARENT_SCOPE)
  message(STATUS "layertrace: LibTorch ${version} from ${directory}")
endfunction()

if(NOT TARGET layertrace::torch)
  if(TARGET torch)
    layertrace_add_torch_from_target()
  else()
    layertrace_find_torch_dir(LAYERTRACE_FOUND_TORCH_DIR)
    if(EXISTS "${LAYERTRACE_FOUND_TORCH_DIR}/lib/libtorch.so")
      layertrace_add_torch_from_directory(${LAYERTRACE_FOUND_TORCH_DIR})
    endif()
  endif()
endif()
