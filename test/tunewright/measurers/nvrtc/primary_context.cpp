// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/nvrtc/primary_context.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"

namespace {

using namespace tunewright;
using measurers::nvrtc::DeviceMemory;
using measurers::nvrtc::Driver;
using measurers::nvrtc::DriverError;
using measurers::nvrtc::PrimaryContext;

/// A stand-in for the driver of its own: this process must not start the one that workers use.
struct OwnDriver {
  support::TemporaryFolder folder;
  std::string library = folder.file("libcuda.so");
  Driver driver = [this] {
    std::filesystem::copy_file(TUNEWRIGHT_FAKE_LIBCUDA, library);
    return Driver(library);
  }();

  [[nodiscard]] bool is_active() const {
    void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(loaded != nullptr);
    const auto state =
        reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(::dlsym(loaded, "cuDevicePrimaryCtxGetState"));
    unsigned flags = 0;
    int active = 0;
    if (state == nullptr) FAIL("the stand-in does not tell whether there is a context");
    REQUIRE(state(0, &flags, &active) == CUDA_SUCCESS);
    ::dlclose(loaded);
    return active != 0;
  }
  [[nodiscard]] CUcontext current() const {
    CUcontext context = nullptr;
    REQUIRE(driver->get_context(&context) == CUDA_SUCCESS);
    return context;
  }
};

TEST_CASE("a context that was current before a device's is so again after it") {
  const OwnDriver own;
  int mine = 0;
  const auto of_caller = reinterpret_cast<CUcontext>(&mine);
  REQUIRE(own.driver->set_context(of_caller) == CUDA_SUCCESS);
  CHECK_FALSE(own.is_active());
  {
    const PrimaryContext context(own.driver, 0);
    CHECK(own.current() != of_caller);
    CHECK(own.is_active());
    const DeviceMemory memory(own.driver, "memory", 16);  // which there is in a context only
    memory.poison();
  }
  CHECK(own.current() == of_caller);
  CHECK_FALSE(own.is_active());
}

TEST_CASE("a device's context ends with its last user") {
  const OwnDriver own;
  std::optional<PrimaryContext> first(std::in_place, own.driver, 0);
  {
    const PrimaryContext second(own.driver, 0);
    CHECK(own.is_active());
  }
  CHECK(own.is_active());
  DeviceMemory(own.driver, "memory", 16).poison();  // the first is current again
  first.reset();
  CHECK_FALSE(own.is_active());
  CHECK(own.current() == nullptr);
  CHECK_THROWS_AS(DeviceMemory(own.driver, "memory", 16), DriverError);
}

TEST_CASE("what cannot be made or taken leaves everything as it was") {
  const OwnDriver own;
  int mine = 0;
  const auto of_caller = reinterpret_cast<CUcontext>(&mine);
  REQUIRE(own.driver->set_context(of_caller) == CUDA_SUCCESS);
  const auto refused = [&](const char* function) {
    ::setenv("FAKE_CUDA_REFUSES", function, 1);
    const std::string said = test::refusal<DriverError>([&] { const PrimaryContext context(own.driver, 0); });
    ::unsetenv("FAKE_CUDA_REFUSES");
    CHECK(own.current() == of_caller);
    CHECK_FALSE(own.is_active());
    return said;
  };
  CHECK(refused("cuDevicePrimaryCtxRetain").find("is the device for one process alone") != std::string::npos);
  CHECK(refused("cuCtxSetCurrent").find("taking the context: ") == 0);
}

}  // namespace
