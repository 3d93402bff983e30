// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
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

enum class Form : std::uint8_t { Copy, Triad, CopyPastCaches, TriadPastCaches, Sum, SumOf2, SumOf4, SumOf8 };
inline constexpr std::array writing_forms{Form::Copy, Form::Triad, Form::CopyPastCaches, Form::TriadPastCaches};
inline constexpr std::array reading_forms{Form::Sum, Form::SumOf2, Form::SumOf4, Form::SumOf8};

/// The time of a pass over fewer says nothing.
inline constexpr std::uint64_t least_bytes_per_thread = 4096;

/// Floats that a sum writes at most: a vector.
inline constexpr std::size_t most_sums = 16;

[[nodiscard]] constexpr bool has_two_inputs(Form form) noexcept {
  return form == Form::Triad || form == Form::TriadPastCaches;
}

/// Number of parts of its input that a sum reads at the same time, 0 for a form that writes.
[[nodiscard]] constexpr unsigned summed_parts(Form form) noexcept {
  switch (form) {
    case Form::Sum: return 1;
    case Form::SumOf2: return 2;
    case Form::SumOf4: return 4;
    case Form::SumOf8: return 8;
    default: return 0;
  }
}

/// Number of arrays of the given size that a form reads or writes.
[[nodiscard]] constexpr unsigned arrays_of(Form form) noexcept {
  if (summed_parts(form) != 0) return 1;
  return has_two_inputs(form) ? 3 : 2;
}

#if defined(__x86_64__)
// One function per vector width, compiled for its instruction set independently of the program's options. Four vectors
// per iteration; `count` is a multiple of 64, for sums of each part, and pointers are aligned to 64 bytes. A sum leaves
// one vector in `c`.
#define TUNEWRIGHT_STREAM(suffix, isa, lanes, prefix)                                                                  \
  __attribute__((target(isa), noinline)) inline void run_##suffix(Form form, const float* a, const float* b, float* c, \
                                                                  std::size_t count) {                                 \
    if (const std::size_t parts = summed_parts(form); parts != 0) {                                                    \
      auto s0 = prefix##_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;                                                      \
      const std::size_t part = count / parts;                                                                          \
      for (std::size_t i = 0; i < part; i += 4 * (lanes)) {                                                            \
        for (const float* from = a + i; from < a + count; from += part) {                                              \
          s0 = prefix##_add_ps(s0, prefix##_load_ps(from));                                                            \
          s1 = prefix##_add_ps(s1, prefix##_load_ps(from + (lanes)));                                                  \
          s2 = prefix##_add_ps(s2, prefix##_load_ps(from + 2 * (lanes)));                                              \
          s3 = prefix##_add_ps(s3, prefix##_load_ps(from + 3 * (lanes)));                                              \
        }                                                                                                              \
      }                                                                                                                \
      prefix##_store_ps(c, prefix##_add_ps(prefix##_add_ps(s0, s1), prefix##_add_ps(s2, s3)));                         \
      return;                                                                                                          \
    }                                                                                                                  \
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

/// What a program does with memory besides computing.
enum class Traffic : std::uint8_t { ReadsAndWrites, Reads };

/// The highest rate at which the target's threads process `bytes` bytes repeatedly: of reads and writes together, the
/// best of copy (c = a) and triad (c = a + 3 b), each with ordinary and non-temporal stores; of reads alone, the best
/// of sums that read one, two, four and eight parts of the data at the same time. Processors have separate paths for
/// reads and writes, so that programs which only read may not reach the rate of those which do both. If `bytes` fit in
/// a cache, it is that cache's bandwidth, so a kernel is compared at its own working set.
///
/// Paper:    McCalpin, Memory bandwidth and machine balance in current high performance computers, IEEE TCCA 1995
///           (STREAM). Counts as STREAM does: lines that a store reads before it writes do not count.
/// Deviates: arrays of the given size instead of four times the caches; non-temporal stores; sums are not in STREAM.
/// Units:    bytes per second. Cost: about 16 times `options.seconds_per_repeat`, including the first pass of each.
/// Throws `std::invalid_argument` for a GPU, for fewer than `stream::least_bytes_per_thread`, and if this machine's
/// processor lacks the target's instructions.
[[nodiscard]] inline double stream_bytes_per_second(const Target& target, std::uint64_t bytes,
                                                    const PeakOptions& options = {},
                                                    Traffic traffic = Traffic::ReadsAndWrites) {
  peak::require(target, options);
  static_cast<void>(host_target().with_isa(target.isa));
  if (bytes / target.threads < stream::least_bytes_per_thread) {
    throw std::invalid_argument(std::to_string(bytes) + " bytes for " + std::to_string(target.threads) +
                                " threads are too few to measure a bandwidth; give at least " +
                                std::to_string(stream::least_bytes_per_thread) + " for each");
  }
  const std::span<const stream::Form> forms =
      traffic == Traffic::Reads ? std::span<const stream::Form>(stream::reading_forms) : stream::writing_forms;
  double best = 0;
  for (const stream::Form form : forms) {
    const unsigned arrays = stream::arrays_of(form);
    const std::size_t unit = std::size_t{64} * std::max(1U, stream::summed_parts(form));
    const std::size_t count = bytes / target.threads / arrays / sizeof(float) / unit * unit;
    const double moved = static_cast<double>(count) * arrays * sizeof(float) * target.threads;
    std::vector<std::unique_ptr<stream::Array>> memory, sums;
    for (unsigned i = 0; i < arrays * target.threads; ++i) memory.push_back(std::make_unique<stream::Array>(count));
    for (unsigned t = 0; t < target.threads; ++t) sums.push_back(std::make_unique<stream::Array>(stream::most_sums));
    std::size_t passes = 1;
    const auto seconds = [&](unsigned repeats) {
      return stats::median(peak::together(target.threads, repeats, options.processors, [&](unsigned t) {
        const auto* own = &memory[std::size_t{t} * arrays];
        float* const output = arrays == 1 ? sums[t]->data() : own[arrays - 1]->data();
        for (std::size_t pass = 0; pass < passes; ++pass) {
          stream::run(target.isa, form, own[0]->data(), own[arrays == 3 ? 1 : 0]->data(), output, count);
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
