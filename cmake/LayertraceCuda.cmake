# layertrace::cuda_headers: the CUDA, CUPTI and NVTX headers, from a CUDA toolkit where there is one, else from the
# wheels that torch brought. Headers only: the libraries are loaded while the program runs. Not there if neither is.
# Beside the torch that LayertraceTorch.cmake found (LAYERTRACE_TORCH_LIBRARY_DIR), or the one that a Python has.

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  set(cuda_include_dirs ${CUDAToolkit_INCLUDE_DIRS})
  if(TARGET CUDA::cupti)
    get_target_property(cupti_include_dirs CUDA::cupti INTERFACE_INCLUDE_DIRECTORIES)
    list(APPEND cuda_include_dirs ${cupti_include_dirs})
  endif()
  set(cuda_source "CUDA toolkit ${CUDAToolkit_VERSION}")
else()
  set(site_packages "")
  if(LAYERTRACE_TORCH_LIBRARY_DIR)
    cmake_path(GET LAYERTRACE_TORCH_LIBRARY_DIR PARENT_PATH torch_dir)
    cmake_path(GET torch_dir PARENT_PATH site_packages)
  else()
    layertrace_find_python(python)
    if(python)
      execute_process(COMMAND ${python} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
        OUTPUT_VARIABLE site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
  file(GLOB cuda_include_dirs "${site_packages}/nvidia/cu[0-9]*/include")
  set(cuda_source "the wheels beside torch")
endif()

# The runtime's own header includes one that the wheels beside torch do not bring (nvidia-cuda-crt does).
find_path(LAYERTRACE_CUDA_CRT_DIR crt/host_defines.h PATHS ${cuda_include_dirs} NO_DEFAULT_PATH)
mark_as_advanced(LAYERTRACE_CUDA_CRT_DIR)

# The simulated device is of one version, whose structures its clients expect.
set(cuda_version "")
find_file(LAYERTRACE_CUDA_RUNTIME_HEADER cuda_runtime_api.h PATHS ${cuda_include_dirs} NO_DEFAULT_PATH)
mark_as_advanced(LAYERTRACE_CUDA_RUNTIME_HEADER)
if(LAYERTRACE_CUDA_RUNTIME_HEADER)
  file(STRINGS ${LAYERTRACE_CUDA_RUNTIME_HEADER} cuda_version REGEX "define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE "[^0-9]+" "" cuda_version "${cuda_version}")
endif()
find_file(LAYERTRACE_CUPTI_HEADER cupti.h PATHS ${cuda_include_dirs} NO_DEFAULT_PATH)
mark_as_advanced(LAYERTRACE_CUPTI_HEADER)

if(NOT cuda_version MATCHES "^13")
  message(STATUS "layertrace: no headers of CUDA 13 (found '${cuda_version}'): without the simulated device")
elseif(LAYERTRACE_CUDA_CRT_DIR AND LAYERTRACE_CUPTI_HEADER)
  add_library(layertrace::cuda_headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(layertrace::cuda_headers INTERFACE ${cuda_include_dirs})
  message(STATUS "layertrace: CUDA headers from ${cuda_source}")
else()
  message(STATUS "layertrace: not all CUDA headers (pip install nvidia-cuda-crt nvidia-cuda-cupti): without the simulated device")
endif()
