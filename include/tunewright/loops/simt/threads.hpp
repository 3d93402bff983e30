// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/statement_program.hpp"

namespace tunewright::loops::detail {

/// The threads of one block of a kernel, of which one runs at a time.
class SimtThreads : public LoopState {
 public:
  using LoopState::LoopState;

 protected:
  /// `kernel` must outlive its blocks.
  void begin(const DeviceKernel& kernel);
  void begin_block(std::int64_t block);
  void become(std::size_t thread);

  /// Number of threads that hold fragments together, and the number of such groups; for a kernel with fragments.
  [[nodiscard]] std::size_t lanes() const noexcept { return static_cast<std::size_t>(kernel_shape_->block[0]); }
  [[nodiscard]] std::size_t warps() const noexcept { return threads_.size() / lanes(); }

  const DeviceKernel* kernel_shape_ = nullptr;
  std::vector<std::array<std::int64_t, 3>> threads_;  // indices of the threads of a block
  std::size_t thread_ = 0;                            // the current one
  std::int64_t block_ = 0;                            // the current one
};

}  // namespace tunewright::loops::detail

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void SimtThreads::begin(const DeviceKernel& kernel) {
  kernel_shape_ = &kernel;
  thread_ = 0;
  threads_.assign(static_cast<std::size_t>(kernel.threads()), {});
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    auto rest = static_cast<std::int64_t>(t);
    for (std::size_t i = 0; i < 3; ++i) {
      threads_[t][i] = rest % kernel.block[i];
      rest /= kernel.block[i];
    }
  }
}

TUNEWRIGHT_INLINE void SimtThreads::begin_block(std::int64_t block) {
  block_ = block;
  for (std::size_t i = 0; i < 3; ++i) {
    if (kernel_shape_->block_index[i]) values_[*kernel_shape_->block_index[i]] = block % kernel_shape_->grid[i];
    block /= kernel_shape_->grid[i];
  }
}

TUNEWRIGHT_INLINE void SimtThreads::become(std::size_t thread) {
  thread_ = thread;
  for (std::size_t i = 0; i < 3; ++i) {
    if (kernel_shape_->thread_index[i]) values_[*kernel_shape_->thread_index[i]] = threads_[thread][i];
  }
}

}  // namespace tunewright::loops::detail

#endif
