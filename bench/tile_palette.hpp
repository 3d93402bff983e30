// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#endif

/// What processors say about their tile registers, where a hypervisor keeps it to itself.
///
/// Some virtual machines have AMX, and leave the leaf of CPUID empty that describes its registers. oneDNN shapes the
/// registers after that leaf, so to no registers at all, and dies of an illegal instruction at its first product.
namespace tunewright::bench {

#if defined(__x86_64__) && defined(__linux__)

/// While one lives, CPUID tells its thread of the one palette there is (Intel SDM, volume 1, chapter 18): eight
/// registers, 16 rows of 64 bytes. It does nothing where CPUID tells it anyway, where there is no AMX, or where CPUID
/// cannot be made to fault. One at a time, and no thread may start meanwhile: it would go on asking after the answers
/// are gone.
class TilePalette {
 public:
  TilePalette() {
    const Leaf hidden = ask(palettes, 0);
    const bool has_registers = (ask(features, 0).edx & amx_tile) != 0;
    if (!has_registers || hidden.eax != 0) return;
    struct sigaction answer{};
    answer.sa_sigaction = &TilePalette::answer;
    answer.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSEGV, &answer, &before_) != 0) return;
    faults_ = set_cpuid(false);
    if (!faults_) sigaction(SIGSEGV, &before_, nullptr);
  }
  ~TilePalette() {
    if (!faults_) return;
    set_cpuid(true);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  TilePalette(const TilePalette&) = delete;
  TilePalette& operator=(const TilePalette&) = delete;

 private:
  static constexpr unsigned features = 7, palettes = 0x1D, multiplier = 0x1E;
  static constexpr unsigned amx_tile = 1U << 24U;
  struct Leaf {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  };

  static Leaf ask(unsigned leaf, unsigned part) {
    Leaf l;
    __cpuid_count(leaf, part, l.eax, l.ebx, l.ecx, l.edx);
    return l;
  }
  /// Whether CPUID works (true) or faults; returns whether that could be had.
  static bool set_cpuid(bool works) {
    constexpr long arch_set_cpuid = 0x1012;
    return syscall(SYS_arch_prctl, arch_set_cpuid, works ? 1L : 0L) == 0;
  }
  static Leaf told(unsigned leaf, unsigned part) {
    if (leaf == palettes && part == 0) return {.eax = 1};  // the number of the last palette
    if (leaf == palettes && part == 1)                     // 8 KiB of 1 KiB each, 64 bytes a row, 8 registers, 16 rows
      return {.eax = 8192U | 1024U << 16U, .ebx = 64U | 8U << 16U, .ecx = 16U};
    if (leaf == multiplier && part == 0) return {.ebx = 16U | 64U << 8U};  // 16 rows, 64 bytes a column
    return ask(leaf, part);
  }
  static void answer(int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto* instruction = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
    if (instruction[0] != 0x0F || instruction[1] != 0xA2) {  // not CPUID: a fault of its own
      sigaction(SIGSEGV, &before_, nullptr);
      return;
    }
    set_cpuid(true);
    const Leaf leaf = told(static_cast<unsigned>(registers[REG_RAX]), static_cast<unsigned>(registers[REG_RCX]));
    set_cpuid(false);
    registers[REG_RAX] = leaf.eax;
    registers[REG_RBX] = leaf.ebx;
    registers[REG_RCX] = leaf.ecx;
    registers[REG_RDX] = leaf.edx;
    registers[REG_RIP] += 2;
  }

  inline static struct sigaction before_{};
  bool faults_ = false;
};

#else
class TilePalette {};
#endif

}  // namespace tunewright::bench
