# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -P conventions.cmake: licence lines, include guards, the walls around external libraries,
# layers, and a page for each policy.

cmake_minimum_required(VERSION 3.24)

get_filename_component(ROOT "${ROOT}" ABSOLUTE)  # file(GLOB RELATIVE) finds nothing below "."
set(faults "")

# library prefix | where it may be included, relative to include/tunewright
set(walls
  "boost/|^(program|networks|schedule|loops)/"
  "nlohmann/|^data/"
  "isa-l/|^data/"
  "xtensor/|^reference/"
  "(unsupported/)?Eigen/|^(nn|models|adaptations|samplers)/"
  "benchmark/|^study/"
  "(onnx|google/protobuf)/|^networks/onnx/"
  "mpi\\.h|^measurers/mpi/world"
  "llvm(-c)?/|^(codegen/llvm[/._]|measurers/orc)"
  "(cuda|nvrtc)[a-z_]*\\.h|^(codegen/cuda|measurers/nvrtc)")

# The house from the ground up: headers of a folder include their own and those of folders that stand before it here, as
# do the headers beside the folders that are parts of the tuner. Umbrellas stand above all.
set(floors detail core json stats nn program schedule loops reference codegen spaces drafts features explorers measurers
  schedulers networks data models filters adaptations samplers recipe session multi_task_session multi_task_tuner tuner
  recipes study)

# Layers that may include less than all that stand before them
set(below_detail "")
set(below_core "")
set(below_json "")
set(below_stats core)
set(below_nn core)
set(below_program core json)
set(below_schedule core json program)
set(below_loops core program schedule)
set(below_reference core program)
set(below_codegen core program schedule loops)
set(below_networks core stats program schedule loops reference codegen spaces drafts)

