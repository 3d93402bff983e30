// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "peers.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/measurers/peak.hpp"
#include "vector_state.hpp"

/// Whether libraries keep to the instruction set that they were told.
namespace tunewright::bench {

struct RestrictionReport {
  std::string library, version;
  std::string kernels;       ///< what it says its kernels are made for; empty where it does not say
  double share_of_peak = 0;  ///< of a product of 768 x 768 matrices; the peak is that of the instruction set
  std::string fault;         ///< why it is not compared with; empty when nothing speaks against it
};

/// A speed above the peak by more than what two measurements of one thing differ by on a busy machine.
inline constexpr double impossible_share_of_peak = 1.15;

/// The highest of some short measurements of the target's peak, since other programs can only lower it.
[[nodiscard]] inline double highest_peak(const Target& target) {
  double highest = 0;
  for (unsigned repeat = 0; repeat < 20; ++repeat) {
    highest = std::max(highest, measurers::peak_flops_per_second(target, {.seconds_per_repeat = 0.001, .repeats = 1}));
  }
  return highest;
}

/// What a speed of `share` of the peak proves; empty when it is possible.
[[nodiscard]] inline std::string objection_to_speed(double share, const Target& target) {
  if (share <= impossible_share_of_peak) return "";
  char text[160];
  std::snprintf(text, sizeof text, "runs at %.2f of the peak of %s and so does not keep to it", share,
                std::string(name(target.isa)).c_str());
  return text;
}

namespace detail {

/// What a process that tried the library says in a pipe.
struct Findings {
  bool avx512_used = false;
  double share_of_peak = 0;
  std::array<char, 256> version{}, kernels{}, fault{};
};
static_assert(std::is_trivially_copyable_v<Findings>);

inline void put(std::array<char, 256>& to, const std::string& text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), to.size() - 1));
}

/// Matrices of ones, so that the product is known.
inline Findings try_library(const Peer& peer, const Target& target) {
  constexpr std::int64_t size = 768;
  constexpr Product product{1, size, size, size};
  Findings findings;
  put(findings.version, peer.version());
  put(findings.kernels, peer.kernels());
  std::vector<float> a(size * size, 1.0F), b = a, c(size * size, 0.0F);
  void* const buffers[] = {a.data(), b.data(), c.data()};
  peer.product(product, buffers);
  if (std::any_of(c.begin(), c.end(), [](float value) { return value != static_cast<float>(size); }))
    throw std::runtime_error("its product is wrong");
  if (VectorState::tells()) {
    VectorState::clear();
    peer.product(product, buffers);
    findings.avx512_used = VectorState::avx512_used();
  }
  double peak = 0, fastest = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 10; ++repeat) {
    peak = std::max(peak, highest_peak(target));
    const auto start = std::chrono::steady_clock::now();
    peer.product(product, buffers);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  findings.share_of_peak = 2.0 * size * size * size / fastest / peak;
  return findings;
}

}  // namespace detail

/// Tries the library in a process of its own, by three checks: what it says its kernels are; whether registers that
/// only AVX-512 has are used, where the processor tells (the calling thread's; threads of a library run the same code);
/// and whether it is faster than the instruction set allows.
/// Call it before the process has threads. Cost: about a second.
[[nodiscard]] inline RestrictionReport check_restriction(const Peer& peer, const Target& target) {
  RestrictionReport report;
  report.library = peer.name;
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe to a process that tries " + peer.name);
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("no process to try " + peer.name);
  if (process == 0) {
    detail::Findings findings;
    try {
      findings = detail::try_library(peer, target);
    } catch (const std::exception& error) {
      detail::put(findings.fault, error.what());
    }
    ::_exit(::write(ends[1], &findings, sizeof findings) == sizeof findings ? 0 : 1);
  }
  ::close(ends[1]);
  detail::Findings findings;
  const bool told = ::read(ends[0], &findings, sizeof findings) == sizeof findings;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  if (!told) {
    report.fault = WIFSIGNALED(status)
                       ? "was ended by signal " + std::to_string(WTERMSIG(status)) + " when it was tried"
                       : "ended the process that tried it";
    return report;
  }
  report.version = findings.version.data();
  report.kernels = findings.kernels.data();
  report.share_of_peak = findings.share_of_peak;
  if (findings.fault[0] != '\0')
    report.fault = findings.fault.data();
  else if (!peer.allows(report.kernels))
    report.fault = "says that it runs kernels for '" + report.kernels + "'";
  else if (findings.avx512_used && target.isa < Isa::Avx512)
    report.fault = "uses registers of AVX-512";
  else
    report.fault = objection_to_speed(report.share_of_peak, target);
  return report;
}

}  // namespace tunewright::bench
