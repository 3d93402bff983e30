# SPDX-License-Identifier: Apache-2.0
# What CPack makes: one package for Debian and Ubuntu, libtunewright-dev, for all architectures, since nothing in it is
# compiled: TUNEWRIGHT_BUILD_TOOLS must be off. cmake/packaging/deb/create.sh makes and tests it.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libtunewright-dev)
set(CPACK_PACKAGE_VENDOR tunewright)
set(CPACK_PACKAGE_CONTACT "tunewright developers <developers@tunewright.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "A tuner searches for the fastest way to compute an operator. Here each of its steps is a slot: space, features, model, explorer, sampler, filter, measurer.\n\
Headers, a CMake package with a component for each library, and examples.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++ (>= 4:12) | clang-19")
# Each is the library of a component: what is not installed leaves that component out.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "cmake (>= 3.24), ninja-build, nlohmann-json3-dev (>= 3.10), libboost-graph-dev (>= 1.74), libeigen3-dev (>= 3.4)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "llvm-19-dev, libopenmpi-dev, libisal-dev, libxtensor-dev, libonnx-dev, libprotobuf-dev, libbenchmark-dev (>= 1.6), gnuplot-nox")

include(GNUInstallDirs)
# Documents stand under the name of the package; other ways to install have places of their own for them, or leave them
# out of the sources they build.
set(documents "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_PACKAGE_NAME}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${documents}" COMPONENT package_documents EXCLUDE_FROM_ALL
  PATTERN "quickstart*" EXCLUDE PATTERN CMakeLists.txt EXCLUDE  # both need the build of this library
  PATTERN "05_*" EXCLUDE PATTERN "06_*" EXCLUDE)  # both need recorded data
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${documents}" RENAME copyright
  COMPONENT package_documents EXCLUDE_FROM_ALL)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${documents}" COMPONENT package_documents EXCLUDE_FROM_ALL)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/;${PROJECT_BINARY_DIR};${PROJECT_NAME};package_documents;/")
include(CPack)
