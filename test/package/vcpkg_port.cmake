# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DBINARY=<folder> -DGENERATOR=<name> -DCOMPILER=<path> -DCOMPONENTS=<found>|...
#   -P vcpkg_port.cmake
#
# Runs the overlay port without vcpkg: what its portfile calls is defined here, by vcpkg's documentation of it. The port
# is installed without a feature, and with all features whose library this system has; a project finds these in what was
# installed. Manifests, portfile and usage must name the same features.

cmake_minimum_required(VERSION 3.24)
string(REPLACE "|" ";" found "${COMPONENTS}")
set(PORT tunewright)
set(port_folder "${ROOT}/cmake/packaging/vcpkg/ports/${PORT}")

# The features of a manifest.
function(read_features out file)
  file(READ "${file}" text)
  string(JSON count LENGTH "${text}" features)
  math(EXPR last "${count} - 1")
  set(names "")
  foreach(i RANGE ${last})
    string(JSON name MEMBER "${text}" features ${i})
    list(APPEND names ${name})
  endforeach()
  list(SORT names)
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

file(STRINGS "${ROOT}/CMakeLists.txt" version REGEX "^ *VERSION [0-9.]+$")
string(REGEX REPLACE "[^0-9.]" "" version "${version}")
foreach(manifest IN ITEMS "${ROOT}/vcpkg.json" "${port_folder}/vcpkg.json")
  file(READ "${manifest}" text)
  string(JSON written GET "${text}" version-semver)
  if(NOT written STREQUAL version)
    message(FATAL_ERROR "${manifest} has version ${written}, CMakeLists.txt has ${version}")
  endif()
endforeach()
read_features(features "${port_folder}/vcpkg.json")
read_features(of_checkout "${ROOT}/vcpkg.json")
list(REMOVE_ITEM of_checkout tests bench)
if(NOT of_checkout STREQUAL features)
  message(FATAL_ERROR "vcpkg.json has the features ${of_checkout} besides tests and bench, the port has ${features}")
endif()
# Boost has a port for each of its libraries, and those that ports bring along differ from version to version.
file(GLOB_RECURSE headers "${ROOT}/include/tunewright/*.hpp")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" lines REGEX "^#include <boost/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include <boost/([a-z_]+)/.*" "\\1" library "${line}")
    string(REPLACE "_" "-" library "boost-${library}")
    foreach(manifest IN ITEMS "${ROOT}/vcpkg.json" "${port_folder}/vcpkg.json")
      file(READ "${manifest}" text)
      string(JSON needed GET "${text}" features graph dependencies)
      if(NOT needed MATCHES "\"${library}\"")
        message(FATAL_ERROR "feature graph of ${manifest} does not depend on ${library}, which ${header} includes")
      endif()
    endforeach()
  endforeach()
endforeach()
file(READ "${port_folder}/usage" usage)
foreach(feature IN LISTS features)
  if(NOT usage MATCHES "[ ,]${feature}[,)\n]")
    message(FATAL_ERROR "${port_folder}/usage does not name the component ${feature}")
  endif()
endforeach()

# What the portfile calls.

function(vcpkg_check_features)
  cmake_parse_arguments(arg "" "OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
  set(options "")
  set(known "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature variable)
    list(APPEND known ${feature})
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${variable}=ON")
    else()
      list(APPEND options "-D${variable}=OFF")
    endif()
  endwhile()
  list(SORT known)
  if(NOT known STREQUAL features)
    message(FATAL_ERROR "portfile.cmake knows the features ${known}, vcpkg.json has ${features}")
  endif()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DCMAKE_BUILD_TYPE=Release
    ${arg_OPTIONS} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${CURRENT_BUILDTREES_DIR}" --target install
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

# Moves the package files to share/<port>; the prefix is then two folders above them.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(arg "" "CONFIG_PATH" "" ${ARGN})
  set(place "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*")
  file(COPY ${files} DESTINATION "${place}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
  set(up [[get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)]])
  file(GLOB files "${place}/*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REPLACE [[get_filename_component(PACKAGE_PREFIX_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)]]
      [[get_filename_component(PACKAGE_PREFIX_DIR "${CMAKE_CURRENT_LIST_DIR}/../../" ABSOLUTE)]] text "${text}")
    string(REPLACE "${up}\n${up}\n${up}\n" "${up}\n${up}\n" text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
  file(INSTALL "${arg_FILE_LIST}" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

# Includes the portfile as vcpkg does, which tells it where it is.
function(install_port name)
  set(FEATURES core ${ARGN})
  set(CURRENT_BUILDTREES_DIR "${BINARY}/${name}/build")
  set(CURRENT_PACKAGES_DIR "${BINARY}/${name}/prefix")
  include("${port_folder}/portfile.cmake")
endfunction()

file(REMOVE_RECURSE "${BINARY}")
set(usable "")
foreach(feature IN LISTS features)
  if(feature IN_LIST found)
    list(APPEND usable ${feature})
  endif()
endforeach()
install_port(nothing)
install_port(everything ${usable})

foreach(name IN ITEMS nothing everything)
  set(prefix "${BINARY}/${name}/prefix")
  foreach(file IN ITEMS copyright usage tunewright-config.cmake)
    if(NOT EXISTS "${prefix}/share/${PORT}/${file}")
      message(FATAL_ERROR "the port installs no share/${PORT}/${file}")
    endif()
  endforeach()
  # The post-build checks of vcpkg refuse these.
  foreach(folder IN ITEMS debug lib bin share/cmake)
    if(EXISTS "${prefix}/${folder}")
      message(FATAL_ERROR "the port installs ${folder}")
    endif()
  endforeach()
  file(GLOB files "${prefix}/share/${PORT}/*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(FIND "${text}" "${prefix}" position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${file} has the absolute path of the folder that it was made in")
    endif()
  endforeach()
endforeach()

# Elsewhere, as vcpkg copies what it made; every component whose library the system has is found.
file(RENAME "${BINARY}/everything/prefix" "${BINARY}/installed")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${ROOT}/test/package/find_package" -B "${BINARY}/consumer"
  -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${BINARY}/installed" "-DEXPECTED_COMPONENTS=${usable}"
  COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${BINARY}/consumer/CMakeCache.txt" place REGEX "^tunewright_DIR:")
if(NOT place MATCHES "=${BINARY}/installed/share/${PORT}$")
  message(FATAL_ERROR "the project found another package: ${place}")
endif()
