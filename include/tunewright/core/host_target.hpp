// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// Describes the processors that this program may use, from /sys, /proc and the scheduler (Linux).
namespace tunewright {

/// Reads a system file; empty if there is none. A function, so that tests can describe any machine by its files.
using SystemFiles = std::function<std::optional<std::string>(const std::string& path)>;

[[nodiscard]] SystemFiles system_files();

namespace host {

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Leading decimal number of `text`; empty if there is none.
[[nodiscard]] std::optional<std::uint64_t> number(std::string_view text);

/// "32K", "36608K", "2M", "64" in bytes; zero for anything else.
[[nodiscard]] std::uint64_t size_in_bytes(std::string_view text);

/// "0-2,8" as 0, 1, 2, 8. Stops at the first part that is neither a number nor a range.
[[nodiscard]] std::vector<int> processor_list(std::string_view text);

/// The same from a user: empty unless all of `text` is such a list, of processors that a `cpu_set_t` holds: below 1024.
[[nodiscard]] std::vector<int> whole_processor_list(std::string_view text);

/// `text` as a number, if it has digits and nothing else.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);

/// Value of the first line "key : value" of /proc/cpuinfo with that key.
[[nodiscard]] std::string cpuinfo_value(std::string_view cpuinfo, std::string_view key);

/// The newest instruction set whose parts are all among `flags`, as listed in /proc/cpuinfo. Code for AVX2 may use all
/// that the first processors with it had: conversions of 16-bit floats, instructions for bits, loads that swap bytes.
/// The system omits flags whose registers it does not save, so listed ones are usable. Empty without SSE4.2.
[[nodiscard]] std::optional<Isa> isa_of_flags(std::string_view flags);

/// `Target::vector_datapath_bytes` of an x86-64 processor, from its maker, family and model in /proc/cpuinfo. AMD has
/// processors whose units are narrower than their registers: Zen and Zen+ (and Hygon's) compute 32 bytes in two steps,
/// Zen 4 and the Zen 5 of notebooks 64 (software optimization guides 55723, 57647 and 58455). Zen 3, of Zen 4's family,
/// has units as wide as its registers, which is 32 as well. 0 for all others.
[[nodiscard]] unsigned vector_datapath_bytes(std::string_view cpuinfo);

/// Whether a 64-bit ARM processor with these features, as listed in /proc/cpuinfo, has Advanced SIMD.
[[nodiscard]] bool has_advanced_simd(std::string_view features);

/// The maker's name of a 64-bit ARM processor, from its numbers in /proc/cpuinfo, e.g. "Neoverse N1"; the numbers
/// themselves if unknown.
[[nodiscard]] std::string arm_processor_name(std::string_view cpuinfo);

/// Tensor units among `flags`, as bits of `TensorUnit`. The system lists tile registers if it can save them; a process
/// must still request them, see `permit_tile_registers`.
[[nodiscard]] std::uint32_t tensor_units_of_flags(std::string_view flags);

/// Requests the tile registers of AMX for this process and those it forks later. Returns false if the system refuses.
[[nodiscard]] bool permit_tile_registers();

/// Processors this process may run on.
[[nodiscard]] std::vector<int> allowed_processors();

/// The processors as the system takes them; those from 1024 on are left out.
[[nodiscard]] cpu_set_t cpu_set_of(std::span<const int> processors);

/// Keeps the calling thread to these processors; does nothing if there are none, or if the system refuses. Results do
/// not depend on it, only times do.
void keep_to(std::span<const int> processors);

/// One processor of `allowed` per core: two threads on one core share its vector units, which a tuned kernel fills
/// alone.
[[nodiscard]] std::vector<int> one_per_core(const std::vector<int>& allowed, const SystemFiles& files);

/// Number of whole processors that the control group grants; empty without a limit.
[[nodiscard]] std::optional<unsigned> processor_quota(const SystemFiles& files);

/// Fills in the caches of `processor`; values that cannot be read stay unchanged.
void read_caches(Target& target, int processor, const SystemFiles& files);

}  // namespace host

/// The processors to run kernels on: one allowed processor per physical core.
[[nodiscard]] inline std::vector<int> host_processors() {
  return host::one_per_core(host::allowed_processors(), system_files());
}

/// The machine described by `files` as a target with the processors `allowed`. On 64-bit ARM only Advanced SIMD counts:
/// code is never generated for scalable vectors (SVE). If cores differ, the first one is described. Throws
/// `std::runtime_error` if the machine has, or reports, neither SSE4.2 nor Advanced SIMD.
[[nodiscard]] Target describe_host(const SystemFiles& files, const std::vector<int>& allowed);

/// This machine: instruction set, tensor units, caches, and one thread per physical core that the process may use.
/// Restrict it with `with_isa` and `with_threads`. If the machine has tile registers, it requests them from the system.
[[nodiscard]] Target host_target();

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/read_file.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE SystemFiles system_files() {
  return [](const std::string& path) { return read_file(path); };
}

}  // namespace tunewright

