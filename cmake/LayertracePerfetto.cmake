# The Perfetto SDK, compiled once and shared by all build folders (see perfetto-sdk/build):
#
#   layertrace::perfetto_headers    perfetto.h, for the sources of src/perfetto
#   layertrace::perfetto_sdk        the same and the code, for what links those sources

set(LAYERTRACE_PERFETTO_SDK "$ENV{LAYERTRACE_PERFETTO_SDK}" CACHE PATH
    "Folder with perfetto.h and perfetto.cc; empty: .deps/perfetto-sdk, which scripts/setup fills")

function(layertrace_add_perfetto)
  set(deps_dir ${PROJECT_SOURCE_DIR}/.deps/perfetto-sdk)
  set(sdk_dir ${deps_dir})
  if(LAYERTRACE_PERFETTO_SDK)
    get_filename_component(sdk_dir ${LAYERTRACE_PERFETTO_SDK} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  endif()
  foreach(file perfetto.h perfetto.cc)
    if(NOT EXISTS ${sdk_dir}/${file})
      message(FATAL_ERROR "layertrace: ${sdk_dir} has no ${file}. Run scripts/setup, which fetches the Perfetto SDK, "
                          "or set LAYERTRACE_PERFETTO_SDK to a folder with perfetto.h and perfetto.cc.")
    endif()
  endforeach()

  set(build ${PROJECT_SOURCE_DIR}/cmake/perfetto-sdk/build)
  set(arguments ${sdk_dir} ${deps_dir} ${CMAKE_CXX_COMPILER})
  execute_process(COMMAND ${build} --print ${arguments} OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)

  add_custom_command(OUTPUT ${archive}
    COMMAND ${build} ${arguments}
    COMMENT "Perfetto SDK (90 s, once)"
    VERBATIM)
  add_custom_target(layertrace_perfetto_archive DEPENDS ${archive})

  add_library(layertrace::perfetto_headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(layertrace::perfetto_headers INTERFACE ${sdk_dir})

  add_library(layertrace::perfetto_sdk STATIC IMPORTED GLOBAL)
  set_target_properties(layertrace::perfetto_sdk PROPERTIES IMPORTED_LOCATION ${archive})
  target_link_libraries(layertrace::perfetto_sdk INTERFACE layertrace::perfetto_headers Threads::Threads)
  add_dependencies(layertrace::perfetto_sdk layertrace_perfetto_archive)
endfunction()

layertrace_add_perfetto()
