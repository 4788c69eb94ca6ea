# cmake -D BUILD_DIR=… -D WORK_DIR=… -P run.cmake: installs the build into a fresh prefix, then configures, builds and
# runs the program beside this file against it.
set(prefix ${WORK_DIR}/prefix)
set(consumer_build ${WORK_DIR}/build)
file(REMOVE_RECURSE ${WORK_DIR})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${consumer_build} -G Ninja -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${consumer_build})

# liblayertrace.so must be asked for a symbol before libtorch is.
execute_process(COMMAND readelf -dW ${consumer_build}/consumer OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]*\\]" needed "${dynamic}")
list(GET needed 0 first)
if(NOT first MATCHES "liblayertrace\\.so" OR NOT "${needed}" MATCHES "libtorch_cpu\\.so")
  message(FATAL_ERROR "liblayertrace.so must come first, and libtorch_cpu.so after it:\n${dynamic}")
endif()

run(${consumer_build}/consumer)
run(${prefix}/bin/layertrace --version)
run(${prefix}/bin/layertrace simgpu -- ${CMAKE_COMMAND} -E true)
