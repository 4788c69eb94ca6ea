# layertrace::cuda_headers: the CUDA, CUPTI and NVTX headers, from a CUDA toolkit where there is one, else from the
# wheels that torch brought. Headers only: the libraries are loaded while the program runs. Not there if neither is.
# Needs LAYERTRACE_TORCH_LIBRARY_DIR (LayertraceTorch.cmake).

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  set(cuda_include_dirs ${CUDAToolkit_INCLUDE_DIRS})
  if(TARGET CUDA::cupti)
    get_target_property(cupti_include_dirs CUDA::cupti INTERFACE_INCLUDE_DIRECTORIES)
    list(APPEND cuda_include_dirs ${cupti_include_dirs})
  endif()
  set(cuda_source "CUDA toolkit ${CUDAToolkit_VERSION}")
else()
  file(GLOB cuda_include_dirs "${LAYERTRACE_TORCH_LIBRARY_DIR}/../../nvidia/cu[0-9]*/include")
  set(cuda_source "the wheels beside torch")
endif()

# The runtime's own header includes one that the wheels beside torch do not bring (nvidia-cuda-crt does).
find_path(LAYERTRACE_CUDA_CRT_DIR crt/host_defines.h PATHS ${cuda_include_dirs} NO_DEFAULT_PATH)
mark_as_advanced(LAYERTRACE_CUDA_CRT_DIR)

if(cuda_include_dirs AND LAYERTRACE_CUDA_CRT_DIR)
  add_library(layertrace::cuda_headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(layertrace::cuda_headers INTERFACE ${cuda_include_dirs})
  message(STATUS "layertrace: CUDA headers from ${cuda_source}")
else()
  message(STATUS "layertrace: no CUDA headers, or not all (pip install nvidia-cuda-crt): without the simulated device")
endif()