namespace tunewright::host {

TUNEWRIGHT_INLINE std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

TUNEWRIGHT_INLINE std::optional<std::uint64_t> number(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

TUNEWRIGHT_INLINE std::uint64_t size_in_bytes(std::string_view text) {
  text = trimmed(text);
  const std::size_t unit = std::min(text.find_first_of("KMG"), text.size());
  const auto value = whole_number(text.substr(0, unit));
  if (!value || unit + 1 < text.size()) return 0;
  if (unit == text.size()) return *value;
  return *value << (text[unit] == 'K' ? 10 : text[unit] == 'M' ? 20 : 30);
}

/// First and last number of "0-2", twice that of "8"; empty for what is no number.
[[nodiscard]] TUNEWRIGHT_INLINE std::pair<std::optional<std::uint64_t>, std::optional<std::uint64_t>> number_range(
    std::string_view text) {
  const auto dash = text.find('-');
  const auto first = whole_number(text.substr(0, dash));
  return {first, dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1))};
}

TUNEWRIGHT_INLINE std::vector<int> processor_list(std::string_view text) {
  std::vector<int> processors;
  text = trimmed(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto [first, last] = number_range(part);
    if (!first || !last || *last > 1'000'000) break;
    for (std::uint64_t p = *first; p <= *last; ++p) processors.push_back(static_cast<int>(p));
  }
  return processors;
}

TUNEWRIGHT_INLINE std::optional<std::uint64_t> whole_number(std::string_view text) {
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return number(text);
}

TUNEWRIGHT_INLINE std::vector<int> whole_processor_list(std::string_view text) {
  std::vector<int> processors;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const auto [first, last] = number_range(part);
    if (!first || !last || *first > *last || *last >= 1024) return {};
    for (std::uint64_t p = *first; p <= *last; ++p) processors.push_back(static_cast<int>(p));
    begin = end + 1;
  }
  return processors;
}

TUNEWRIGHT_INLINE std::string cpuinfo_value(std::string_view cpuinfo, std::string_view key) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trimmed(std::string_view(line).substr(0, colon)) == key) {
      return std::string(trimmed(std::string_view(line).substr(colon + 1)));
    }
  }
  return {};
}

TUNEWRIGHT_INLINE std::optional<Isa> isa_of_flags(std::string_view flags) {
  std::istringstream words{std::string(flags)};
  const std::vector<std::string> present{std::istream_iterator<std::string>(words), {}};
  const auto has = [&](std::initializer_list<const char*> wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const char* flag) {
      return std::find(present.begin(), present.end(), flag) != present.end();
    });
  };
  if (!has({"sse4_2"})) return std::nullopt;
  if (!has({"avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"})) return Isa::Sse42;
  return has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}) ? Isa::Avx512 : Isa::Avx2;
}

TUNEWRIGHT_INLINE unsigned vector_datapath_bytes(std::string_view cpuinfo) {
  const std::string vendor = cpuinfo_value(cpuinfo, "vendor_id");
  const std::uint64_t family = number(cpuinfo_value(cpuinfo, "cpu family")).value_or(0);
  const std::uint64_t model = number(cpuinfo_value(cpuinfo, "model")).value_or(0);
  const auto within = [&](std::uint64_t first, std::uint64_t last) { return first <= model && model <= last; };
  constexpr std::uint64_t zen = 0x17, hygon = 0x18, zen3_and_4 = 0x19, zen5 = 0x1a;
  if (vendor == "HygonGenuine") return family == hygon ? 16 : 0;
  if (vendor != "AuthenticAMD") return 0;
  if (family == zen && (within(0x00, 0x2f) || within(0x50, 0x5f))) return 16;
  if (family == zen3_and_4) return 32;
  if (family == zen5 && (within(0x20, 0x2f) || within(0x60, 0x6f))) return 32;
  return 0;
}

