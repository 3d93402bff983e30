# SPDX-License-Identifier: Apache-2.0
# Libraries that our benchmarks and the quick start compare with. Nothing of the library itself needs them.

find_package(OpenBLAS CONFIG QUIET)
# The other two are not found through their package files: Debian's demand OpenCL and a command-line program that a C or C++
# program does not use.
find_path(TUNEWRIGHT_DNNL_INCLUDE_DIR dnnl.hpp)
find_library(TUNEWRIGHT_DNNL_LIBRARY dnnl)
find_path(TUNEWRIGHT_XGBOOST_INCLUDE_DIR xgboost/c_api.h)
find_library(TUNEWRIGHT_XGBOOST_LIBRARY xgboost)
find_package(OpenMP QUIET COMPONENTS CXX)
find_package(CUDAToolkit QUIET)
find_path(TUNEWRIGHT_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})

# Whether the source, or a header beside it that it includes, calls Eigen itself.
function(tunewright_uses_eigen_directly out source)
  set(result FALSE)
  file(STRINGS "${source}" includes REGEX "^#include ")
  get_filename_component(folder "${source}" DIRECTORY)
  foreach(include IN LISTS includes)
    if(include MATCHES "<(unsupported/)?Eigen/")
      set(result TRUE)
    elseif(include MATCHES "\"([^\"]+)\"")
      set(header "${folder}/${CMAKE_MATCH_1}")
      if(EXISTS "${header}")
        tunewright_uses_eigen_directly(inner "${header}")
        if(inner)
          set(result TRUE)
        endif()
      endif()
    endif()
  endforeach()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

# Links the baselines that were found into `target` and defines TUNEWRIGHT_BENCH_HAS_OPENBLAS, ..._DNNL and ..._XGBOOST.
# Eigen is a baseline too, and is only fast when compiled for the machine it runs on: programs that include it directly get
# -march=native and OpenMP, so that the comparison is with its best. Others are compiled as any consumer would.
function(tunewright_link_baselines target)
  if(OpenBLAS_FOUND)
    target_include_directories(${target} SYSTEM PRIVATE ${OpenBLAS_INCLUDE_DIRS})
    target_link_libraries(${target} PRIVATE ${OpenBLAS_LIBRARIES})
    target_compile_definitions(${target} PRIVATE TUNEWRIGHT_BENCH_HAS_OPENBLAS)
  endif()
  foreach(library IN ITEMS DNNL XGBOOST)
    if(TUNEWRIGHT_${library}_INCLUDE_DIR AND TUNEWRIGHT_${library}_LIBRARY)
      target_include_directories(${target} SYSTEM PRIVATE "${TUNEWRIGHT_${library}_INCLUDE_DIR}")
      target_link_libraries(${target} PRIVATE "${TUNEWRIGHT_${library}_LIBRARY}")
      target_compile_definitions(${target} PRIVATE TUNEWRIGHT_BENCH_HAS_${library})
    endif()
  endforeach()
  get_target_property(source ${target} SOURCES)
  tunewright_uses_eigen_directly(eigen "${source}")
  if(eigen)
    # GCC 12 takes the undefined operands of its own AVX-512 intrinsics for uninitialised variables (GCC PR 105593).
    target_compile_options(${target} PRIVATE -march=native $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_libraries(${target} PRIVATE Eigen3::Eigen)
    if(OpenMP_CXX_FOUND)
      target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
    endif()
  endif()
endfunction()

# The headers of cuDNN, beside those of the toolkit, for programs that compare on a GPU. They open NVIDIA's libraries when they
# run, so none is linked.
function(tunewright_include_gpu_baselines target)
  if(TUNEWRIGHT_CUDNN_INCLUDE_DIR)
    target_include_directories(${target} SYSTEM PRIVATE "${TUNEWRIGHT_CUDNN_INCLUDE_DIR}")
  endif()
endfunction()
