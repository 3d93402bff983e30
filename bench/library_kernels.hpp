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
#include <unordered_map>
#include <utility>
#include <vector>

#include "shapes.hpp"
#include "tile_palette.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/graph.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
#include <dnnl.hpp>
#endif

/// Libraries as kernels: the same buffers, the same protocol, the same process as what we generate.
///
/// A native kernel is a plain function, so the functions of libraries with their shapes sit in a table of the program. Fill it
/// before the measurer is made: the measuring process is forked from this one and sees the table as it was then.
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
constexpr std::array<codegen::tunewright_kernel, sizeof...(Slots)> slot_functions(
    std::index_sequence<Slots...>) {
  return {&run_slot<Slots>...};
}

}  // namespace detail

/// Enters a library's function for the outputs of `graph` into the table.
inline LibraryKernel library_kernel(std::string library,
                                    const std::shared_ptr<const program::ComputeGraph>& graph,
                                    LibraryCall call) {
  static constexpr auto functions =
      detail::slot_functions(std::make_index_sequence<detail::max_library_kernels>{});
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

// ---- matrix products: C[b, m, n] = A[b, m, k] * B[b, k, n], all row-major ---------------------------------------------

inline LibraryCall eigen_product(Product p) {
  return [p](void* const* buffers) {
    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto* a = static_cast<const float*>(buffers[0]);
    const auto* b = static_cast<const float*>(buffers[1]);
    auto* c = static_cast<float*>(buffers[2]);
    for (std::int64_t i = 0; i < p.batch; ++i) {
      Eigen::Map<Matrix> result(c + i * p.m * p.n, p.m, p.n);
      result.noalias() = Eigen::Map<const Matrix>(a + i * p.m * p.k, p.m, p.k) *
                         Eigen::Map<const Matrix>(b + i * p.k * p.n, p.k, p.n);
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

#ifdef TUNEWRIGHT_BENCH_HAS_DNNL

/// A primitive made at its first call, in the measuring process; constants are reordered then, once.
class DnnlKernel {
 public:
  struct Built {
    dnnl::primitive primitive;
    dnnl::memory::desc source, weights, destination;  ///< as the primitive wants them
    dnnl::memory::desc plain_weights;  ///< as the graph has them; empty when they are no constant
  };
  explicit DnnlKernel(std::function<Built(const dnnl::engine&)> build) : build_(std::move(build)) {}

  void operator()(void* const* buffers) {
    if (!state_) {
      const TilePalette told;
      state_ = std::make_shared<State>();
      state_->built = build_(state_->engine);
      const Built& b = state_->built;
      const bool has_weights = b.weights.dims().size() > 0;
      if (has_weights && b.plain_weights.dims().size() > 0 && b.plain_weights != b.weights) {
        state_->reordered = dnnl::memory(b.weights, state_->engine);
        dnnl::memory plain(b.plain_weights, state_->engine, buffers[1]);
        dnnl::reorder(plain, state_->reordered).execute(state_->stream, plain, state_->reordered);
        state_->stream.wait();
      }
      state_->has_weights = has_weights;
    }
    State& s = *state_;
    std::unordered_map<int, dnnl::memory> arguments;
    arguments.emplace(DNNL_ARG_SRC, dnnl::memory(s.built.source, s.engine, buffers[0]));
    if (s.has_weights) {
      arguments.emplace(DNNL_ARG_WEIGHTS,
                        s.reordered ? s.reordered : dnnl::memory(s.built.weights, s.engine, buffers[1]));
    }
    arguments.emplace(DNNL_ARG_DST,
                      dnnl::memory(s.built.destination, s.engine, buffers[s.has_weights ? 2 : 1]));
    s.built.primitive.execute(s.stream, arguments);
    s.stream.wait();
  }

 private:
  struct State {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    Built built;
    dnnl::memory reordered;
    bool has_weights = false;
  };
  std::function<Built(const dnnl::engine&)> build_;
  std::shared_ptr<State> state_;
};

inline LibraryCall dnnl_product(Product p) {
  return DnnlKernel([p](const dnnl::engine& engine) {
    using md = dnnl::memory::desc;
    const auto type = dnnl::memory::data_type::f32;
    const bool batched = p.batch > 1;
    const auto tag = batched ? dnnl::memory::format_tag::abc : dnnl::memory::format_tag::ab;
    const auto shape = [&](std::int64_t r, std::int64_t c) {
      return batched ? dnnl::memory::dims{p.batch, r, c} : dnnl::memory::dims{r, c};
    };
    const md a(shape(p.m, p.k), type, tag), b(shape(p.k, p.n), type, tag), c(shape(p.m, p.n), type, tag);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
    return DnnlKernel::Built{dnnl::matmul(description), a, b, c, {}};
  });
}

/// Types of the factors and of their sum.
struct DnnlTypes {
  using type = dnnl::memory::data_type;
  type source = type::f32, weights = type::f32, destination = type::f32;
};
inline DnnlTypes dnnl_types(NarrowType narrow) {
  using type = dnnl::memory::data_type;
  return narrow == NarrowType::Bytes ? DnnlTypes{type::u8, type::s8, type::s32}
                                     : DnnlTypes{type::bf16, type::bf16, type::f32};
}

inline LibraryCall dnnl_narrow_product(Product p, NarrowType narrow) {
  return DnnlKernel([p, types = dnnl_types(narrow)](const dnnl::engine& engine) {
    using md = dnnl::memory::desc;
    const auto rows = dnnl::memory::format_tag::ab;
    const md a({p.m, p.k}, types.source, rows), b({p.k, p.n}, types.weights, rows),
        c({p.m, p.n}, types.destination, rows);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
    return DnnlKernel::Built{dnnl::matmul(description), a, b, c, {}};
  });
}

struct Convolution {
  std::int64_t batch = 1, height = 1, width = 1, in_channels = 1, out_channels = 1, kernel = 1, stride = 1,
               padding = 0;
  bool depthwise = false;
  DnnlTypes types = {};
};

inline LibraryCall dnnl_convolution(Convolution s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    using md = dnnl::memory::desc;
    using tag = dnnl::memory::format_tag;
    const std::int64_t oh = (s.height + 2 * s.padding - s.kernel) / s.stride + 1;
    const std::int64_t ow = (s.width + 2 * s.padding - s.kernel) / s.stride + 1;
    const md source({s.batch, s.in_channels, s.height, s.width}, s.types.source, tag::nhwc);
    const md destination({s.batch, s.out_channels, oh, ow}, s.types.destination, tag::nhwc);
    const dnnl::memory::dims kernel =
        s.depthwise ? dnnl::memory::dims{s.in_channels, 1, 1, s.kernel, s.kernel}
                    : dnnl::memory::dims{s.out_channels, s.in_channels, s.kernel, s.kernel};
    // [kh, kw, ci, co], and [kh, kw, c] for depthwise, in oneDNN's order of dimensions.
    const md plain = s.depthwise ? md(kernel, s.types.weights,
                                      dnnl::memory::dims{1, 1, 1, s.kernel * s.in_channels, s.in_channels})
                                 : md(kernel, s.types.weights, tag::hwio);
    const dnnl::convolution_forward::desc description(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, source,
        md(kernel, s.types.weights, tag::any), destination, {s.stride, s.stride}, {0, 0},
        {s.padding, s.padding}, {s.padding, s.padding});
    const dnnl::convolution_forward::primitive_desc primitive(description, engine);
    return DnnlKernel::Built{dnnl::convolution_forward(primitive), source, primitive.weights_desc(),
                             destination, plain};
  });
}

inline LibraryCall dnnl_softmax(std::int64_t rows, std::int64_t columns) {
  return DnnlKernel([rows, columns](const dnnl::engine& engine) {
    const dnnl::memory::desc data({rows, columns}, dnnl::memory::data_type::f32,
                                  dnnl::memory::format_tag::ab);
    const dnnl::softmax_forward::primitive_desc primitive(
        dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, data, 1), engine);
    return DnnlKernel::Built{dnnl::softmax_forward(primitive), data, {}, data, {}};
  });
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
