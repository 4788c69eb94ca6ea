# cmake --install build --prefix DIR: bin/layertrace, and find_package(layertrace) with layertrace::layertrace.
include(CMakePackageConfigHelpers)

if(TARGET layertrace_command)
  install(TARGETS layertrace_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(NOT LAYERTRACE_TORCH)
  return()
endif()

set(LAYERTRACE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/layertrace)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/layertrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET layertrace_run)
  install(TARGETS layertrace_run LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS layertrace EXPORT layertrace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT layertrace NAMESPACE layertrace:: FILE layertraceTargets.cmake DESTINATION ${LAYERTRACE_PACKAGE_DIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/layertraceConfig.cmake.in
  ${PROJECT_BINARY_DIR}/layertraceConfig.cmake INSTALL_DESTINATION ${LAYERTRACE_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/layertraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/layertraceConfig.cmake
  ${PROJECT_BINARY_DIR}/layertraceConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/LayertracePython.cmake
  ${CMAKE_CURRENT_LIST_DIR}/LayertraceTorch.cmake
  ${CMAKE_CURRENT_LIST_DIR}/LayertraceTorchDir.cmake
  DESTINATION ${LAYERTRACE_PACKAGE_DIR})
