# SPDX-License-Identifier: Apache-2.0
# Libraries that our benchmarks and the quick start compare with. Nothing of the library itself needs them.

# A folder with include/ and lib/ of libraries that the distribution has not, or only older ones of: such as that of a Python
# environment into which mkl-devel, onednn-devel-cpu-gomp and scipy-openblas32 were installed.
set(TUNEWRIGHT_PEERS_DIR "$ENV{TUNEWRIGHT_PEERS_DIR}" CACHE PATH "Folder of further libraries to compare with")
set(peers_include HINTS "${TUNEWRIGHT_PEERS_DIR}/include")
set(peers_lib HINTS "${TUNEWRIGHT_PEERS_DIR}/lib")

# Libraries of the BLAS interface are opened when a benchmark runs, because their functions have the same names. What MKL needs
# in a confined process is in docs/security.md.
file(GLOB peers_openblas "${TUNEWRIGHT_PEERS_DIR}/lib/python3*/site-packages/scipy_openblas32/lib")
find_library(TUNEWRIGHT_OPENBLAS_LIBRARY NAMES scipy_openblas HINTS ${peers_openblas} NO_DEFAULT_PATH)
find_library(TUNEWRIGHT_OPENBLAS_LIBRARY NAMES openblas libopenblas.so.0 ${peers_lib})
find_library(TUNEWRIGHT_BLIS_LIBRARY NAMES blis libblis.so.4 ${peers_lib})
find_library(TUNEWRIGHT_MKL_LIBRARY NAMES mkl_rt libmkl_rt.so.3 libmkl_rt.so.2 ${peers_lib})
find_path(TUNEWRIGHT_XSMM_INCLUDE_DIR libxsmm.h ${peers_include})
find_library(TUNEWRIGHT_XSMM_LIBRARY xsmm ${peers_lib})
find_library(TUNEWRIGHT_XSMM_EXTENSIONS_LIBRARY xsmmext ${peers_lib})
find_library(TUNEWRIGHT_XSMM_NO_BLAS_LIBRARY xsmmnoblas ${peers_lib})
# Not found through their package files: Debian's demand OpenCL and a command-line program that a C or C++ program does not use.
find_path(TUNEWRIGHT_DNNL_INCLUDE_DIR dnnl.hpp ${peers_include})
find_library(TUNEWRIGHT_DNNL_LIBRARY dnnl ${peers_lib})
# Its threads come from OpenMP, or it cannot be given as many as ours.
if(TUNEWRIGHT_DNNL_INCLUDE_DIR)
  find_file(dnnl_config NAMES oneapi/dnnl/dnnl_config.h dnnl_config.h PATHS "${TUNEWRIGHT_DNNL_INCLUDE_DIR}" NO_CACHE
    NO_DEFAULT_PATH)
  if(dnnl_config)
    file(STRINGS "${dnnl_config}" dnnl_runtime REGEX "^#define DNNL_CPU_RUNTIME DNNL_RUNTIME_(SYCL|DPCPP|TBB|SEQ|THREADPOOL)")
    if(dnnl_runtime)
      message(STATUS "tunewright: oneDNN in ${TUNEWRIGHT_DNNL_INCLUDE_DIR} is not compared with, it was built for other threads "
        "than OpenMP's; install libdnnl-dev or the Python package onednn-devel-cpu-gomp")
    endif()
  endif()
endif()
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

# Eigen is a baseline that chooses its instructions when it is compiled: a module for each instruction set, compiled with its
# best options, of which a benchmark opens one. Symbols stay inside, see bench/eigen_kernels.hpp.
if(TARGET Eigen3::Eigen AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(tunewright_eigen_options_sse42 -msse4.2)
  set(tunewright_eigen_options_avx2 -mavx2 -mfma)
  set(tunewright_eigen_options_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma)
  foreach(isa IN ITEMS sse42 avx2 avx512)
    set(module tunewright_eigen_${isa})
    add_library(${module} MODULE EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/bench/eigen_kernels.cpp")
    target_compile_features(${module} PRIVATE cxx_std_20)
    # GCC 12 takes the undefined operands of its own AVX-512 intrinsics for uninitialised variables (GCC PR 105593).
    target_compile_options(${module} PRIVATE -O3 -DNDEBUG ${tunewright_eigen_options_${isa}}
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    set_target_properties(${module} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_link_libraries(${module} PRIVATE tunewright_development Eigen3::Eigen)
    if(OpenMP_CXX_FOUND)
      target_link_libraries(${module} PRIVATE OpenMP::OpenMP_CXX)
    endif()
  endforeach()
endif()

# Lets `target` compare with the libraries that were found: by TUNEWRIGHT_BENCH_HAS_DNNL, ..._XSMM and ..._XGBOOST, which are
# linked, TUNEWRIGHT_BENCH_OPENBLAS, ..._BLIS and ..._MKL, the files to open, and TUNEWRIGHT_BENCH_EIGEN_MODULES, a folder.
# Programs that include Eigen directly get -march=native and OpenMP. Others are compiled as any consumer would.
function(tunewright_link_baselines target)
  foreach(library IN ITEMS OPENBLAS BLIS MKL)
    if(TUNEWRIGHT_${library}_LIBRARY)
      target_compile_definitions(${target} PRIVATE
        "TUNEWRIGHT_BENCH_${library}=\"${TUNEWRIGHT_${library}_LIBRARY}\"")
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  foreach(library IN ITEMS DNNL XGBOOST)
    if(TUNEWRIGHT_${library}_INCLUDE_DIR AND TUNEWRIGHT_${library}_LIBRARY AND NOT (library STREQUAL "DNNL" AND dnnl_runtime))
      target_include_directories(${target} SYSTEM PRIVATE "${TUNEWRIGHT_${library}_INCLUDE_DIR}")
      target_link_libraries(${target} PRIVATE "${TUNEWRIGHT_${library}_LIBRARY}")
      target_compile_definitions(${target} PRIVATE TUNEWRIGHT_BENCH_HAS_${library})
    endif()
  endforeach()
  get_target_property(source ${target} SOURCES)
  if(source MATCHES "(bench_cpu_kernels|quickstart)\\.cpp")
    if(TARGET tunewright_eigen_avx512)
      add_dependencies(${target} tunewright_eigen_sse42 tunewright_eigen_avx2 tunewright_eigen_avx512)
      target_compile_definitions(${target} PRIVATE
        "TUNEWRIGHT_BENCH_EIGEN_MODULES=\"$<TARGET_FILE_DIR:tunewright_eigen_avx512>\"")
    endif()
    if(TUNEWRIGHT_XSMM_INCLUDE_DIR AND TUNEWRIGHT_XSMM_LIBRARY AND TUNEWRIGHT_XSMM_EXTENSIONS_LIBRARY
       AND TUNEWRIGHT_XSMM_NO_BLAS_LIBRARY AND OpenMP_CXX_FOUND)
      target_include_directories(${target} SYSTEM PRIVATE "${TUNEWRIGHT_XSMM_INCLUDE_DIR}")
      target_link_libraries(${target} PRIVATE "${TUNEWRIGHT_XSMM_EXTENSIONS_LIBRARY}" "${TUNEWRIGHT_XSMM_LIBRARY}"
        "${TUNEWRIGHT_XSMM_NO_BLAS_LIBRARY}" OpenMP::OpenMP_CXX)
      target_compile_definitions(${target} PRIVATE TUNEWRIGHT_BENCH_HAS_XSMM)
    endif()
  endif()
  tunewright_uses_eigen_directly(eigen "${source}")
  if(eigen)
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
