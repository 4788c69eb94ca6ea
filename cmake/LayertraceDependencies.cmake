# fmt and nlohmann_json: as CMake packages where there are such (Debian's, for one), else their headers from the Python
# environment that pip builds in: torch carries fmt's, the package nlohmann-json its own. So `pip install .` needs
# nothing from the system but a compiler.

find_package(fmt QUIET)
if(NOT TARGET fmt::fmt)
  layertrace_find_torch_dir(torch_dir)
  if(NOT EXISTS ${torch_dir}/include/fmt/format.h)
    message(FATAL_ERROR "layertrace: no fmt. Run scripts/setup, or install what Debian calls libfmt-dev.")
  endif()
  # A folder of its own: LibTorch's other headers are not for those that only format text.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/fmt)
  file(CREATE_LINK ${torch_dir}/include/fmt ${PROJECT_BINARY_DIR}/generated/fmt/fmt SYMBOLIC)
  add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
  target_include_directories(fmt::fmt INTERFACE ${PROJECT_BINARY_DIR}/generated/fmt)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
endif()

find_package(nlohmann_json QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(python ${LAYERTRACE_BUILD_PYTHON})
  if(NOT python)
    layertrace_find_python(python)
  endif()
  execute_process(COMMAND ${python} -c "import nlohmann_json, os; print(os.path.dirname(nlohmann_json.__file__))"
                  OUTPUT_VARIABLE json_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT EXISTS ${json_dir}/include/nlohmann/json.hpp)
    message(FATAL_ERROR "layertrace: no nlohmann_json. Run scripts/setup, or install what Debian calls "
                        "nlohmann-json3-dev, or the Python package nlohmann-json.")
  endif()
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${json_dir}/include)
endif()
