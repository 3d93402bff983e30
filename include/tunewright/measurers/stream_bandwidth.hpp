// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/measurers/peak.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/// Bandwidth of the target's threads for data as large as a kernel's, measured instead of looked up.
namespace tunewright::measurers {

namespace stream {

enum class Form : std::uint8_t { Copy, Triad, CopyPastCaches, TriadPastCaches };
inline constexpr std::array forms{Form::Copy, Form::Triad, Form::CopyPastCaches, Form::TriadPastCaches};

[[nodiscard]] constexpr bool has_two_inputs(Form form) noexcept {
  return form == Form::Triad || form == Form::TriadPastCaches;
}

#if defined(__x86_64__)
// One function per vector width, compiled for its instruction set independently of the program's options. Four vectors
// per iteration; `count` is a multiple of 64, pointers are aligned to 64 bytes.
#define TUNEWRIGHT_STREAM(suffix, isa, lanes, prefix)                                                                  \
  __attribute__((target(isa), noinline)) inline void run_##suffix(Form form, const float* a, const float* b, float* c, \
                                                                  std::size_t count) {                                 \
    const auto factor = prefix##_set1_ps(3.0F);                                                                        \
    for (std::size_t i = 0; i < count; i += 4 * (lanes)) {                                                             \
      for (std::size_t j = i; j < i + 4 * (lanes); j += (lanes)) {                                                     \
        auto value = prefix##_load_ps(a + j);                                                                          \
        if (has_two_inputs(form)) value = prefix##_add_ps(value, prefix##_mul_ps(factor, prefix##_load_ps(b + j)));    \
        if (form == Form::Copy || form == Form::Triad)                                                                 \
          prefix##_store_ps(c + j, value);                                                                             \
        else                                                                                                           \
          prefix##_stream_ps(c + j, value);                                                                            \
      }                                                                                                                \
    }                                                                                                                  \
    _mm_sfence();                                                                                                      \
  }
TUNEWRIGHT_STREAM(sse, "sse4.2", 4, _mm)
TUNEWRIGHT_STREAM(avx2, "avx2", 8, _mm256)
TUNEWRIGHT_STREAM(avx512, "avx512f", 16, _mm512)
#undef TUNEWRIGHT_STREAM
#endif

inline void run(Isa isa, Form form, const float* a, const float* b, float* c, std::size_t count) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Sse42: return run_sse(form, a, b, c, count);
    case Isa::Avx2: return run_avx2(form, a, b, c, count);
    case Isa::Avx512: return run_avx512(form, a, b, c, count);
    case Isa::Neon: break;
  }
#endif
  throw std::invalid_argument("the bandwidth of instruction set " + std::string(name(isa)) +
                              " cannot be measured here");
}

/// Floats aligned to cache lines.
class Array {
 public:
  explicit Array(std::size_t count)
      : data_(static_cast<float*>(::operator new(std::max<std::size_t>(1, count) * sizeof(float), alignment))) {
    std::fill_n(data_, count, 1.0F);
  }
  ~Array() { ::operator delete(data_, alignment); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  [[nodiscard]] float* data() const noexcept { return data_; }

 private:
  static constexpr std::align_val_t alignment{64};
  float* data_;
};

}  // namespace stream

/// The highest rate, of reads and writes together, at which the target's threads process `bytes` bytes repeatedly: the
/// best of copy (c = a) and triad (c = a + 3 b), each with ordinary and non-temporal stores. If `bytes` fit into a
/// cache, it is that cache's bandwidth, so a kernel is compared at its own working set.
///
/// Paper:    McCalpin, Memory bandwidth and machine balance in current high performance computers, IEEE TCCA 1995
///           (STREAM). Counts as STREAM does: lines that a store reads before it writes do not count.
/// Deviates: arrays of the given size instead of four times the caches; non-temporal stores.
/// Units:    bytes per second. Cost: about 16 times `options.seconds_per_repeat`, including the first pass of each.
/// Throws `std::invalid_argument` for a GPU, for fewer than 4096 bytes per thread, and if this machine's processor
/// lacks the target's instructions.
[[nodiscard]] inline double stream_bytes_per_second(const Target& target, std::uint64_t bytes,
                                                    const PeakOptions& options = {}) {
  peak::require(target, options);
  static_cast<void>(host_target().with_isa(target.isa));
  constexpr std::uint64_t least_bytes = 4096;
  if (bytes / target.threads < least_bytes) {
    throw std::invalid_argument(std::to_string(bytes) + " bytes for " + std::to_string(target.threads) +
                                " threads are too few to measure a bandwidth; give at least 4096 for each");
  }
  double best = 0;
  for (const stream::Form form : stream::forms) {
    const unsigned arrays = stream::has_two_inputs(form) ? 3 : 2;
    const std::size_t count = bytes / target.threads / arrays / sizeof(float) / 64 * 64;
    const double moved = static_cast<double>(count) * arrays * sizeof(float) * target.threads;
    std::vector<std::unique_ptr<stream::Array>> memory;
    for (unsigned i = 0; i < arrays * target.threads; ++i) memory.push_back(std::make_unique<stream::Array>(count));
    std::size_t passes = 1;
    const auto seconds = [&](unsigned repeats) {
      return stats::median(peak::together(target.threads, repeats, options.processors, [&](unsigned t) {
        const auto* own = &memory[std::size_t{t} * arrays];
        for (std::size_t pass = 0; pass < passes; ++pass) {
          stream::run(target.isa, form, own[0]->data(), own[arrays - 2]->data(), own[arrays - 1]->data(), count);
        }
      }));
    };
    const double once = seconds(1);
    passes = static_cast<std::size_t>(std::clamp(options.seconds_per_repeat / std::max(once, 1e-9), 1.0, 1e6));
    best = std::max(best, moved * static_cast<double>(passes) / seconds(options.repeats));
  }
  return best;
}

}  // namespace tunewright::measurers
