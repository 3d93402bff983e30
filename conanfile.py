# SPDX-License-Identifier: Apache-2.0
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir, save

required_conan_version = ">=2.0"

# component -> (requirement, what it links, components it builds on)
COMPONENTS = {
    "data": ("nlohmann_json/3.11.3", ["nlohmann_json::nlohmann_json"], []),
    "gzip": ("isa-l/2.30.0", ["isa-l::isa-l"], []),
    "eigen": ("eigen/3.4.0", ["eigen::eigen"], []),
    "graph": ("boost/1.86.0", ["boost::headers"], ["data"]),
    "reference": ("xtensor/0.24.7", ["xtensor::xtensor"], ["graph"]),
    "orc": ("llvm-core/19.1.7", ["llvm-core::llvm-core"], ["graph"]),
    "onnx": ("onnx/1.17.0", ["onnx::onnx"], ["graph"]),
    "study": ("benchmark/1.9.1", ["benchmark::benchmark"], ["data"]),
}


COMPILED_MODULE = os.path.join("cmake", "tunewright-compiled-components.cmake")


def closure(component):
    """What a component builds on, the nearest first, and the core."""
    needed = []
    for other in COMPONENTS[component][2]:
        needed += [other, *closure(other)]
    return list(dict.fromkeys([other for other in needed if other != "core"] + ["core"]))


class TunewrightConan(ConanFile):
    name = "tunewright"
    description = "Header-only C++20 library for composing tensor-program tuners at compile time"
    license = "Apache-2.0"
    topics = ("auto-tuning", "tensor-programs", "cost-models", "jit", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {f"with_{component}": [True, False] for component in COMPONENTS}
    default_options = {f"with_{component}": component in ("data", "gzip", "graph", "reference", "eigen") for component in COMPONENTS}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*.cmake", "cmake/*.in", "include/*", "!cmake/packaging/*"
    no_copy_source = True
    test_package_folder = "cmake/packaging/conan/test_package"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"VERSION (\d+\.\d+\.\d+)\n", text).group(1)

    def _wanted(self):
        return [component for component in COMPONENTS if self.options.get_safe(f"with_{component}")]

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        for component in self._wanted():
            self.requires(COMPONENTS[component][0], transitive_headers=True)

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        for component in self._wanted():
            for other in COMPONENTS[component][2]:
                if other not in self._wanted():
                    raise ConanInvalidConfiguration(
                        f"component {component} builds on {other}: set with_{other}=True, or with_{component}=False")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.24 <4]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "BUILD_TOOLS"):
            toolchain.cache_variables[f"TUNEWRIGHT_{option}"] = False
        for component in [*COMPONENTS, "mpi", "nvrtc"]:
            toolchain.cache_variables[f"TUNEWRIGHT_WITH_{component.upper()}"] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))
        # tunewright::<component>_compiled are built in the consumer's build, from the headers, when something links them.
        copy(self, "Compiled.cmake", os.path.join(self.source_folder, "cmake"), os.path.join(self.package_folder, "cmake"))
        lines = ['include("${CMAKE_CURRENT_LIST_DIR}/Compiled.cmake")']
        for component in ["core", *COMPONENTS]:
            target = "tunewright" if component == "core" else component
            needed = "" if component == "core" else " ".join(closure(component))
            lines.append(f"if(TARGET tunewright::{target})")
            lines.append(f'  tunewright_add_compiled({component} "${{CMAKE_CURRENT_LIST_DIR}}/../include" {needed})')
            lines.append("endif()")
        save(self, os.path.join(self.package_folder, COMPILED_MODULE), "\n".join(lines) + "\n")

    def package_info(self):
        # What a profile takes from the platform is no dependency here: the compiler finds it by itself.
        known = {dependency.ref.name for dependency in self.dependencies.host.values()}
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "tunewright")
        self.cpp_info.set_property("cmake_build_modules", [COMPILED_MODULE])
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "tunewright::tunewright")
        core.bindirs = []
        core.libdirs = []
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        for component in self._wanted():
            info = self.cpp_info.components[component]
            info.set_property("cmake_target_name", f"tunewright::{component}")
            info.bindirs = []
            info.libdirs = []
            linked = [target for target in COMPONENTS[component][1] if target.split("::")[0] in known]
            info.requires = ["core", *COMPONENTS[component][2], *linked]
