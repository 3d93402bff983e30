// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/detail/config.hpp"

namespace tunewright {

enum class DeviceKind : std::uint8_t { Cpu, Gpu };

/// Vector instruction sets of CPUs: those of x86-64, each of which contains the ones before it, and Advanced SIMD,
/// which every 64-bit ARM processor with Linux has.
enum class Isa : std::uint8_t { Sse42, Avx2, Avx512, Neon };
inline constexpr std::array<Isa, 4> all_isas{Isa::Sse42, Isa::Avx2, Isa::Avx512, Isa::Neon};

[[nodiscard]] constexpr std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::Sse42: return "sse4.2";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: return "neon";
  }
  return "unknown";
}

/// Families of processors with common machine code, apart from extensions.
enum class CpuFamily : std::uint8_t { X86_64, Aarch64, Other };

[[nodiscard]] constexpr std::string_view name(CpuFamily family) noexcept {
  switch (family) {
    case CpuFamily::X86_64: return "x86-64";
    case CpuFamily::Aarch64: return "aarch64";
    case CpuFamily::Other: break;
  }
  return "another processor";
}

[[nodiscard]] constexpr CpuFamily family_of(Isa isa) noexcept {
  return isa == Isa::Neon ? CpuFamily::Aarch64 : CpuFamily::X86_64;
}

/// The family of the machine that runs this program.
#if defined(__x86_64__)
inline constexpr CpuFamily host_family = CpuFamily::X86_64;
#elif defined(__aarch64__)
inline constexpr CpuFamily host_family = CpuFamily::Aarch64;
#else
inline constexpr CpuFamily host_family = CpuFamily::Other;
#endif

/// Whether `isa` has all instructions of `part`.
[[nodiscard]] constexpr bool contains(Isa isa, Isa part) noexcept {
  return family_of(isa) == family_of(part) && part <= isa;
}

/// Units of a processor that multiply small matrices. Values are bits of `Target::tensor_units`, except for what an
/// instruction set implies.
enum class TensorUnit : std::uint32_t {
  Avx2 = 0,  ///< sums of products of pairs of 16-bit integers, of targets whose instruction set is AVX2
  Avx512Vnni = 1,
  Avx512Bf16 = 2,
  AmxInt8 = 4,
  AmxBf16 = 8,
  TensorCoreFp16 = 16,
  TensorCoreInt8 = 32,
  TensorCoreBf16 = 64
};

/// Whether a unit belongs to a GPU, where a warp executes its instructions jointly.
[[nodiscard]] constexpr bool is_tensor_core(TensorUnit unit) noexcept { return unit >= TensorUnit::TensorCoreFp16; }

/// CPU units have their names from /proc/cpuinfo.
[[nodiscard]] constexpr std::string_view name(TensorUnit unit) noexcept {
  switch (unit) {
    case TensorUnit::Avx2: return "avx2";
    case TensorUnit::Avx512Vnni: return "avx512_vnni";
    case TensorUnit::Avx512Bf16: return "avx512_bf16";
    case TensorUnit::AmxInt8: return "amx_int8";
    case TensorUnit::AmxBf16: return "amx_bf16";
    case TensorUnit::TensorCoreFp16: return "tensor_core_fp16";
    case TensorUnit::TensorCoreInt8: return "tensor_core_int8";
    case TensorUnit::TensorCoreBf16: return "tensor_core_bf16";
  }
  return "unknown";
}

/// The machine to generate code for and to measure on. A value: several targets can describe one machine (fewer
/// threads, an older instruction set), and equal targets share journals.
struct Target {
  std::string name = "generic-cpu";  ///< for people and file names
  DeviceKind kind = DeviceKind::Cpu;

  unsigned threads = 1;  ///< worker threads of a parallel loop
  Isa isa = Isa::Sse42;
  std::uint64_t cache_line_bytes = 64;
  std::uint64_t l1_bytes = 32U << 10;  ///< data cache of one core or multiprocessor
  std::uint64_t l2_bytes = 1U << 20;   ///< of one core; on a GPU of the device
  std::uint64_t l3_bytes = 0;          ///< of the package, shared; 0 when there is none
  /// Width of the arithmetic units of a CPU, which process wider registers in parts; 0: as wide as its registers.
  unsigned vector_datapath_bytes = 0;