TUNEWRIGHT_INLINE bool has_advanced_simd(std::string_view features) {
  std::istringstream words{std::string(features)};
  for (std::string word; words >> word;) {
    if (word == "asimd") return true;
  }
  return false;
}

TUNEWRIGHT_INLINE std::string arm_processor_name(std::string_view cpuinfo) {
  // Part numbers of Arm Ltd., from the main identification registers in the processors' reference manuals.
  struct Part {
    std::string_view number;
    std::string_view name;
  };
  static constexpr Part parts[] = {{"0xd03", "Cortex-A53"}, {"0xd05", "Cortex-A55"},  {"0xd07", "Cortex-A57"},
                                   {"0xd08", "Cortex-A72"}, {"0xd09", "Cortex-A73"},  {"0xd0a", "Cortex-A75"},
                                   {"0xd0b", "Cortex-A76"}, {"0xd0c", "Neoverse N1"}, {"0xd40", "Neoverse V1"},
                                   {"0xd41", "Cortex-A78"}, {"0xd49", "Neoverse N2"}, {"0xd4f", "Neoverse V2"}};
  const std::string implementer = cpuinfo_value(cpuinfo, "CPU implementer");
  const std::string number = cpuinfo_value(cpuinfo, "CPU part");
  if (implementer.empty() || number.empty()) return {};
  for (const Part& part : parts) {
    if (implementer == "0x41" && number == part.number) return std::string(part.name);
  }
  return "ARM processor " + implementer + ":" + number;
}

TUNEWRIGHT_INLINE std::uint32_t tensor_units_of_flags(std::string_view flags) {
  std::istringstream words{std::string(flags)};
  std::uint32_t units = 0;
  for (std::string word; words >> word;) {
    for (const TensorUnit unit :
         {TensorUnit::Avx512Vnni, TensorUnit::Avx512Bf16, TensorUnit::AmxInt8, TensorUnit::AmxBf16}) {
      if (word == name(unit)) units |= static_cast<std::uint32_t>(unit);
    }
  }
  return units;
}

TUNEWRIGHT_INLINE bool permit_tile_registers() {
#if defined(__x86_64__)
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM, which older headers lack
  constexpr long tile_data = 18;
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

TUNEWRIGHT_INLINE std::vector<int> allowed_processors() {
  // Machines may have more processors than a `cpu_set_t` has bits; the call then fails.
  for (std::size_t count = 1024; count <= std::size_t{1} << 20; count *= 4) {
    std::vector<unsigned long> bits(count / (8 * sizeof(unsigned long)));
    const std::size_t bytes = bits.size() * sizeof(unsigned long);
    auto* set = reinterpret_cast<cpu_set_t*>(bits.data());
    if (::sched_getaffinity(0, bytes, set) != 0) continue;
    std::vector<int> processors;
    for (std::size_t p = 0; p < count; ++p) {
      if (CPU_ISSET_S(p, bytes, set)) processors.push_back(static_cast<int>(p));
    }
    return processors;
  }
  return {0};
}

TUNEWRIGHT_INLINE cpu_set_t cpu_set_of(std::span<const int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<std::size_t>(processor), &set);
  return set;
}

TUNEWRIGHT_INLINE void keep_to(std::span<const int> processors) {
  if (processors.empty()) return;
  const cpu_set_t set = cpu_set_of(processors);
  static_cast<void>(::sched_setaffinity(0, sizeof set, &set));
}

TUNEWRIGHT_INLINE std::vector<int> one_per_core(const std::vector<int>& allowed, const SystemFiles& files) {
  std::vector<int> chosen;
  std::vector<int> taken;
  for (const int processor : allowed) {
    if (std::find(taken.begin(), taken.end(), processor) != taken.end()) continue;
    chosen.push_back(processor);
    const auto text =
        files("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list");
    const std::vector<int> siblings = text ? processor_list(*text) : std::vector<int>{};
    taken.insert(taken.end(), siblings.begin(), siblings.end());
  }
  return chosen;
}

