// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"

namespace tunewright::measurers::nvrtc {

/// A device's primary context, which all users of the device in a process share, as the calling thread's current one.
/// When it ends, in the same thread, the context that was current before is so again, and the device's is released: the
/// driver destroys it, with all that was made in it, when its last user has released it.
class PrimaryContext {
 public:
  /// Throws `DriverError`; what was current then still is. `driver` must outlive it.
  PrimaryContext(const Driver& driver, CUdevice device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

 private:
  void leave() noexcept;

  const Driver& driver_;
  CUdevice device_;
  CUcontext before_ = nullptr;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE PrimaryContext::PrimaryContext(const Driver& driver, CUdevice device)
    : driver_(driver), device_(device) {
  driver.check(driver->get_context(&before_), "finding the current context");
  CUcontext own = nullptr;
  const CUresult retained = driver->retain_context(&own, device);
  driver.check(retained, retained == CUDA_ERROR_DEVICE_UNAVAILABLE
                             ? "making a context; is the device for one process alone (nvidia-smi -q -d "
                               "COMPUTE) and in use?"
                             : "making a context");
  if (const CUresult taken = driver->set_context(own); taken != CUDA_SUCCESS) {
    leave();
    driver.check(taken, "taking the context");
  }
}

TUNEWRIGHT_INLINE PrimaryContext::~PrimaryContext() { leave(); }

TUNEWRIGHT_INLINE void PrimaryContext::leave() noexcept {
  // After a kernel's error, the driver answers every call with it.
  static_cast<void>(driver_->set_context(before_));
  static_cast<void>(driver_->release_context(device_));
}

}  // namespace tunewright::measurers::nvrtc

#endif
