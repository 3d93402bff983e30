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

/// Machine code that can be called; `owner` keeps it in memory.
struct LoadedObject {
  codegen::tunewright_kernel entry = nullptr;
  std::shared_ptr<const void> owner;
};
/// Turns an object file into callable code; throws if it cannot be loaded. Called in the worker, so state that it
/// creates belongs to that worker.
using ObjectLoader = std::function<LoadedObject(std::span<const char> object, const std::string& symbol)>;

/// Runs the parallel loops of kernels; `owner` keeps it alive.
struct HostRuntime {
  const codegen::tunewright_runtime* runtime = nullptr;
  const codegen::tunewright_runtime* dividing = nullptr;  ///< gives a thread its share of a loop in one call
  std::shared_ptr<const void> owner;
};
/// Creates a runtime with `threads` threads, including the calling one, on the given processors (empty: any). Called in
/// the worker for the first kernel that may need it.
using RuntimeFactory = std::function<HostRuntime(unsigned threads, std::span<const int> processors)>;

/// A runtime that runs parallel loops on the calling thread.
[[nodiscard]] inline HostRuntime serial_runtime(unsigned /*threads*/ = 1, std::span<const int> /*processors*/ = {}) {
  static const codegen::tunewright_runtime serial{[](const codegen::tunewright_runtime*, std::int64_t count,
                                                     void (*body)(void*, std::int64_t, std::int64_t), void* context)
                                                      TUNEWRIGHT_CALLS_COMPILED_CODE { body(context, 0, count); },
                                                  nullptr};
  return {&serial, &serial, nullptr};
}

/// The replaceable parts of a worker. They are copied into the zygote when that is forked.
struct WorkerParts {
  ObjectLoader load;  ///< empty: only native kernels can be measured
  RuntimeFactory runtime = serial_runtime;
  /// If set, answers a worker's requests until its socket closes, instead of running kernels on this machine's
  /// processors: for kernels that run on a device.
  std::function<void(int socket)> serve{};
  /// Limits of the process that runs kernels; not applied if `serve` is set, because drivers of devices need more.
  sandbox::Confinement confinement{};
};

}  // namespace tunewright::measurers
