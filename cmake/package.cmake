# The installed package: find_package(Tallow) gives Tallow::tallow for C++ and Tallow::tallow_c, a shared library, for C
# and other languages. tests/package_test.cmake installs it, then builds and runs examples against it.
include(CMakePackageConfigHelpers)

add_library(tallow INTERFACE)
add_library(Tallow::tallow ALIAS tallow)
target_sources(tallow INTERFACE FILE_SET HEADERS
  BASE_DIRS ${PROJECT_SOURCE_DIR}/include
  FILES     ${PROJECT_SOURCE_DIR}/include/tl/tl.h)
target_link_libraries(tallow INTERFACE tl::base tl::runtime tl::kernels tl::tensor tl::ops tl::quant tl::grad
  tl::model tl::logic tl::lang)

set(tl_package_targets tl_strict tl_base tl_runtime tl_kernels tl_tensor tl_ops tl_quant tl_grad
  tl_model tl_logic tl_lang)
foreach(target IN LISTS tl_package_targets)
  string(REPLACE "tl_" "" short_name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${short_name})
endforeach()
# Archives get a prefix on disk: libtl_base.a, not a libbase.a that could be anyone's.
set(tl_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tallow)

install(TARGETS tallow tallow_c ${tl_package_targets}
  EXPORT TallowTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT TallowTargets NAMESPACE Tallow:: DESTINATION ${tl_config_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TallowConfig.cmake.in
  ${CMAKE_BINARY_DIR}/TallowConfig.cmake INSTALL_DESTINATION ${tl_config_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TallowConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TallowConfig.cmake ${CMAKE_BINARY_DIR}/TallowConfigVersion.cmake
  DESTINATION ${tl_config_dir})
# What commands use when no model is named; src/cli/default_model.cpp looks for it there.
install(FILES ${PROJECT_SOURCE_DIR}/models/nano/tallow-nano.gguf
  DESTINATION ${CMAKE_INSTALL_DATADIR}/tallow/models OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
