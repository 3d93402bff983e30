// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/stats/robust.hpp"

/// Peak rates of the machine, measured instead of looked up: clock frequencies depend on the instructions, on the
/// number of active cores and, in a virtual machine, on its neighbours. Measure the peak in the same run as the kernels
/// that are compared with it.
namespace tunewright::measurers {

struct PeakOptions {
  double seconds_per_repeat = 0.02;
  unsigned repeats = 9;
  std::vector<int> processors = host_processors();  ///< threads are pinned to the first of them; empty: not pinned
};

namespace peak {

/// Number of independent accumulators, one register each. Sixteen would leave no registers for operands; two units with
/// a latency of four or five cycles need eight to ten. The loop is assembly, because the figure must not depend on
/// optimisation level or instruction set of the program.
inline constexpr int chains = 12;

#if defined(__x86_64__)
#define TUNEWRIGHT_PEAK_EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define TUNEWRIGHT_PEAK_ZMM(i) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #i "\n\t"
#define TUNEWRIGHT_PEAK_YMM(i) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define TUNEWRIGHT_PEAK_MUL(i) "mulps %%xmm12, %%xmm" #i "\n\t"
#define TUNEWRIGHT_PEAK_ADD(i) "addps %%xmm12, %%xmm" #i "\n\t"
#define TUNEWRIGHT_PEAK_TURNS(f, g) f(0) g(1) f(2) g(3) f(4) g(5) f(6) g(7) f(8) g(9) f(10) g(11)
#define TUNEWRIGHT_PEAK_CLEAR(i) "xorps %%xmm" #i ", %%xmm" #i "\n\t"
// All sums stay zero: arithmetic on zeros is as fast as on other normal numbers.
#define TUNEWRIGHT_PEAK_LOOP(body, end)                                                                            \
  asm volatile(TUNEWRIGHT_PEAK_EACH(TUNEWRIGHT_PEAK_CLEAR) TUNEWRIGHT_PEAK_CLEAR(12)                               \
                   TUNEWRIGHT_PEAK_CLEAR(13) "1:\n\t" body body body body                                          \
                                             "sub $1, %0\n\t"                                                      \
                                             "jnz 1b\n\t" end                                                      \
               : "+r"(rounds)                                                                                      \
               :                                                                                                   \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
                 "xmm12", "xmm13", "cc")
#endif

/// Runs `rounds` (at least 1) rounds of four times twelve vector instructions; returns the number of floating-point
/// operations.
inline double run(Isa isa, std::uint64_t rounds) {
  const double instructions = 4.0 * chains * static_cast<double>(rounds);
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Avx512:
      TUNEWRIGHT_PEAK_LOOP(TUNEWRIGHT_PEAK_EACH(TUNEWRIGHT_PEAK_ZMM), "vzeroupper");
      return instructions * 16 * 2;
    case Isa::Avx2:
      TUNEWRIGHT_PEAK_LOOP(TUNEWRIGHT_PEAK_EACH(TUNEWRIGHT_PEAK_YMM), "vzeroupper");
      return instructions * 8 * 2;
    case Isa::Sse42:
      // Without fused instructions, some processors run additions and multiplications on shared units, others on
      // separate ones; equally many of both, as in matrix products, show the combined rate.
      TUNEWRIGHT_PEAK_LOOP(TUNEWRIGHT_PEAK_TURNS(TUNEWRIGHT_PEAK_MUL, TUNEWRIGHT_PEAK_ADD), "");
      return instructions * 4;
    case Isa::Neon: break;
  }
#endif
  throw std::invalid_argument("the peak of instruction set " + std::string(name(isa)) + " cannot be measured here");
}

#if defined(__x86_64__)
#undef TUNEWRIGHT_PEAK_EACH
#undef TUNEWRIGHT_PEAK_ZMM
#undef TUNEWRIGHT_PEAK_YMM
#undef TUNEWRIGHT_PEAK_MUL
#undef TUNEWRIGHT_PEAK_ADD
#undef TUNEWRIGHT_PEAK_TURNS
#undef TUNEWRIGHT_PEAK_CLEAR
#undef TUNEWRIGHT_PEAK_LOOP
#endif

/// Calls `work(thread)` on `threads` pinned threads that start together, `repeats` times; returns the seconds from the
/// start to the end of the last thread, one value per repeat. Throws `std::system_error` if the system has no thread
/// for each.
template <class Work>
[[nodiscard]] std::vector<double> together(unsigned threads, unsigned repeats, std::span<const int> processors,
                                           const Work& work) {
  std::vector<double> seconds;
  for (unsigned repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<unsigned> waiting{threads};
    std::atomic<bool> is_incomplete{false};
    std::vector<double> begin(threads);
    std::vector<double> end(threads);
    {
      std::vector<std::jthread> team;
      const auto start = [&](unsigned t) {
        team.emplace_back([&, t] {
          if (t < processors.size()) host::keep_to(processors.subspan(t, 1));
          const auto now = [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          };
          --waiting;
          while (waiting.load() != 0) std::this_thread::yield();
          if (is_incomplete) return;
          begin[t] = now();
          work(t);
          end[t] = now();
        });
      };
      try {
        for (unsigned t = 0; t < threads; ++t) start(t);
      } catch (...) {
        is_incomplete = true;
        waiting -= threads - static_cast<unsigned>(team.size());  // those that started wait for all
        throw;
      }
    }
    seconds.push_back(*std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end()));
  }
  return seconds;
}