TUNEWRIGHT_INLINE std::optional<unsigned> processor_quota(const SystemFiles& files) {
  std::optional<std::uint64_t> quota;
  std::optional<std::uint64_t> period;
  if (const auto both = files("/sys/fs/cgroup/cpu.max")) {
    quota = number(*both);  // "max" when unlimited
    const auto space = both->find(' ');
    if (space != std::string::npos) period = number(std::string_view(*both).substr(space));
  } else if (const auto old = files("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")) {
    quota = number(*old);  // -1 when unlimited
    if (const auto old_period = files("/sys/fs/cgroup/cpu/cpu.cfs_period_us")) period = number(*old_period);
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<unsigned>(std::max<std::uint64_t>(1, *quota / *period));
}

TUNEWRIGHT_INLINE void read_caches(Target& target, int processor, const SystemFiles& files) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index";
  const auto first_cache = files(folder + "0/level");
  if (first_cache) target.l3_bytes = 0;
  for (int index = 0; index < 16; ++index) {
    const std::string cache = folder + std::to_string(index) + "/";
    const auto level = files(cache + "level");
    const auto type = files(cache + "type");
    const auto size = files(cache + "size");
    if (!level || !type || !size || trimmed(*type) == "Instruction") continue;
    const std::uint64_t bytes = size_in_bytes(*size);
    if (bytes == 0) continue;
    switch (number(*level).value_or(0)) {
      case 1: {
        target.l1_bytes = bytes;
        if (const auto line = files(cache + "coherency_line_size")) {
          if (const auto line_bytes = number(*line); line_bytes && *line_bytes != 0)
            target.cache_line_bytes = *line_bytes;
        }
        break;
      }
      case 2: target.l2_bytes = bytes; break;
      case 3: target.l3_bytes = bytes; break;
      default: break;
    }
  }
}

}  // namespace tunewright::host

namespace tunewright {

TUNEWRIGHT_INLINE Target describe_host(const SystemFiles& files, const std::vector<int>& allowed) {
  const std::string cpuinfo = files("/proc/cpuinfo").value_or("");
  const std::string flags = host::cpuinfo_value(cpuinfo, "flags");
  const bool is_arm = host::has_advanced_simd(host::cpuinfo_value(cpuinfo, "Features"));
  const std::optional<Isa> isa = is_arm ? Isa::Neon : host::isa_of_flags(flags);
  if (!isa) {
    throw std::runtime_error(
        "/proc/cpuinfo names no processor with SSE4.2 or, of 64-bit ARM, Advanced SIMD ('asimd'), the oldest that "
        "code is generated for; fill in a Target by hand to tune for another machine");
  }
  Target target;
  target.name = is_arm ? host::arm_processor_name(cpuinfo) : host::cpuinfo_value(cpuinfo, "model name");
  if (target.name.empty()) target.name = "unnamed processor";
  target.isa = *isa;
  if (*isa == Isa::Avx512) target.tensor_units = host::tensor_units_of_flags(flags);
  if (!is_arm) target.vector_datapath_bytes = host::vector_datapath_bytes(cpuinfo);
  const std::vector<int> cores = host::one_per_core(allowed, files);
  target.threads = static_cast<unsigned>(std::max<std::size_t>(1, cores.size()));
  if (const auto quota = host::processor_quota(files)) target.threads = std::min(target.threads, *quota);
  host::read_caches(target, cores.empty() ? 0 : cores.front(), files);
  return target;
}

TUNEWRIGHT_INLINE Target host_target() {
  Target target = describe_host(system_files(), host::allowed_processors());
  const auto tiles = static_cast<std::uint32_t>(TensorUnit::AmxInt8) | static_cast<std::uint32_t>(TensorUnit::AmxBf16);
  if ((target.tensor_units & tiles) != 0 && !host::permit_tile_registers()) target.tensor_units &= ~tiles;
  return target;
}

}  // namespace tunewright

#endif
