# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DBINARY=<folder> -P deb.cmake: makes the Debian package in a folder that does not exist, as
# in a fresh checkout.

file(REMOVE_RECURSE "${BINARY}")
execute_process(COMMAND bash "${ROOT}/cmake/packaging/deb/create.sh" --no-test "${BINARY}" COMMAND_ERROR_IS_FATAL ANY)
file(GLOB packages "${BINARY}/libtunewright-dev_*_all.deb")
list(LENGTH packages count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${BINARY} has ${count} packages, 1 is expected")
endif()

# An archive of archives, which CMake reads where the system has no dpkg.
execute_process(COMMAND "${CMAKE_COMMAND}" -E tar xf "${packages}" WORKING_DIRECTORY "${BINARY}"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" -E tar tf data.tar.gz WORKING_DIRECTORY "${BINARY}"
  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
foreach(file IN ITEMS include/tunewright/tuner.hpp share/cmake/tunewright/tunewright-config.cmake
    share/doc/libtunewright-dev/copyright share/doc/libtunewright-dev/README.md
    share/doc/libtunewright-dev/examples/01_first_tuner.cpp)
  string(FIND "${listed}" "./usr/${file}\n" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "the package has no /usr/${file}; it has:\n${listed}")
  endif()
endforeach()
if(listed MATCHES "examples/CMakeLists.txt")
  message(FATAL_ERROR "the package has the examples' CMakeLists.txt, which nothing but this library's build can use")
endif()