inline void require(const Target& target, const PeakOptions& options) {
  if (target.kind != DeviceKind::Cpu)
    throw std::invalid_argument("target '" + target.name + "' is no CPU; its peak is not measured here");
  constexpr const char* who = "PeakOptions";
  tunewright::require(target.threads > 0, who, "the number of the target's threads", target.threads, "at least 1");
  tunewright::require(options.repeats > 0, who, "repeats", options.repeats, "at least 1");
  tunewright::require(options.seconds_per_repeat > 0 && options.seconds_per_repeat <= 1e4, who, "seconds_per_repeat",
                      options.seconds_per_repeat, "a time above 0, up to 10,000 s");
}

}  // namespace peak

/// The highest rate of float32 operations with the target's instruction set and threads: fused multiply-adds on
/// registers.
///
/// Units:  operations per second; one multiply-add is two. Divide by 1e9 for GFLOP/s.
/// Cost:   about `repeats` * `seconds_per_repeat`.
/// Throws `std::invalid_argument` for a GPU, and if this machine's processor lacks the target's instructions;
/// `std::system_error` if the system has no thread for each of the target's.
[[nodiscard]] inline double peak_flops_per_second(const Target& target, const PeakOptions& options = {}) {
  peak::require(target, options);
  static_cast<void>(host_target().with_isa(target.isa));
  // The first round powers up the wide vector units; the second tells how many rounds last long enough.
  std::uint64_t rounds = 100'000;
  static_cast<void>(peak::run(target.isa, rounds));
  const auto start = std::chrono::steady_clock::now();
  static_cast<void>(peak::run(target.isa, rounds));
  const double each = seconds_since(start) / static_cast<double>(rounds);
  rounds = static_cast<std::uint64_t>(std::max(1.0, options.seconds_per_repeat / std::max(each, 1e-12)));

  const std::vector<double> seconds =
      peak::together(target.threads, options.repeats, options.processors,
                     [&](unsigned) { static_cast<void>(peak::run(target.isa, rounds)); });
  const double operations_per_thread = peak::run(target.isa, 1) * static_cast<double>(rounds);
  return target.threads * operations_per_thread / stats::median(seconds);
}

/// Bytes per second that the target's threads together read from memory, each from its own 128 MiB. Throws as above,
/// but needs no particular instructions.
[[nodiscard]] inline double memory_read_bytes_per_second(const Target& target, const PeakOptions& options = {}) {
  peak::require(target, options);
  constexpr std::size_t words = (std::size_t{128} << 20) / sizeof(std::uint64_t);
  std::vector<std::vector<std::uint64_t>> memory(target.threads, std::vector<std::uint64_t>(words, 1));
  std::vector<std::uint64_t> sums(target.threads);
  const std::vector<double> seconds =
      peak::together(target.threads, options.repeats, options.processors, [&](unsigned t) {
        std::uint64_t part[8] = {};
        for (std::size_t i = 0; i < words; i += 8) {
          for (std::size_t lane = 0; lane < 8; ++lane) part[lane] += memory[t][i + lane];
        }
        for (const std::uint64_t value : part) sums[t] += value;
      });
  if (sums.front() != words * options.repeats) throw std::logic_error("memory was not read");
  return static_cast<double>(target.threads) * words * sizeof(std::uint64_t) / stats::median(seconds);
}

}  // namespace tunewright::measurers