set(umbrellas "(tunewright|policies|data|gzip|graph|reference|eigen|orc|mpi|onnx|nvrtc|study|recipes)")  # see umbrellas.cmake

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/tunewright" "${ROOT}/include/tunewright/*.hpp")
foreach(header IN LISTS headers)
  file(READ "${ROOT}/include/tunewright/${header}" text)
  string(REGEX MATCHALL "\n *#include \"tunewright/[a-z_0-9/]+\\.hpp\"" included_by_${header} "${text}")
  list(TRANSFORM included_by_${header} REPLACE "^\n *#include \"tunewright/(.*)\"$" "\\1")
  if(NOT text MATCHES "#pragma once")
    string(APPEND faults "  ${header}: no #pragma once\n")
  endif()
  foreach(wall IN LISTS walls)
    string(REGEX MATCH "^(.*)\\|(\\^.*)$" _ "${wall}")
    set(library "${CMAKE_MATCH_1}")
    set(allowed "${CMAKE_MATCH_2}")
    if(text MATCHES "\n *# *include <(${library}[^>]*)>" AND NOT header MATCHES "${allowed}")
      string(REGEX MATCH "\n *# *include <(${library}[^>]*)>" found "${text}")
      string(STRIP "${found}" found)
      string(APPEND faults "  ${header}: '${found}' outside of its wall ${allowed}\n")
    endif()
  endforeach()
  # Arrows point one way: a header of a layer includes its own and those below.
  string(REGEX REPLACE "[/.].*" "" layer "${header}")
  list(FIND floors ${layer} floor)
  if(header MATCHES "/" OR NOT header MATCHES "^${umbrellas}\\.hpp$")
    if(floor LESS 0 AND NOT layer STREQUAL "src")
      string(APPEND faults "  ${header}: ${layer} is not among the floors; say where it stands\n")
    endif()
    foreach(include IN LISTS included_by_${header})
      string(REGEX REPLACE "[/.].*" "" included "${include}")
      list(FIND floors ${included} below)
      if(layer STREQUAL "src" OR included MATCHES "^(${layer}|detail)$")
        continue()
      elseif(below LESS 0 OR below GREATER floor OR (DEFINED below_${layer} AND NOT included IN_LIST below_${layer}))
        string(APPEND faults "  ${header}: #include \"tunewright/${include}\" is not below ${layer}\n")
      endif()
    endforeach()
  endif()
  if(text MATCHES "#include \"tunewright/recipes/" AND NOT header MATCHES "^(recipes/|${umbrellas}\\.hpp$)")
    string(APPEND faults "  ${header}: nothing but umbrellas includes a recipe\n")
  endif()
  # A policy may use its own family's headers and the layers below, never another family's policy. What follows from a
  # family's contract alone (drawing distinct configurations from any space) is no policy.
  if(header MATCHES "^(spaces|features|models|drafts|explorers|samplers|filters|adaptations|schedulers)/")
    set(family "${CMAKE_MATCH_1}")
    string(REGEX MATCHALL
      "#include \"tunewright/(spaces|features|models|drafts|explorers|samplers|filters|adaptations|measurers|schedulers)/[a-z_0-9/]+\\.hpp\""
      includes "${text}")
    foreach(include IN LISTS includes)
      if(NOT include MATCHES "tunewright/${family}/" AND NOT include MATCHES "/(concept|fwd|draw)\\.hpp")
        string(APPEND faults "  ${header}: ${include} is another family's policy\n")
      endif()
    endforeach()
  endif()
endforeach()

# No header includes itself through others, in its section of definitions either: those are left over that wait for each
# other, once all are taken away that include nothing which is left.
set(left ${headers})
set(count -1)
foreach(header IN LISTS left)
  set(is_left_${header} TRUE)
endforeach()
while(NOT left STREQUAL "" AND NOT count STREQUAL before)
  list(LENGTH left before)
  set(waiting "")
  foreach(header IN LISTS left)
    set(is_left_${header} FALSE)
    foreach(included IN LISTS included_by_${header})
      if(is_left_${included} OR included STREQUAL header)
        set(is_left_${header} TRUE)
        list(APPEND waiting "${header}")
        break()
      endif()
    endforeach()
  endforeach()
  set(left "${waiting}")
  list(LENGTH left count)
endwhile()
set(count -1)
while(left AND NOT count STREQUAL before)  # those that only include such are no part of a circle
  list(LENGTH left before)
  set(included "")
  foreach(header IN LISTS left)
    list(APPEND included ${included_by_${header}})
  endforeach()
  foreach(header IN LISTS left)
    if(NOT header IN_LIST included)
      list(REMOVE_ITEM left "${header}")
    endif()
  endforeach()
  list(LENGTH left count)
endwhile()
if(left)
  list(JOIN left "\n    " left)
  string(APPEND faults "  headers that include themselves through others:\n    ${left}\n")
endif()

# Separate compilation: a header has one section of definitions at most, at its end, of a unit that detail/config.hpp
# lists. The source header of one component includes it under that unit, and nothing else.
file(STRINGS "${ROOT}/include/tunewright/detail/config.hpp" units REGEX "^#define TUNEWRIGHT_UNIT_")
list(TRANSFORM units REPLACE "^#define TUNEWRIGHT_UNIT_([a-z_]+) .*" "\\1")
set(compiled "")
file(GLOB source_headers "${ROOT}/include/tunewright/src/*.hpp")
list(FILTER source_headers EXCLUDE REGEX "/precompiled\\.hpp$")
foreach(source IN LISTS source_headers)
  file(STRINGS "${source}" lines REGEX "^#if TUNEWRIGHT_DEFINES|^#include \"")
  foreach(line IN LISTS lines)
    if(line MATCHES "^#if TUNEWRIGHT_DEFINES\\(([a-z_]+)\\)")
      set(unit "${CMAKE_MATCH_1}")
    elseif(line MATCHES "\"tunewright/(.+)\"" AND NOT CMAKE_MATCH_1 STREQUAL "detail/config.hpp")
      list(APPEND compiled "${unit} ${CMAKE_MATCH_1}")
    endif()
  endforeach()
endforeach()
list(LENGTH compiled count)
list(REMOVE_DUPLICATES compiled)
list(LENGTH compiled different)
if(NOT count EQUAL different)
  string(APPEND faults "  include/tunewright/src: a header is compiled twice\n")
endif()
file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/tunewright" "${ROOT}/include/tunewright/*.hpp")
foreach(header IN LISTS headers)
  if(header MATCHES "^(src/|detail/config\\.hpp)")
    continue()
  endif()
  file(READ "${ROOT}/include/tunewright/${header}" text)
  string(REGEX MATCHALL "#if TUNEWRIGHT_DEFINES\\([a-z_]+\\)" sections "${text}")
  if(NOT sections)
    if(text MATCHES "TUNEWRIGHT_INLINE")
      string(APPEND faults "  ${header}: TUNEWRIGHT_INLINE outside of a section of definitions\n")
    endif()
    continue()
  endif()
  string(REGEX REPLACE ".*\\((.*)\\)" "\\1" unit "${sections}")
  list(LENGTH sections count)
  if(NOT count EQUAL 1 OR NOT text MATCHES "\n#endif\n$" OR NOT unit IN_LIST units)
    string(APPEND faults "  ${header}: wants one section of definitions, at its end, of a unit of detail/config.hpp\n")
  elseif(NOT "${unit} ${header}" IN_LIST compiled)
    string(APPEND faults "  ${header}: no header of include/tunewright/src includes it under unit '${unit}'\n")
  endif()
  list(REMOVE_ITEM compiled "${unit} ${header}")
endforeach()
if(compiled)
  list(JOIN compiled "\n    " text)
  string(APPEND faults "  include/tunewright/src: included without a section of that unit:\n    ${text}\n")
endif()

# A header whose docstring names the contract it models is a policy. A page of its family describes it and names the header.
foreach(family IN ITEMS spaces features models drafts explorers samplers filters adaptations measurers schedulers)
  set(manual "")
  file(GLOB pages "${ROOT}/docs/policies/${family}/*.md")
  foreach(page IN LISTS pages)
    file(READ "${page}" text)
    string(APPEND manual "${text}")
  endforeach()
  file(GLOB headers RELATIVE "${ROOT}/include/tunewright/${family}" "${ROOT}/include/tunewright/${family}/*.hpp")
  foreach(header IN LISTS headers)
    file(STRINGS "${ROOT}/include/tunewright/${family}/${header}" models REGEX "^/// Models: " LIMIT_COUNT 1)
    string(FIND "${manual}" "${header}`" found)
    if(models AND found LESS 0)
      string(APPEND faults "  ${family}/${header}: no page in docs/policies/${family}/ names it\n")
    endif()
  endforeach()
endforeach()

foreach(folder IN ITEMS include test examples bench tools)
  file(GLOB_RECURSE sources "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp")
  foreach(source IN LISTS sources)
    file(READ "${source}" text LIMIT 64)
    if(NOT text MATCHES "^// SPDX-License-Identifier: Apache-2.0\n")
      string(APPEND faults "  ${source}: the first line is not the licence line\n")
    endif()
  endforeach()
endforeach()

if(faults)
  message(FATAL_ERROR "conventions:\n${faults}")
endif()
