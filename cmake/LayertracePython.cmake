# layertrace_find_python(VARIABLE): the Python to ask for torch and to run build scripts with; "" if there is none.
include_guard(GLOBAL)

set(LAYERTRACE_PYTHON "$ENV{LAYERTRACE_PYTHON}" CACHE FILEPATH "The Python whose torch is used; empty: .venv, or python3")

function(layertrace_find_python result)
  find_program(LAYERTRACE_SYSTEM_PYTHON python3)
  mark_as_advanced(LAYERTRACE_SYSTEM_PYTHON)
  set(${result} "" PARENT_SCOPE)
  foreach(candidate "${LAYERTRACE_PYTHON}" "${PROJECT_SOURCE_DIR}/.venv/bin/python" "${LAYERTRACE_SYSTEM_PYTHON}")
    if(candidate AND EXISTS "${candidate}")
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
