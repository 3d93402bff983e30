# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=<file> "-DSOURCES=a|b" [-DPROGRAMS=ON [-DMAIN=<source> -DCALLS=<function>]] -P together.cmake
#
# Writes one source that compiles several sources: most of the time that each alone takes is spent on headers that the
# others include too. First stand the includes of all, then each source in a namespace of its own, so that helpers of
# two sources may share a name. In there its includes do nothing, since all headers are guarded.
#
# With PROGRAMS each source has a main; the first argument of the whole names the one to call, which gets the others.
# With MAIN that source has the main of each, which calls a function with C linkage.

string(REPLACE "|" ";" sources "${SOURCES}")
set(includes "")
foreach(source IN LISTS sources ITEMS ${MAIN})
  get_filename_component(folder "${source}" DIRECTORY)
  file(STRINGS "${source}" lines)
  foreach(line IN LISTS lines)
    if(line MATCHES "^#include ([<\"])([^\">]+)")
      set(name "${CMAKE_MATCH_2}")
      if(CMAKE_MATCH_1 STREQUAL "<")
        list(APPEND includes "<${name}>")
      elseif(EXISTS "${folder}/${name}")
        get_filename_component(name "${folder}/${name}" ABSOLUTE)
        list(APPEND includes "\"${name}\"")
      else()
        list(APPEND includes "\"${name}\"")
      endif()
    elseif(NOT line MATCHES "^(//.*)?$")
      break()
    endif()
  endforeach()
endforeach()

set(bodies "")
set(calls "")
set(count 0)
foreach(source IN LISTS sources)
  get_filename_component(program "${source}" NAME_WE)
  string(APPEND calls "  if (name == \"${program}\") return call(source_${count}::main, argc - 1, argv + 1);\n")
  string(APPEND bodies "namespace source_${count} {\n")
  if(MAIN)
    string(APPEND bodies "#define ${CALLS} ${CALLS}_${count}\n"
      "#include \"${source}\"\n#include \"${MAIN}\"\n#undef ${CALLS}\n")
  else()
    string(APPEND bodies "#include \"${source}\"\n")
  endif()
  string(APPEND bodies "}  // namespace source_${count}\n")
  math(EXPR count "${count} + 1")
endforeach()
if(PROGRAMS)
  list(APPEND includes "<string_view>")
  string(APPEND bodies
    "[[maybe_unused]] static int call(int (*program)(), int, char**) { return program(); }\n"
    "[[maybe_unused]] static int call(int (*program)(int, char**), int argc, char** argv) {\n"
    "  return program(argc, argv);\n"
    "}\n"
    "int main(int argc, char** argv) {\n"
    "  const std::string_view name = argc > 1 ? argv[1] : \"\";\n"
    "${calls}"
    "  return 127;  // as shells say of a program that they do not find\n"
    "}\n")
endif()
list(REMOVE_DUPLICATES includes)
list(TRANSFORM includes PREPEND "#include ")
list(JOIN includes "\n" includes)
file(WRITE "${OUTPUT}" "${includes}\n${bodies}")
