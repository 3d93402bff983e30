# SPDX-License-Identifier: Apache-2.0
# How the library behind each component is found. The build and the installed package read the same file, so a consumer
# gets exactly what was tested. A macro, because find_package() must leave its variables where the caller can see them.
#
#   tunewright_find_library(<component>)    sets tunewright_<component>_library to TRUE or FALSE, quietly

macro(tunewright_find_library component)
  # Packages report what they find of their own optional parts; that would drown our table.
  set(tunewright_log_level "${CMAKE_MESSAGE_LOG_LEVEL}")
  set(CMAKE_MESSAGE_LOG_LEVEL NOTICE)
  set(tunewright_${component}_library FALSE)
  if("${component}" STREQUAL "core")
    find_package(Threads QUIET)
    set(tunewright_${component}_library ${Threads_FOUND})
  elseif("${component}" STREQUAL "data")
    find_package(nlohmann_json 3.10 CONFIG QUIET)
    set(tunewright_${component}_library ${nlohmann_json_FOUND})
  elseif("${component}" STREQUAL "gzip")
    # Distributions ship it without a package file of CMake's.
    find_path(TUNEWRIGHT_ISAL_INCLUDE_DIR isa-l/igzip_lib.h)
    find_library(TUNEWRIGHT_ISAL_LIBRARY isal)
    mark_as_advanced(TUNEWRIGHT_ISAL_INCLUDE_DIR TUNEWRIGHT_ISAL_LIBRARY)
    if(TUNEWRIGHT_ISAL_INCLUDE_DIR AND TUNEWRIGHT_ISAL_LIBRARY)
      set(tunewright_${component}_library TRUE)
      if(NOT TARGET tunewright::isal)
        add_library(tunewright::isal INTERFACE IMPORTED GLOBAL)
        set_target_properties(tunewright::isal PROPERTIES
          INTERFACE_INCLUDE_DIRECTORIES "${TUNEWRIGHT_ISAL_INCLUDE_DIR}"
          INTERFACE_LINK_LIBRARIES "${TUNEWRIGHT_ISAL_LIBRARY}")
      endif()
    endif()
  elseif("${component}" STREQUAL "eigen")
    # Version 5 follows 3.4, and its package refuses whoever asks for 3.4.
    find_package(Eigen3 3.4 CONFIG QUIET)
    if(NOT Eigen3_FOUND)
      find_package(Eigen3 5 CONFIG QUIET)
    endif()
    set(tunewright_${component}_library ${Eigen3_FOUND})
  elseif("${component}" STREQUAL "graph")
    find_package(Boost 1.74 CONFIG QUIET)
    set(tunewright_${component}_library ${Boost_FOUND})
  elseif("${component}" STREQUAL "reference")
    find_package(xtensor CONFIG QUIET)
    set(tunewright_${component}_library ${xtensor_FOUND})
  elseif("${component}" STREQUAL "orc")
    find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19)
    if(LLVM_FOUND)
      set(tunewright_${component}_library TRUE)
      # LLVM exports its libraries without their include directories.
      if(NOT TARGET tunewright::llvm)
        add_library(tunewright::llvm INTERFACE IMPORTED GLOBAL)
        separate_arguments(tunewright_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
        list(TRANSFORM tunewright_llvm_definitions REPLACE "^-D" "")
        if(TARGET LLVM)
          set(tunewright_llvm_libraries LLVM)
        else()
          # Kernels are exported for machines of the other family as well, where LLVM has its back end.
          set(tunewright_llvm_families ${LLVM_TARGETS_TO_BUILD})
          list(FILTER tunewright_llvm_families INCLUDE REGEX "^(AArch64|X86)$")
          llvm_map_components_to_libnames(tunewright_llvm_libraries core orcjit passes native
            ${tunewright_llvm_families})
        endif()
        set_target_properties(tunewright::llvm PROPERTIES
          INTERFACE_INCLUDE_DIRECTORIES "${LLVM_INCLUDE_DIRS}"
          INTERFACE_COMPILE_DEFINITIONS "${tunewright_llvm_definitions}"
          INTERFACE_LINK_LIBRARIES "${tunewright_llvm_libraries};${CMAKE_DL_LIBS}")
        unset(tunewright_llvm_definitions)
        unset(tunewright_llvm_libraries)
        unset(tunewright_llvm_families)
      endif()
    endif()
  elseif("${component}" STREQUAL "mpi")
    set(MPI_CXX_SKIP_MPICXX TRUE)
    find_package(MPI 3.0 QUIET COMPONENTS CXX)
    set(tunewright_${component}_library ${MPI_CXX_FOUND})
  elseif("${component}" STREQUAL "study")
    find_package(benchmark 1.6 CONFIG QUIET)
    set(tunewright_${component}_library ${benchmark_FOUND})
  elseif("${component}" STREQUAL "onnx")
    # Its package file differs from distribution to distribution; its classes need the Protobuf they were made with.
    # Newer ones tell in their package file what they are linked with, and count versions in another way.
    find_package(Protobuf CONFIG QUIET)
    if(NOT Protobuf_FOUND)
      find_package(Protobuf 3.12 QUIET)
    endif()
    find_path(TUNEWRIGHT_ONNX_INCLUDE_DIR onnx/onnx_pb.h)
    find_library(TUNEWRIGHT_ONNX_LIBRARY onnx_proto)
    mark_as_advanced(TUNEWRIGHT_ONNX_INCLUDE_DIR TUNEWRIGHT_ONNX_LIBRARY)
    if(Protobuf_FOUND AND TUNEWRIGHT_ONNX_INCLUDE_DIR AND TUNEWRIGHT_ONNX_LIBRARY)
      set(tunewright_${component}_library TRUE)
      if(NOT TARGET tunewright::onnx_messages)
        add_library(tunewright::onnx_messages INTERFACE IMPORTED GLOBAL)
        set_target_properties(tunewright::onnx_messages PROPERTIES
          INTERFACE_INCLUDE_DIRECTORIES "${TUNEWRIGHT_ONNX_INCLUDE_DIR}"
          INTERFACE_COMPILE_DEFINITIONS "ONNX_ML=1;ONNX_NAMESPACE=onnx"
          INTERFACE_LINK_LIBRARIES "${TUNEWRIGHT_ONNX_LIBRARY};protobuf::libprotobuf")
      endif()
    endif()
  elseif("${component}" STREQUAL "nvrtc")
    # A toolkit may come without its run-time compiler.
    find_package(CUDAToolkit 12 QUIET)
    if(CUDAToolkit_FOUND AND TARGET CUDA::nvrtc)
      set(tunewright_${component}_library TRUE)
      # CUDA::nvrtc links the driver as well: programs would not start on machines without one.
      if(NOT TARGET tunewright::cuda_compiler)
        add_library(tunewright::cuda_compiler INTERFACE IMPORTED GLOBAL)
        get_target_property(tunewright_nvrtc_file CUDA::nvrtc IMPORTED_LOCATION)
        set_target_properties(tunewright::cuda_compiler PROPERTIES
          INTERFACE_INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}"
          INTERFACE_LINK_LIBRARIES "${tunewright_nvrtc_file};${CMAKE_DL_LIBS}")
        unset(tunewright_nvrtc_file)
      endif()
    endif()
  endif()
  set(CMAKE_MESSAGE_LOG_LEVEL "${tunewright_log_level}")
  unset(tunewright_log_level)
  if(NOT tunewright_${component}_library)
    set(tunewright_${component}_library FALSE)
  endif()
endmacro()
