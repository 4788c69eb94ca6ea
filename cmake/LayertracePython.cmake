# layertrace_find_python(VARIABLE): the Python to ask for torch and to run build scripts with; "" if there is none.
include_guard(GLOBAL)

set(LAYERTRACE_PYTHON "$ENV{LAYERTRACE_PYTHON}" CACHE FILEPATH "The Python whose torch is used; empty: .venv, or python3")

# pip builds in an environment of its own, by way of PYTHONPATH. The torch to build against is not there, but in the
# environment that pip installs into, whose Python runs the build; the packages to build with are asked of
# LAYERTRACE_BUILD_PYTHON.
if(SKBUILD AND NOT LAYERTRACE_PYTHON)
  set(LAYERTRACE_PYTHON ${Python_EXECUTABLE})
endif()
if(SKBUILD)
  set(LAYERTRACE_BUILD_PYTHON ${Python_EXECUTABLE})
  set(LAYERTRACE_WITHOUT_ISOLATION ${CMAKE_COMMAND} -E env --unset=PYTHONPATH --unset=PYTHONNOUSERSITE)
endif()

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
