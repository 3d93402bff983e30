# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -P conventions.cmake: licence lines, include guards, the walls around external libraries,
# layers, and a page for each policy.

cmake_minimum_required(VERSION 3.24)

set(faults "")

# library prefix | where it may be included, relative to include/tunewright
set(walls
  "boost/|^(program|networks|schedule|loops)/"
  "nlohmann/|^data/"
  "isa-l/|^data/"
  "xtensor/|^reference/"
  "(unsupported/)?Eigen/|^(nn|models|adaptations|samplers)/"
  "llvm(-c)?/|^(codegen/llvm|measurers/orc)"
  "(cuda|nvrtc)[a-z_]*\\.h|^(codegen/cuda|measurers/nvrtc)")

# layers, and what each may include
set(below_core "")
set(below_json "")
set(below_stats core)
set(below_nn core)
set(below_program core)
set(below_schedule core json program)
set(below_loops core program schedule)
set(below_reference core program)
set(below_codegen core program schedule loops)

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/tunewright" "${ROOT}/include/tunewright/*.hpp")
foreach(header IN LISTS headers)
  file(READ "${ROOT}/include/tunewright/${header}" text)
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
  if(DEFINED below_${layer})
    string(REGEX MATCHALL "#include \"tunewright/[a-z_0-9/]+\\.hpp\"" includes "${text}")
    foreach(include IN LISTS includes)
      string(REGEX MATCH "tunewright/([a-z_0-9]+)[/.]" _ "${include}")
      if(NOT CMAKE_MATCH_1 IN_LIST below_${layer} AND NOT CMAKE_MATCH_1 STREQUAL layer)
        string(APPEND faults "  ${header}: ${include} is not below ${layer}\n")
      endif()
    endforeach()
  endif()
  if(text MATCHES "#include \"tunewright/recipes/" AND NOT header MATCHES "^(recipes/|tunewright\\.hpp)")
    string(APPEND faults "  ${header}: nothing includes a recipe\n")
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

# A header whose docstring names the contract it models is a policy. A page of its family describes it and names the header.
foreach(family IN ITEMS spaces features models drafts explorers samplers filters adaptations measurers)
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

foreach(folder IN ITEMS include test examples bench)
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
