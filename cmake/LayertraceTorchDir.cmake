# layertrace_find_torch_dir(VARIABLE): LibTorch's folder, or "".
include_guard(GLOBAL)

set(LAYERTRACE_TORCH_DIR "" CACHE PATH "LibTorch's folder (include/, lib/); empty: ask LAYERTRACE_PYTHON, .venv or python3")
include(${CMAKE_CURRENT_LIST_DIR}/LayertracePython.cmake)

# Looks the package up without importing it, which would take seconds.
function(layertrace_find_torch_dir result)
  set(${result} "" PARENT_SCOPE)
  if(LAYERTRACE_TORCH_DIR)
    set(${result} ${LAYERTRACE_TORCH_DIR} PARENT_SCOPE)
    return()
  endif()
  if(NOT LAYERTRACE_PYTHON AND EXISTS "${LAYERTRACE_BUILT_WITH_TORCH_DIR}/lib/libtorch.so")  # an installed layertrace
    set(${result} ${LAYERTRACE_BUILT_WITH_TORCH_DIR} PARENT_SCOPE)
    return()
  endif()
  layertrace_find_python(python)
  if(python)
    execute_process(
      COMMAND ${LAYERTRACE_WITHOUT_ISOLATION} ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE directory OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(${result} "${directory}" PARENT_SCOPE)
  endif()
endfunction()
