# SPDX-License-Identifier: Apache-2.0
# Overlay port: vcpkg install tunewright --overlay-ports=cmake/packaging/vcpkg/ports
# It packages the tree that it lies in, so a checkout and its port cannot differ.
set(VCPKG_BUILD_TYPE release)  # headers only
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options FEATURES
  data      TUNEWRIGHT_WITH_DATA
  eigen     TUNEWRIGHT_WITH_EIGEN
  graph     TUNEWRIGHT_WITH_GRAPH
  gzip      TUNEWRIGHT_WITH_GZIP
  onnx      TUNEWRIGHT_WITH_ONNX
  reference TUNEWRIGHT_WITH_REFERENCE
  study     TUNEWRIGHT_WITH_STUDY)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${feature_options}
  -DTUNEWRIGHT_WITH_ORC=OFF -DTUNEWRIGHT_WITH_MPI=OFF -DTUNEWRIGHT_WITH_NVRTC=OFF
  -DTUNEWRIGHT_BUILD_TESTS=OFF -DTUNEWRIGHT_BUILD_EXAMPLES=OFF -DTUNEWRIGHT_BUILD_BENCH=OFF
  -DTUNEWRIGHT_BUILD_TOOLS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/tunewright)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug" "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/cmake"
  "${CURRENT_PACKAGES_DIR}/share/licenses")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
