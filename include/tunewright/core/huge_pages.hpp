// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tunewright/detail/config.hpp"

/// Memory in huge pages: kernels that stream through megabytes otherwise miss the translation buffers once every 4 KiB.
namespace tunewright {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Asks the system to back [begin, begin + bytes) with huge pages, as Linux does only on request in its common setting
/// ("madvise"). It takes effect on whole pages of `huge_page_bytes` that have not been touched yet: allocate large
/// blocks at multiples of it and ask before writing. A hint: nothing changes where the system has no huge pages.
void advise_huge_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <cstdint>

namespace tunewright {

TUNEWRIGHT_INLINE void advise_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t skipped = (huge_page_bytes - from % huge_page_bytes) % huge_page_bytes;
  if (bytes < skipped + huge_page_bytes) return;
  ::madvise(static_cast<char*>(begin) + skipped, bytes - skipped, MADV_HUGEPAGE);
#endif
}

}  // namespace tunewright

#endif
