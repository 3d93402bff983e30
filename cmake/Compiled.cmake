# SPDX-License-Identifier: Apache-2.0
# Separate compilation: a static library for each component, made of what is no template. They are built in the
# consumer's own build, from the headers, and only if something links them. The build and the installed package read
# this file.
#
#   tunewright_add_compiled(<component> <include directory> [<needed component>...])
#       tunewright::<component>_compiled, which brings tunewright::<component> and the compiled form of what it needs,
#       and defines TUNEWRIGHT_SEPARATE_COMPILATION for whoever links it.
#   tunewright_precompile_headers(<target> [<header>...])
#       Precompiles the standard headers that every program of the library includes, and the given headers of it, once
#       for all sources of the target.

function(tunewright_add_compiled component include)
  set(target tunewright_${component}_compiled)
  if(TARGET ${target})
    return()
  endif()
  if(NOT EXISTS "${include}/tunewright/src/core.hpp")
    message(FATAL_ERROR "there are no headers of tunewright in ${include}")
  endif()
  set(public "tunewright::${component}")
  if(component STREQUAL "core")
    set(public tunewright::tunewright)
  endif()
  # One source for each unit, so that they are compiled side by side. A component of templates alone has none.
  set(source_header "${include}/tunewright/src/${component}.hpp")
  set(lines "")
  if(EXISTS "${source_header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source_header}")
    file(STRINGS "${source_header}" lines REGEX "^#if TUNEWRIGHT_DEFINES\\(")
  endif()
  set(sources "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#if TUNEWRIGHT_DEFINES\\(([a-z_]+)\\)$" "\\1" unit "${line}")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/tunewright_compiled/${component}_${unit}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT
      "#define TUNEWRIGHT_COMPILES TUNEWRIGHT_UNIT_${unit}\n#include \"tunewright/src/${component}.hpp\"\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  if(sources)
    add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_SCAN_FOR_MODULES OFF)
    set(reach PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(reach INTERFACE)
  endif()
  add_library(tunewright::${component}_compiled ALIAS ${target})
  target_compile_definitions(${target} ${reach} TUNEWRIGHT_SEPARATE_COMPILATION)
  target_link_libraries(${target} ${reach} ${public})
  foreach(other IN LISTS ARGN)
    target_link_libraries(${target} ${reach} tunewright::${other}_compiled)
  endforeach()
endfunction()

function(tunewright_precompile_headers target)
  set(quoted "")
  foreach(header IN LISTS ARGN)
    list(APPEND quoted "\"${header}\"")
  endforeach()
  target_precompile_headers(${target} PRIVATE "\"tunewright/src/precompiled.hpp\"" ${quoted})
endfunction()
