// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shapes.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/graph.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_OPENBLAS
#include <cblas.h>
#endif

/// Libraries as kernels: the same buffers, the same protocol, the same process as what we generate.
///
/// A native kernel is a plain function, so the functions of libraries with their shapes sit in a table of the program.
/// Fill it before the measurer is made: the measuring process is forked from this one and sees the table as it was
/// then.
namespace tunewright::bench {

/// Buffers in the order of `codegen::Kernel`: inputs and constants in tensor order, then outputs.
using LibraryCall = std::function<void(void* const* buffers)>;

struct LibraryKernel {
  std::string library;
  codegen::Kernel kernel;
};

namespace detail {

inline constexpr std::size_t max_library_kernels = 160;

inline std::vector<LibraryCall>& library_runs() {
  static std::vector<LibraryCall> runs;
  return runs;
}

template <std::size_t Slot>
void run_slot(void* const* buffers, const codegen::tunewright_runtime*) {
  library_runs()[Slot](buffers);
}

template <std::size_t... Slots>
constexpr std::array<codegen::tunewright_kernel, sizeof...(Slots)> slot_functions(std::index_sequence<Slots...>) {
  return {&run_slot<Slots>...};
}

}  // namespace detail

/// Enters a library's function for the outputs of `graph` into the table.
inline LibraryKernel library_kernel(std::string library, const std::shared_ptr<const program::ComputeGraph>& graph,
                                    LibraryCall call) {
  static constexpr auto functions = detail::slot_functions(std::make_index_sequence<detail::max_library_kernels>{});
  std::vector<LibraryCall>& runs = detail::library_runs();
  if (runs.size() == functions.size()) throw std::length_error("the table of library kernels is full");
  const loops::LoopNest plain = loops::lower(schedule::Schedule{graph, {}});
  LibraryKernel entry{std::move(library), {}};
  entry.kernel.symbol = entry.library;
  for (const loops::BufferId id : plain.arguments) entry.kernel.buffers.push_back({plain.buffers[id]});
  entry.kernel.native = functions[runs.size()];
  runs.push_back(std::move(call));
  return entry;
}

// ---- matrix products: C[b, m, n] = A[b, m, k] * B[b, k, n], all row-major ------------------------------------

inline LibraryCall eigen_product(Product p) {
  return [p](void* const* buffers) {
    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto* a = static_cast<const float*>(buffers[0]);
    const auto* b = static_cast<const float*>(buffers[1]);
    auto* c = static_cast<float*>(buffers[2]);
    for (std::int64_t i = 0; i < p.batch; ++i) {
      Eigen::Map<Matrix> result(c + i * p.m * p.n, p.m, p.n);
      result.noalias() =
          Eigen::Map<const Matrix>(a + i * p.m * p.k, p.m, p.k) * Eigen::Map<const Matrix>(b + i * p.k * p.n, p.k, p.n);
    }
  };
}

#ifdef TUNEWRIGHT_BENCH_HAS_OPENBLAS
inline LibraryCall openblas_product(Product p) {
  return [p](void* const* buffers) {
    const auto m = static_cast<blasint>(p.m);
    const auto n = static_cast<blasint>(p.n);
    const auto k = static_cast<blasint>(p.k);
    for (std::int64_t i = 0; i < p.batch; ++i) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0F,
                  static_cast<const float*>(buffers[0]) + i * p.m * p.k, k,
                  static_cast<const float*>(buffers[1]) + i * p.k * p.n, n, 0.0F,
                  static_cast<float*>(buffers[2]) + i * p.m * p.n, n);
    }
  };
}
#endif

inline LibraryCall eigen_softmax(std::int64_t rows, std::int64_t columns) {
  return [rows, columns](void* const* buffers) {
    const auto* x = static_cast<const float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < rows; ++i) {
      const Eigen::Map<const Eigen::ArrayXf> in(x + i * columns, columns);
      Eigen::Map<Eigen::ArrayXf> out(y + i * columns, columns);
      out = (in - in.maxCoeff()).exp();
      out *= 1.0F / out.sum();
    }
  };
}

}  // namespace tunewright::bench
