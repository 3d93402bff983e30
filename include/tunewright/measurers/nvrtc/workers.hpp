// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/sandbox.hpp"

namespace tunewright::measurers::nvrtc {

/// One process per device, each with its own context and with the environment at the time of construction. They are
/// forked from `device_zygote()`.
class Workers {
 public:
  Workers(std::vector<int> devices, const std::string& library);

  [[nodiscard]] const std::vector<int>& devices() const noexcept { return devices_; }
  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  [[nodiscard]] Sandbox& sandbox(std::size_t position) { return *sandboxes_.at(position); }

  /// The facts of device number `devices()[position]`. Throws `NoDevice`.
  [[nodiscard]] const DeviceFacts& facts(std::size_t position);

  /// The facts common to all devices, which must be of one kind because their latencies go into one history. Throws
  /// `NoDevice`, or `std::invalid_argument` for devices that differ.
  [[nodiscard]] const DeviceFacts& common_facts();

 private:
  std::vector<int> devices_;
  std::vector<std::unique_ptr<Sandbox>> sandboxes_;
  std::vector<std::unique_ptr<DeviceFacts>> facts_;  // by position; null until requested
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/measurers/nvrtc/device_zygote.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE Workers::Workers(std::vector<int> devices, const std::string& library)
    : devices_(std::move(devices)) {
  for (const int device : devices_) {
    sandboxes_.push_back(std::make_unique<Sandbox>(
        device_zygote(),
        [device, library, variables = environment()](int socket) { introduce(socket, device, library, variables); }));
  }
  facts_.resize(devices_.size());
}

TUNEWRIGHT_INLINE const DeviceFacts& Workers::facts(std::size_t position) {
  std::unique_ptr<DeviceFacts>& known = facts_.at(position);
  if (known) return *known;
  const auto reply = sandboxes_[position]->describe();
  if (const auto* failure = std::get_if<Failure>(&reply)) throw NoDevice(failure->detail);
  known = std::make_unique<DeviceFacts>();
  std::memcpy(known.get(), std::get<sandbox::Reply>(reply).detail.data(), sizeof(DeviceFacts));
  return *known;
}

TUNEWRIGHT_INLINE const DeviceFacts& Workers::common_facts() {
  const DeviceFacts& first = facts(0);
  for (std::size_t other = 1; other < size(); ++other) {
    if (facts(other).identity() == first.identity()) continue;
    throw std::invalid_argument("devices " + std::to_string(devices_[0]) + " (" + first.identity() + ") and " +
                                std::to_string(devices_[other]) + " (" + facts(other).identity() +
                                ") differ; measure with devices of one kind");
  }
  return first;
}

}  // namespace tunewright::measurers::nvrtc

#endif
