# How layertrace's own code is compiled. Nothing here reaches a program that uses the library.

option(LAYERTRACE_WERROR "Treat warnings as errors" OFF)
set(LAYERTRACE_SANITIZE "" CACHE STRING "Sanitizers for everything built here: \"address,undefined\", \"thread\" or \"\"")

if(LAYERTRACE_SANITIZE)
  add_compile_options(-fsanitize=${LAYERTRACE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LAYERTRACE_SANITIZE})
  if(LAYERTRACE_SANITIZE MATCHES "undefined")
    # vptr wants the type information of LibTorch's classes, some of which it does not export.
    add_compile_options(-fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
endif()

# ccache, where there is one. Without these allowances it passes over every file that uses a precompiled header.
find_program(LAYERTRACE_CCACHE ccache)
mark_as_advanced(LAYERTRACE_CCACHE)
if(LAYERTRACE_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LAYERTRACE_CCACHE})
  set(LAYERTRACE_PCH_OPTIONS -fpch-preprocess)
endif()

function(layertrace_compile_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
    $<$<BOOL:${LAYERTRACE_WERROR}>:-Werror>
    # One code model for libraries and programs alike: a precompiled header fits only what was compiled as it was.
    -fPIC -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    DEFINE_SYMBOL "")
endfunction()
