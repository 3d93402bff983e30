// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/// Whether the calling thread has used registers that only AVX-512 has.
///
/// On processors whose AVX-512 is as fast as their AVX2, speed does not tell which of them a library runs. The
/// processor knows which parts of its register state are not in their initial configuration (XINUSE, which XGETBV
/// reads; Intel SDM, volume 1, section 13.6), since that saves time in a change of context. So: clear the parts, let
/// the library work, look. A kernel that has used zmm16 to zmm31 or a mask register leaves traces, which VZEROUPPER
/// does not remove.
namespace tunewright::bench {

class VectorState {
 public:
  /// Whether this machine tells: it says so after an instruction of AVX-512, and not before. False without AVX-512.
  [[nodiscard]] static bool tells() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & avx512f) == 0) return false;
    if (__get_cpuid_count(13, 1, &a, &b, &c, &d) == 0 || (a & xgetbv_1) == 0) return false;
    clear();
    if (avx512_used()) return false;
    asm volatile("vpternlogd $255, %%zmm17, %%zmm17, %%zmm17\n\tvzeroupper" : : : "memory");
    const bool told = avx512_used();
    clear();
    return told && !avx512_used();
#else
    return false;
#endif
  }

  /// Call it where `tells()`: mask registers, upper halves of zmm0 to zmm15, and zmm16 to zmm31 as after a reset.
  static void clear() {
#if defined(__x86_64__)
    // A header that says that no part is saved: those asked for take their initial values.
    alignas(64) static std::array<char, 4096> nothing_saved{};
    asm volatile("xrstor %0" : : "m"(nothing_saved), "a"(avx512_parts), "d"(0) : "memory");
#endif
  }

  [[nodiscard]] static bool avx512_used() {
#if defined(__x86_64__)
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & avx512_parts) != 0;
#else
    return false;
#endif
  }

 private:
  static constexpr std::uint32_t avx512f = 1U << 16U;  // CPUID 7.0, EBX
  static constexpr std::uint32_t xgetbv_1 = 1U << 2U;  // CPUID 13.1, EAX
  static constexpr std::uint32_t avx512_parts = 0xE0;  // opmask, ZMM_Hi256, Hi16_ZMM
};

}  // namespace tunewright::bench
