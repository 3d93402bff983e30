// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rounded_up.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"

namespace tunewright::measurers::nvrtc {

/// Memory of the host to which a device copies several times as fast as to other memory; other memory where the system
/// has none to pin.
class PinnedMemory {
 public:
  explicit PinnedMemory(const Driver& driver) : driver_(&driver) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { release(); }

  /// At least `bytes`; what was in it is lost.
  [[nodiscard]] char* with_room_for(std::size_t bytes);

 private:
  void release() noexcept {
    if (data_ != nullptr) static_cast<void>((*driver_)->release_pinned(data_));
    data_ = nullptr;
    bytes_ = 0;
  }

  const Driver* driver_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<char> not_pinned_;
};

/// Device memory between two red zones with a known pattern, which are compared after a run because a device traps only
/// at the end of a whole allocation. Aligned to 256 bytes.
class DeviceMemory {
 public:
  static constexpr std::size_t zone = 4096;  ///< bytes on each side
  static constexpr unsigned char zone_pattern = 0xA5;
  static constexpr unsigned char unwritten = 0xFF;  ///< not a number in every floating-point type

  DeviceMemory(const Driver& driver, std::string name, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() {
    if (base_ != 0) static_cast<void>((*driver_)->release(base_));
  }

  [[nodiscard]] CUdeviceptr data() const noexcept { return base_ + zone; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  void write(const void* from) const {
    if (bytes_ != 0) driver_->check((*driver_)->copy_to_device(data(), from, bytes_), "filling '" + name_ + "'");
  }
  void copy(const DeviceMemory& from) const {
    if (bytes_ != 0)
      driver_->check((*driver_)->copy_on_device(data(), from.data(), bytes_), "restoring '" + name_ + "'");
  }
  /// `to` has room for `bytes()`.
  void read(char* to) const {
    if (bytes_ != 0) driver_->check((*driver_)->copy_to_host(to, data(), bytes_), "reading '" + name_ + "'");
  }
  void poison() const {
    if (bytes_ != 0) driver_->check((*driver_)->fill(data(), unwritten, bytes_), "poisoning '" + name_ + "'");
  }
  void fill_zones() const;

  /// Describes a write into a red zone; empty if both are intact.
  [[nodiscard]] std::optional<std::string> damage() const;

 private:
  [[nodiscard]] std::size_t padded() const noexcept { return rounded_up(bytes_, 256); }

  const Driver* driver_;
  std::string name_;
  std::size_t bytes_ = 0;
  CUdeviceptr base_ = 0;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE char* PinnedMemory::with_room_for(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes <= bytes_) return static_cast<char*>(data_);
  release();
  const CUresult pinned = (*driver_)->allocate_pinned(&data_, bytes);
  if (pinned == CUDA_ERROR_OUT_OF_MEMORY) {
    data_ = nullptr;
    not_pinned_.resize(bytes);
    return not_pinned_.data();
  }
  driver_->check(pinned, "pinning " + std::to_string(bytes) + " bytes of the host's memory");
  bytes_ = bytes;
  return static_cast<char*>(data_);
}

TUNEWRIGHT_INLINE DeviceMemory::DeviceMemory(const Driver& driver, std::string name, std::size_t bytes)
    : driver_(&driver), name_(std::move(name)), bytes_(bytes) {
  driver.check(driver->allocate(&base_, padded() + 2 * zone),
               "allocating " + std::to_string(bytes) + " bytes for '" + name_ + "'");
  fill_zones();
}

TUNEWRIGHT_INLINE DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : driver_(other.driver_),
      name_(std::move(other.name_)),
      bytes_(other.bytes_),
      base_(std::exchange(other.base_, 0)) {}

TUNEWRIGHT_INLINE void DeviceMemory::fill_zones() const {
  driver_->check((*driver_)->fill(base_, zone_pattern, zone), "marking '" + name_ + "'");
  driver_->check((*driver_)->fill(data() + bytes_, zone_pattern, padded() - bytes_ + zone), "marking '" + name_ + "'");
}

TUNEWRIGHT_INLINE std::optional<std::string> DeviceMemory::damage() const {
  std::vector<char> before(zone);
  std::vector<char> after(padded() - bytes_ + zone);
  driver_->check((*driver_)->copy_to_host(before.data(), base_, before.size()), "reading '" + name_ + "'");
  driver_->check((*driver_)->copy_to_host(after.data(), data() + bytes_, after.size()), "reading '" + name_ + "'");
  const auto untouched = [](char c) { return static_cast<unsigned char>(c) == zone_pattern; };
  const auto past = std::find_if_not(after.begin(), after.end(), untouched);
  if (past != after.end())
    return "wrote " + std::to_string(past - after.begin()) + " bytes after the end of buffer '" + name_ + "'";
  const auto ahead = std::find_if_not(before.rbegin(), before.rend(), untouched);
  if (ahead != before.rend())
    return "wrote " + std::to_string(ahead - before.rbegin() + 1) + " bytes before the start of buffer '" + name_ + "'";
  return std::nullopt;
}

}  // namespace tunewright::measurers::nvrtc

#endif
