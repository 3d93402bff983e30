// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/features/hardware/device.hpp"

namespace tunewright::features {

/// Describes the device in one row of ten numbers, equal for all configurations of a task. Joined to a description of
/// the configuration, it lets one model learn from several devices.
///
///   log2(x + 1) of auto_scheduler's eight numbers, of the arithmetic peak and of the peak memory bandwidth
///
/// Paper:       Verma et al., "Transfer Learning Across Heterogeneous Features For Efficient Tensor Program
///              Generation", arXiv 2304.05430, table 2 (the first eight).
/// Models:      FeaturizerFor<S> for every SearchSpace S, OneRowFeaturizer.
/// Shapes:      one row per configuration, 10 columns. Units: see the schema.
/// Cost:        negligible.
/// Determinism: a pure function of the device.
/// Deviates:    the cores of a GPU are its multiprocessors, where auto_scheduler has -1, and the last two columns are
///              ours: by auto_scheduler's numbers, an A100 equals a T4. A GPU from a log (`hardware::from_log`) has
///              neither cores nor peaks and so differs from the same GPU by name.
struct Hardware {
  static constexpr bool one_row = true;
  static constexpr std::size_t columns = 10;

  std::optional<hardware::Device> device{};  ///< default: the known device of the target's name, else the target

  template <SearchSpace S>
  [[nodiscard]] FeatureBatch extract(const S&, const Task& task, std::span<const config_t<S>> configs) const {
    const auto row = numbers(device ? *device : of(task.target));
    FeatureBatch batch(columns);
    for (std::size_t i = 0; i < configs.size(); ++i) batch.append_program(row);
    return batch;  // (N, 10)
  }

  /// The row of a device, for records without a space. A negative or non-finite number counts as unknown.
  [[nodiscard]] static std::array<float, columns> numbers(const hardware::Device& device);

  [[nodiscard]] FeatureSchema schema() const;

 private:
  static hardware::Device of(const Target& target);
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features {

TUNEWRIGHT_INLINE std::array<float, Hardware::columns> Hardware::numbers(const hardware::Device& device) {
  const std::array raw{device.cores,
                       device.vector_unit_bytes,
                       device.cache_line_bytes,
                       device.max_shared_memory_per_block_bytes,
                       device.max_local_memory_per_block_bytes,
                       device.max_threads_per_block,
                       device.max_vthread_extent,
                       device.warp_size,
                       device.peak_gflops,
                       device.peak_gb_per_s};
  std::array<float, columns> row{};
  for (std::size_t i = 0; i < columns; ++i)
    row[i] = std::isfinite(raw[i]) && raw[i] > 0 ? static_cast<float>(std::log2(raw[i] + 1)) : 0.0F;
  return row;
}

TUNEWRIGHT_INLINE FeatureSchema Hardware::schema() const {
  const std::string bytes = "log2(bytes + 1)", count = "log2(count + 1)";
  return {"hardware",
          1,
          {{"num_cores", count, "Cores of a CPU, multiprocessors of a GPU."},
           {"vector_unit_bytes", bytes, "One vector register; on GPUs the widest access of a thread."},
           {"cache_line_bytes", bytes, "One cache line."},
           {"max_shared_memory_per_block", bytes, "Shared memory a block may have; 0 on CPUs."},
           {"max_local_memory_per_block", bytes, "Local memory a block may have; 0 on CPUs."},
           {"max_threads_per_block", count, "Threads a block may have; 0 on CPUs."},
           {"max_vthread_extent", count, "Virtual threads that are considered; 0 on CPUs."},
           {"warp_size", count, "Threads that run in step; 0 on CPUs."},
           {"peak_gflops", "log2(Gflop/s + 1)", "Peak of single precision; 0 if not known."},
           {"peak_gb_per_s", "log2(GB/s + 1)", "Peak of device memory; 0 if not known."}}};
}

TUNEWRIGHT_INLINE hardware::Device Hardware::of(const Target& target) {
  const hardware::Device* known = hardware::find(target.name);
  return known != nullptr ? *known : hardware::from_target(target);
}

}  // namespace tunewright::features

#endif