  // GPUs only; zero on a CPU or if unknown.
  std::uint64_t shared_memory_per_block_bytes = 0;      ///< that any kernel gets
  std::uint64_t max_shared_memory_per_block_bytes = 0;  ///< that a kernel can ask for
  std::uint64_t shared_memory_per_multiprocessor_bytes = 0;
  unsigned registers_per_block = 0;  ///< of 32 bits
  unsigned registers_per_multiprocessor = 0;
  unsigned max_registers_per_thread = 0;
  unsigned max_threads_per_block = 0;
  unsigned max_threads_per_multiprocessor = 0;
  unsigned max_blocks_per_multiprocessor = 0;
  unsigned max_vthread_extent = 0;
  unsigned warp_size = 0;
  unsigned multiprocessors = 0;
  double peak_fp32_gflops = 0;  ///< multiply-add is two; without tensor units
  double peak_gb_per_s = 0;     ///< of device memory, 10^9 bytes
  /// Compute capability, e.g. "sm_80" or "sm_90a". On CPUs LLVM's name of the processor to generate code for; on 64-bit
  /// ARM optionally with additional features: "cortex-a72", "cortex-a55+dotprod". Empty for this machine's processor
  /// or, on other machines, for a generic one with the same instructions.
  std::string architecture{};
  /// Speed of tensor units with 16-bit factors and 32-bit sums; 8-bit factors are twice as fast. 0: none.
  double peak_tensor_gflops = 0;

  std::uint32_t tensor_units = 0;  ///< bits of `TensorUnit`

  [[nodiscard]] constexpr bool has(TensorUnit unit) const noexcept {
    return unit == TensorUnit::Avx2 ? isa == Isa::Avx2 : (tensor_units & static_cast<std::uint32_t>(unit)) != 0;
  }
  /// This target with an additional unit, for example to generate code for another machine.
  [[nodiscard]] Target with_tensor_unit(TensorUnit unit) const;
  /// This target without a unit; the same target if it lacks it, or if its instruction set implies it.
  [[nodiscard]] Target without_tensor_unit(TensorUnit unit) const;

  /// Compute capability times ten, e.g. 90 of "sm_90a"; 0 if the architecture has another form.
  [[nodiscard]] unsigned compute_capability() const noexcept { return compute_capability(architecture); }
  [[nodiscard]] static unsigned compute_capability(std::string_view architecture) noexcept;
  /// Compute capability, times ten, from which devices copy to shared memory asynchronously.
  static constexpr unsigned asynchronous_copies_since = 80;
  [[nodiscard]] bool copies_asynchronously() const noexcept {
    return compute_capability() >= asynchronous_copies_since;
  }

  /// Only devices of compute capability 9.0 have warp-group products (`wgmma`), in code for this architecture, which
  /// runs on no other device. "sm_90" is the same device without them.
  static constexpr std::string_view warp_group_architecture = "sm_90a";
  [[nodiscard]] bool multiplies_by_warp_groups() const noexcept { return architecture == warp_group_architecture; }
  /// Share of `peak_tensor_gflops` that single-warp tensor instructions can reach. On 9.0 only warp-group instructions
  /// reach the peak; `mma.sync` was measured at 0.63 of it on an H100 (Luo et al. 2024, arXiv:2402.13499, tensor
  /// cores).
  [[nodiscard]] double tensor_peak_share_of_warps() const noexcept {
    return compute_capability() == compute_capability(warp_group_architecture) ? 0.63 : 1.0;
  }

  /// Maximum shared memory of a block.
  [[nodiscard]] constexpr std::uint64_t shared_memory_limit_bytes() const noexcept {
    return max_shared_memory_per_block_bytes > shared_memory_per_block_bytes ? max_shared_memory_per_block_bytes
                                                                             : shared_memory_per_block_bytes;
  }
  /// Registers of a thread, and blocks that a multiprocessor runs at a time, for estimates: where the target does not
  /// state them, the most that any device since compute capability 3.5 allows and the least.
  [[nodiscard]] constexpr unsigned thread_registers_limit() const noexcept {
    return max_registers_per_thread > 0 ? max_registers_per_thread : 255;
  }
  [[nodiscard]] constexpr unsigned resident_blocks_limit() const noexcept {
    return max_blocks_per_multiprocessor > 0 ? max_blocks_per_multiprocessor : 16;
  }
  /// Bytes of one vector register.
  [[nodiscard]] constexpr unsigned vector_bytes() const noexcept {
    return isa == Isa::Avx512 ? 64U : isa == Isa::Avx2 ? 32U : 16U;
  }
  /// Elements of `element_bytes` bytes in one vector register.
  [[nodiscard]] constexpr std::int64_t vector_lanes(std::size_t element_bytes) const noexcept {
    return static_cast<std::int64_t>(vector_bytes() / element_bytes);
  }
  /// Share of a vector register that an arithmetic unit processes at a time, at most 1.
  [[nodiscard]] constexpr double vector_datapath_share() const noexcept {
    return vector_datapath_bytes == 0 || vector_datapath_bytes >= vector_bytes()
               ? 1.0
               : static_cast<double>(vector_datapath_bytes) / vector_bytes();
  }
  /// Architectural vector registers.
  [[nodiscard]] constexpr unsigned vector_registers() const noexcept {
    return isa == Isa::Avx512 || isa == Isa::Neon ? 32U : 16U;
  }

