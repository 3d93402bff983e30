// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "tunewright/core/huge_pages.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::measurers::sandbox {

/// The address range of a guarded buffer; plain numbers, because a signal handler reads them.
struct GuardedRegion {
  std::uintptr_t reserve_begin = 0;  ///< 0 marks a free entry
  std::uintptr_t reserve_end = 0;
  std::uintptr_t data_begin = 0;
  std::uintptr_t data_end = 0;
  char name[48] = {};

  [[nodiscard]] bool covers(std::uintptr_t address) const noexcept {
    return reserve_begin != 0 && address >= reserve_begin && address < reserve_end;
  }
};

/// All guarded buffers of this process, in fixed storage: looking an address up allocates no memory and takes no lock.
std::array<GuardedRegion, 512>& guarded_regions() noexcept;

/// Memory for a tensor between inaccessible pages. The data end at most 63 bytes before the guard, so accesses past the
/// end trap; the rest of the first page and those up to 63 bytes are red zones with a known pattern, which are compared
/// after a run. Data are aligned to 64 bytes.
///
///   guard (none) | red zone | data | red zone < 64 B | guard (none)
///
/// Guards are wide, because wrong kernels miss by a row or a tile rather than by an element; they use only address
/// space. Large buffers end on a 2 MiB boundary and request huge pages: otherwise timings would depend on whether the
/// kernel's background thread has merged small pages yet.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(std::string_view name, std::size_t bytes);
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Later writes trap.
  void make_read_only() const;
  /// Fills the data with `pattern`, a part of one at the end with its first bytes.
  void poison(std::uint32_t pattern) const noexcept;
  /// Is not a number in any floating-point type. Arithmetic propagates the pattern but does not create it, so an
  /// element of an output that holds it was not written, or computed from workspace that was not.
  static constexpr std::uint32_t unwritten = 0xFFFFFFFF;

  /// Offset of a damaged red-zone byte from the start of the data, if there is one.
  [[nodiscard]] std::optional<std::ptrdiff_t> damage() const noexcept;

 private:
  static constexpr std::size_t guard = std::size_t{16} << 20;
  static constexpr int red_zone = 0xA5;

  /// A buffer without a free entry still has guards; a trap in it is reported only by address.
  void register_region(std::string_view name) noexcept;

  char* base_ = nullptr;
  char* begin_ = nullptr;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t accessible_ = 0;
  std::size_t reserved_ = 0;
  GuardedRegion* region_ = nullptr;
};

}  // namespace tunewright::measurers::sandbox

#if TUNEWRIGHT_DEFINES(measurers)

#include "tunewright/core/rounded_up.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

namespace tunewright::measurers::sandbox {

TUNEWRIGHT_INLINE std::array<GuardedRegion, 512>& guarded_regions() noexcept {
  static constinit std::array<GuardedRegion, 512> regions{};
  return regions;
}

TUNEWRIGHT_INLINE GuardedBuffer::GuardedBuffer(std::string_view name, std::size_t bytes) : bytes_(bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t padded = rounded_up(bytes, 64);
  accessible_ = rounded_up(padded == 0 ? 1 : padded, page);
  reserved_ = accessible_ + 2 * guard + huge_page_bytes;
  void* base = ::mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw_system_error("mmap of a guarded buffer");
  base_ = static_cast<char*>(base);
  const std::size_t boundary = accessible_ >= huge_page_bytes ? huge_page_bytes : page;
  const std::uintptr_t end = rounded_up(reinterpret_cast<std::uintptr_t>(base_) + guard + accessible_, boundary);
  begin_ = base_ + (end - accessible_ - reinterpret_cast<std::uintptr_t>(base_));
  data_ = begin_ + (accessible_ - padded);
  if (::mprotect(begin_, accessible_, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(base_, reserved_);
    throw_system_error("mprotect of a guarded buffer");
  }
  advise_huge_pages(begin_, accessible_);
  std::memset(begin_, red_zone, static_cast<std::size_t>(data_ - begin_));
  std::memset(data_ + bytes_, red_zone, padded - bytes_);
  register_region(name);
}

TUNEWRIGHT_INLINE GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(begin_, other.begin_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(accessible_, other.accessible_);
  std::swap(reserved_, other.reserved_);
  std::swap(region_, other.region_);
  return *this;
}

TUNEWRIGHT_INLINE GuardedBuffer::~GuardedBuffer() {
  if (region_ != nullptr) *region_ = {};
  if (base_ != nullptr) ::munmap(base_, reserved_);
}

TUNEWRIGHT_INLINE void GuardedBuffer::make_read_only() const {
  if (::mprotect(begin_, accessible_, PROT_READ) != 0) throw_system_error("mprotect of an input");
}

TUNEWRIGHT_INLINE void GuardedBuffer::poison(std::uint32_t pattern) const noexcept {
  std::size_t at = 0;
  for (; at + sizeof pattern <= bytes_; at += sizeof pattern) std::memcpy(data_ + at, &pattern, sizeof pattern);
  std::memcpy(data_ + at, &pattern, bytes_ - at);
}

TUNEWRIGHT_INLINE std::optional<std::ptrdiff_t> GuardedBuffer::damage() const noexcept {
  for (const char* at = begin_; at < data_; ++at) {
    if (*at != static_cast<char>(red_zone)) return at - data_;
  }
  for (const char* at = data_ + bytes_; at < begin_ + accessible_; ++at) {
    if (*at != static_cast<char>(red_zone)) return at - data_;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE void GuardedBuffer::register_region(std::string_view name) noexcept {
  for (GuardedRegion& region : guarded_regions()) {
    if (region.reserve_begin != 0) continue;
    name.copy(region.name, sizeof region.name - 1);
    region.data_begin = reinterpret_cast<std::uintptr_t>(data_);
    region.data_end = region.data_begin + bytes_;
    region.reserve_end = reinterpret_cast<std::uintptr_t>(base_) + reserved_;
    region.reserve_begin = reinterpret_cast<std::uintptr_t>(base_);
    region_ = &region;
    return;
  }
}

}  // namespace tunewright::measurers::sandbox

#endif
