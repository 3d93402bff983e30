# SPDX-License-Identifier: Apache-2.0
"""Stands in for a library that the system has: describes where it is, and packages nothing.

    conan export cmake/packaging/conan/system --name=boost --version=system

create.sh exports one for each library that tunewright needs.
"""
import os
import shutil
import subprocess

from conan import ConanFile
from conan.errors import ConanException

# name -> a header that shows that the library is there, below its include folder, and how Debian calls the package
LIBRARIES = {
    "nlohmann_json": ("nlohmann/json.hpp", "nlohmann-json3-dev"),
    "isa-l": ("isa-l/igzip_lib.h", "libisal-dev"),
    "eigen": ("Eigen/Core", "libeigen3-dev"),
    "boost": ("boost/graph/adjacency_list.hpp", "libboost-graph-dev"),
    "xtensor": ("xtensor/xarray.hpp", "libxtensor-dev"),
    "llvm-core": ("llvm-c/Core.h", "llvm-19-dev"),
    "onnx": ("onnx/onnx_pb.h", "libonnx-dev"),
    "benchmark": ("benchmark/benchmark.h", "libbenchmark-dev"),
}
SYSTEM_INCLUDE = "/usr/include"


def llvm_config(what):
    program = shutil.which("llvm-config-19") or "/usr/lib/llvm-19/bin/llvm-config"
    try:
        return subprocess.run([program, what], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConanException("llvm-config of LLVM 19 is missing: install llvm-19-dev") from error


class SystemLibrary(ConanFile):
    description = "A library of the system"
    license = "see the system"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def package_info(self):
        header, package = LIBRARIES[self.name]
        include = {"eigen": os.path.join(SYSTEM_INCLUDE, "eigen3")}.get(self.name, SYSTEM_INCLUDE)
        if self.name == "llvm-core":
            include = llvm_config("--includedir")
        if not os.path.exists(os.path.join(include, header)):
            raise ConanException(f"{os.path.join(include, header)} is missing: install {package}")
        info = self.cpp_info.components["headers"] if self.name == "boost" else self.cpp_info
        info.bindirs = []
        info.libdirs = []
        # The compiler looks into its own folder by itself, and must do so last.
        info.includedirs = [] if include == SYSTEM_INCLUDE else [include]
        if self.name in ("isa-l", "benchmark"):
            info.system_libs = [{"isa-l": "isal"}.get(self.name, self.name)]
        if self.name == "onnx":
            info.system_libs = ["onnx_proto", "protobuf"]
        if self.name == "llvm-core":
            info.libdirs = [llvm_config("--libdir")]
            info.system_libs = ["LLVM-19"]
            info.exelinkflags = [f"-L{info.libdirs[0]}"]