  /// The same machine with an older instruction set, without newer tensor units. Throws `std::invalid_argument` if this
  /// target lacks `wanted`.
  [[nodiscard]] Target with_isa(Isa wanted) const;
  /// The same machine with `count` threads. Throws `std::invalid_argument` for zero.
  [[nodiscard]] Target with_threads(unsigned count) const;

  bool operator==(const Target&) const = default;
};

/// Key of a target in journals: everything that changes generated code or its speed, without the name.
[[nodiscard]] std::uint64_t stable_hash(const Target& t);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/hash.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE Target Target::with_tensor_unit(TensorUnit unit) const {
  Target extended = *this;
  extended.tensor_units |= static_cast<std::uint32_t>(unit);
  return extended;
}

TUNEWRIGHT_INLINE Target Target::without_tensor_unit(TensorUnit unit) const {
  Target restricted = *this;
  restricted.tensor_units &= ~static_cast<std::uint32_t>(unit);
  return restricted;
}

TUNEWRIGHT_INLINE unsigned Target::compute_capability(std::string_view architecture) noexcept {
  if (!architecture.starts_with("sm_")) return 0;
  unsigned number = 0;
  for (const char c : architecture.substr(3)) {
    if (c < '0' || c > '9' || number > 9999) break;
    number = 10 * number + static_cast<unsigned>(c - '0');
  }
  return number;
}

TUNEWRIGHT_INLINE Target Target::with_isa(Isa wanted) const {
  if (kind != DeviceKind::Cpu || !contains(isa, wanted)) {
    throw std::invalid_argument("target '" + name + "' has no " + std::string(tunewright::name(wanted)) +
                                "; ask for at most " + std::string(tunewright::name(isa)));
  }
  Target restricted = *this;
  restricted.isa = wanted;
  if (wanted != Isa::Avx512) restricted.tensor_units = 0;
  return restricted;
}

TUNEWRIGHT_INLINE Target Target::with_threads(unsigned count) const {
  if (count == 0) throw std::invalid_argument("a target needs at least 1 thread, 0 were asked for");
  Target restricted = *this;
  restricted.threads = count;
  return restricted;
}

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const Target& t) {
  StableHash hash;
  hash.add(static_cast<unsigned>(t.kind))
      .add(t.threads)
      .add(static_cast<unsigned>(t.isa))
      .add(t.cache_line_bytes)
      .add(t.l1_bytes)
      .add(t.l2_bytes)
      .add(t.l3_bytes)
      .add(t.shared_memory_per_block_bytes)
      .add(t.max_threads_per_block)
      .add(t.max_vthread_extent)
      .add(t.warp_size)
      .add(t.multiprocessors)
      .add(t.architecture);
  if (t.kind == DeviceKind::Gpu) {
    hash.add(t.max_shared_memory_per_block_bytes)
        .add(t.shared_memory_per_multiprocessor_bytes)
        .add(t.registers_per_block)
        .add(t.registers_per_multiprocessor)
        .add(t.max_registers_per_thread)
        .add(t.max_threads_per_multiprocessor)
        .add(t.max_blocks_per_multiprocessor)
        .add(t.peak_fp32_gflops)
        .add(t.peak_gb_per_s);
  }
  if (t.tensor_units != 0) hash.add(t.tensor_units);  // others keep the keys they had
  if (t.vector_datapath_share() < 1) hash.add("vector datapath").add(t.vector_datapath_bytes);
  if (t.peak_tensor_gflops > 0) hash.add(t.peak_tensor_gflops);
  return hash.value();
}

}  // namespace tunewright

#endif
