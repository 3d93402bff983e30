// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/target.hpp"

/// The instruction set that tuned kernels and libraries are held to alike.
///
/// Libraries choose their kernels when they are loaded or first called, by CPUID, and each has a variable of the
/// environment of its own that overrules the choice. `restart_with` starts the program again with these set, so that
/// nothing of the process has chosen before.
namespace tunewright::bench {

/// `Native` is what the machine has, with each library's own choice. `Avx512` leaves the tile registers out, `Amx` is
/// the machine with them.
enum class InstructionSet : std::uint8_t { Sse42, Avx2, Avx512, Amx, Native };

[[nodiscard]] constexpr std::string_view name(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::Sse42: return "sse4.2";
    case InstructionSet::Avx2: return "avx2";
    case InstructionSet::Avx512: return "avx512";
    case InstructionSet::Amx: return "amx";
    case InstructionSet::Native: return "native";
  }
  return "unknown";
}

/// Throws `std::invalid_argument` for a name that is none.
[[nodiscard]] inline InstructionSet parse_instruction_set(std::string_view text) {
  using enum InstructionSet;
  for (const InstructionSet set : {Sse42, Avx2, Avx512, Amx, Native}) {
    if (text == name(set)) return set;
  }
  throw std::invalid_argument("'" + std::string(text) +
                              "' was given for an instruction set; give sse4.2, avx2, avx512, amx or native");
}

/// `host` as far as `set` goes. Throws `std::invalid_argument` when the host lacks the instructions.
[[nodiscard]] inline Target held_to(const Target& host, InstructionSet set) {
  const auto without_tiles = [](const Target& target) {
    return target.without_tensor_unit(TensorUnit::AmxInt8).without_tensor_unit(TensorUnit::AmxBf16);
  };
  switch (set) {
    case InstructionSet::Sse42: return host.with_isa(Isa::Sse42);
    case InstructionSet::Avx2: return host.with_isa(Isa::Avx2);
    case InstructionSet::Avx512: return without_tiles(host.with_isa(Isa::Avx512));
    case InstructionSet::Amx:
      if (!host.has(TensorUnit::AmxInt8) && !host.has(TensorUnit::AmxBf16)) {
        throw std::invalid_argument("target '" + host.name + "' has no amx; ask for at most " +
                                    std::string(name(host.isa)));
      }
      return host;
    case InstructionSet::Native: return host;
  }
  return host;
}

/// A variable of the environment, and the value it must have; empty: it must not be set.
using Variable = std::pair<std::string, std::string>;

/// What the libraries that we compare with are told: the instruction set, the threads, and how long threads wait
/// actively after a call (no longer than the measurer settles before the next kernel's turn).
///
/// The C library is told as well, since libraries copy memory by it. `vendor` is that of /proc/cpuinfo: OpenBLAS has
/// kernels of the same instructions for each.
[[nodiscard]] inline std::vector<Variable> library_environment(InstructionSet set, unsigned threads,
                                                               std::string_view vendor) {
  struct Names {
    const char *onednn, *openblas, *mkl, *libxsmm, *libc;
  };
  const auto names = [&]() -> Names {
    constexpr const char* no_avx512 = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL";
    switch (set) {
      case InstructionSet::Sse42:
        return {"SSE41", "Nehalem", "SSE4_2", "wsm",
                "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-AVX_Fast_Unaligned_Load"};
      case InstructionSet::Avx2:
        return {"AVX2", vendor == "AuthenticAMD" ? "Zen" : "Haswell", "AVX2", "hsw", no_avx512};
      case InstructionSet::Avx512: return {"AVX512_CORE_BF16", "SkylakeX", "AVX512", "skx", ""};
      case InstructionSet::Amx: return {"AVX512_CORE_AMX", "SkylakeX", "AVX512_E4", "skx", ""};
      case InstructionSet::Native: break;
    }
    return {"", "", "", "", ""};
  }();
  const std::string count = std::to_string(threads);
  return {{"ONEDNN_MAX_CPU_ISA", names.onednn},
          {"DNNL_MAX_CPU_ISA", names.onednn},
          {"OPENBLAS_CORETYPE", names.openblas},
          {"MKL_ENABLE_INSTRUCTIONS", names.mkl},
          {"LIBXSMM_TARGET", names.libxsmm},
          {"GLIBC_TUNABLES", names.libc},
          {"OMP_NUM_THREADS", count},
          {"OPENBLAS_NUM_THREADS", count},
          {"OPENBLAS_THREAD_TIMEOUT", "24"},  // 2^24 cycles; 2^28, which some builds wait, take 0.1 s
          {"BLIS_NUM_THREADS", count},
          {"MKL_NUM_THREADS", count},
          {"OMP_DYNAMIC", "FALSE"},
          {"MKL_DYNAMIC", "FALSE"},
          {"KMP_BLOCKTIME", "20"}};
}

/// The vendor of this machine's processor, as `library_environment` takes it; empty if it is not told.
[[nodiscard]] inline std::string host_vendor() {
  return host::cpuinfo_value(system_files()("/proc/cpuinfo").value_or(""), "vendor_id");
}

/// Replaces this program by itself with `variables` set, or does nothing where they are. Call it before anything else:
/// threads end, buffered output is lost. Throws `std::system_error` when the program cannot be started again.
inline void restart_with(const std::vector<Variable>& variables, char** argv) {
  bool as_wanted = true;
  for (const auto& [variable, value] : variables) {
    const char* present = std::getenv(variable.c_str());
    if (present == nullptr ? value.empty() : value == present) continue;
    as_wanted = false;
    if (value.empty())
      ::unsetenv(variable.c_str());
    else
      ::setenv(variable.c_str(), value.c_str(), 1);
  }
  if (as_wanted) return;
  std::error_code unknown;
  ::execv(std::filesystem::read_symlink("/proc/self/exe", unknown).c_str(), argv);  // the path gives a process its name
  ::execv("/proc/self/exe", argv);  // whatever stands at that path by now
  throw std::system_error(errno, std::generic_category(), "the program cannot be started again by /proc/self/exe");
}

}  // namespace tunewright::bench
