// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/confinement.hpp"

namespace tunewright::measurers {

/// Machine code ready to be called; `owner` keeps it in memory.
struct LoadedObject {
  codegen::tunewright_kernel entry = nullptr;
  std::shared_ptr<const void> owner;
};
/// Turns an object file into callable code; throws what it cannot load. Called in the worker, so state it
/// creates on the way belongs to that worker.
using ObjectLoader = std::function<LoadedObject(std::span<const char> object, const std::string& symbol)>;

/// What runs the parallel loops of kernels; `owner` keeps it alive.
struct HostRuntime {
  const codegen::tunewright_runtime* runtime = nullptr;
  std::shared_ptr<const void> owner;
};
/// Makes a runtime whose `threads` threads, the calling one among them, run on the given processors (none
/// given: anywhere). Called in the worker, when the first kernel that may need it is run.
using RuntimeFactory = std::function<HostRuntime(unsigned threads, std::span<const int> processors)>;

/// Runs parallel loops on the calling thread.
[[nodiscard]] inline HostRuntime serial_runtime(unsigned /*threads*/ = 1, std::span<const int> /*processors*/ = {}) {
  static const codegen::tunewright_runtime serial{[](const codegen::tunewright_runtime*, std::int64_t count,
                                                     void (*body)(void*, std::int64_t, std::int64_t), void* context)
                                                      TUNEWRIGHT_CALLS_COMPILED_CODE { body(context, 0, count); },
                                                  nullptr};
  return {&serial, nullptr};
}

/// What a worker is made of besides this library. Everything here is copied into the zygote when that is
/// forked.
struct WorkerParts {
  ObjectLoader load;  ///< empty: only native kernels can be measured
  RuntimeFactory runtime = serial_runtime;
  /// Answers a worker's requests until its socket closes, in place of what runs kernels on this machine's
  /// processors; for kernels that run on a device.
  std::function<void(int socket)> serve{};
  /// What the process that runs kernels may ask of the system; it is not confined where `serve` runs them, since
  /// drivers of devices need more.
  sandbox::Confinement confinement{};
};

}  // namespace tunewright::measurers
