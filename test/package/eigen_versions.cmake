# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DBINARY=<folder> -P eigen_versions.cmake: the component eigen takes Eigen 3.4 and 5, whose
# packages accept requests for their own major version alone. The packages are made here, without headers.

cmake_minimum_required(VERSION 3.24)
include(CMakePackageConfigHelpers)
include("${ROOT}/cmake/Dependencies.cmake")

# Eigen of the system stays out of it.
foreach(place IN ITEMS CMAKE_SYSTEM_PATH CMAKE_ENVIRONMENT_PATH SYSTEM_ENVIRONMENT_PATH PACKAGE_ROOT_PATH)
  set(CMAKE_FIND_USE_${place} FALSE)
endforeach()
file(REMOVE_RECURSE "${BINARY}")
foreach(case IN ITEMS 3.3.9=refused 3.4.0=taken 3.4.1=taken 5.0.1=taken 6.0.0=refused)
  string(REPLACE "=" ";" case "${case}")
  list(POP_FRONT case version expected)
  set(CMAKE_PREFIX_PATH "${BINARY}/${version}")
  set(package "${CMAKE_PREFIX_PATH}/share/eigen3/cmake")
  file(WRITE "${package}/Eigen3Config.cmake" "")
  write_basic_package_version_file("${package}/Eigen3ConfigVersion.cmake" VERSION ${version}
    COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
  unset(Eigen3_DIR CACHE)
  tunewright_find_library(eigen)
  set(answer refused)
  if(tunewright_eigen_library)
    set(answer taken)
  endif()
  if(NOT answer STREQUAL expected)
    message(FATAL_ERROR "Eigen ${version} is ${answer}, and should be ${expected}")
  endif()
endforeach()
