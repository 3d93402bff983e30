# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DBINARY=<folder> -DGENERATOR=<name> -DCOMPILER=<path> -P conan_sources.cmake
#
# Conan builds the package from the files that conanfile.py exports and no others. Here they are copied, configured with
# every component off as the recipe does it, and installed, without Conan.

file(REMOVE_RECURSE "${BINARY}")
file(STRINGS "${ROOT}/conanfile.py" line REGEX "^ *exports_sources = ")
string(REGEX MATCHALL "\"[^\"]+\"" patterns "${line}")
if(NOT patterns)
  message(FATAL_ERROR "conanfile.py has no line 'exports_sources = ...' of quoted patterns")
endif()
foreach(pattern IN LISTS patterns)
  string(REPLACE "\"" "" pattern "${pattern}")
  if(pattern MATCHES "^!(.*)/\\*$")
    file(REMOVE_RECURSE "${BINARY}/source/${CMAKE_MATCH_1}")
  elseif(pattern MATCHES "^([a-z]+)/(\\*.*)$")
    file(COPY "${ROOT}/${CMAKE_MATCH_1}" DESTINATION "${BINARY}/source" FILES_MATCHING PATTERN "${CMAKE_MATCH_2}")
  else()
    file(COPY "${ROOT}/${pattern}" DESTINATION "${BINARY}/source")
  endif()
endforeach()

set(options "")
file(STRINGS "${ROOT}/CMakeLists.txt" lines REGEX "^tunewright_add_component")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^tunewright_add_component\\(([a-z]+) .*" "\\1" component "${line}")
  string(TOUPPER "${component}" component)
  list(APPEND options "-DTUNEWRIGHT_WITH_${component}=OFF")
endforeach()
list(REMOVE_ITEM options -DTUNEWRIGHT_WITH_CORE=OFF)
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${BINARY}/source" -B "${BINARY}/build" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_INSTALL_PREFIX=${BINARY}/prefix" ${options}
  -DTUNEWRIGHT_BUILD_TESTS=OFF -DTUNEWRIGHT_BUILD_EXAMPLES=OFF -DTUNEWRIGHT_BUILD_BENCH=OFF -DTUNEWRIGHT_BUILD_TOOLS=OFF
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BINARY}/build" COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
if(NOT EXISTS "${BINARY}/prefix/include/tunewright/tuner.hpp")
  message(FATAL_ERROR "no headers were installed in ${BINARY}/prefix")
endif()
