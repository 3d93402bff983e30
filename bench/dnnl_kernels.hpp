// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "library_kernels.hpp"
#include "peers.hpp"
#include "suite.hpp"
#include "tile_palette.hpp"

/// Kernels of oneDNN, of its second and its third interface.
namespace tunewright::bench {

namespace dnnl_interface {

using Description = dnnl::memory::desc;

#if DNNL_VERSION_MAJOR >= 3
inline dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Description& a, const Description& b,
                                            const Description& c) {
  return {engine, a, b, c};
}
inline dnnl::layer_normalization_forward::primitive_desc layer_norm(const dnnl::engine& engine, const Description& data,
                                                                    float epsilon, dnnl::normalization_flags flags) {
  return {engine, dnnl::prop_kind::forward_inference, data, data, epsilon, flags};
}
inline dnnl::batch_normalization_forward::primitive_desc batch_norm(const dnnl::engine& engine, const Description& data,
                                                                    float epsilon, dnnl::normalization_flags flags) {
  return {engine, dnnl::prop_kind::forward_inference, data, data, epsilon, flags};
}
inline dnnl::reduction::primitive_desc sum(const dnnl::engine& engine, const Description& from, const Description& to) {
  return {engine, dnnl::algorithm::reduction_sum, from, to, 0, 0};
}
inline dnnl::binary::primitive_desc add(const dnnl::engine& engine, const Description& a, const Description& b,
                                        const Description& c, const dnnl::primitive_attr& attributes) {
  return {engine, dnnl::algorithm::binary_add, a, b, c, attributes};
}
inline void append_relu(dnnl::post_ops& operations) { operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0); }
inline dnnl::pooling_forward::primitive_desc pool(const dnnl::engine& engine, dnnl::algorithm algorithm,
                                                  const Description& from, const Description& to,
                                                  const dnnl::memory::dims& strides, const dnnl::memory::dims& kernel,
                                                  const dnnl::memory::dims& padding) {
  return {engine, dnnl::prop_kind::forward_inference, algorithm, from, to, strides, kernel, {0, 0}, padding, padding};
}
inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine, const Description& data, int axis) {
  return {engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, data, data, axis};
}
/// `geometry` is source, weights, destination, strides, dilation and padding before and behind.
template <class... Geometry>
dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& engine, const Geometry&... geometry) {
  return {engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, geometry...};
}
#else
inline dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Description& a, const Description& b,
                                            const Description& c) {
  return {dnnl::matmul::desc(a, b, c), engine};
}
inline dnnl::layer_normalization_forward::primitive_desc layer_norm(const dnnl::engine& engine, const Description& data,
                                                                    float epsilon, dnnl::normalization_flags flags) {
  return {dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_inference, data, epsilon, flags), engine};
}
inline dnnl::batch_normalization_forward::primitive_desc batch_norm(const dnnl::engine& engine, const Description& data,
                                                                    float epsilon, dnnl::normalization_flags flags) {
  return {dnnl::batch_normalization_forward::desc(dnnl::prop_kind::forward_inference, data, epsilon, flags), engine};
}
inline dnnl::reduction::primitive_desc sum(const dnnl::engine& engine, const Description& from, const Description& to) {
  return {dnnl::reduction::desc(dnnl::algorithm::reduction_sum, from, to, 0, 0), engine};
}
inline dnnl::binary::primitive_desc add(const dnnl::engine& engine, const Description& a, const Description& b,
                                        const Description& c, const dnnl::primitive_attr& attributes) {
  return {dnnl::binary::desc(dnnl::algorithm::binary_add, a, b, c), attributes, engine};
}
inline void append_relu(dnnl::post_ops& operations) {
  operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
}
inline dnnl::pooling_forward::primitive_desc pool(const dnnl::engine& engine, dnnl::algorithm algorithm,
                                                  const Description& from, const Description& to,
                                                  const dnnl::memory::dims& strides, const dnnl::memory::dims& kernel,
                                                  const dnnl::memory::dims& padding) {
  return {dnnl::pooling_forward::desc(dnnl::prop_kind::forward_inference, algorithm, from, to, strides, kernel, padding,
                                      padding),
          engine};
}
inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine, const Description& data, int axis) {
  return {dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, data, axis), engine};
}
template <class... Geometry>
dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& engine, const Geometry&... geometry) {
  return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
                                          geometry...),
          engine};
}
#endif

}  // namespace dnnl_interface

/// A primitive made at its first call, in the measuring process, with its memory objects; constants are reordered then,
/// once.
class DnnlKernel {
 public:
  using Description = dnnl::memory::desc;
  /// One operand: what the primitive calls it, its layout, and its buffer.
  struct Operand {
    int argument;
    Description layout;
    std::size_t buffer;
    std::optional<Description> plain{};  ///< a constant, as the graph has it
  };
  /// An operand of one value that the graph does not have.
  struct Filled {
    int argument;
    Description layout;
    float value;
  };
  struct Built {
    dnnl::primitive primitive;
    std::vector<Operand> operands;
    std::vector<Filled> filled{};
  };
  explicit DnnlKernel(std::function<Built(const dnnl::engine&)> build) : build_(std::move(build)) {}

  void operator()(void* const* buffers) {
    if (!state_) prepare(buffers);
    State& s = *state_;
    for (auto& [buffer, memory] : s.given) {
      if (memory.get_data_handle() != buffers[buffer]) memory.set_data_handle(buffers[buffer]);
    }
    s.built.primitive.execute(s.stream, s.arguments);
    s.stream.wait();
  }

 private:
  struct State {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    Built built;
    std::unordered_map<int, dnnl::memory> arguments;
    std::vector<std::pair<std::size_t, dnnl::memory>> given;  ///< of the arguments those in buffers, with their number
  };

  void prepare(void* const* buffers) {
    {
      [[maybe_unused]] const TilePalette told;  // no longer than needed: threads that start meanwhile inherit it
      state_ = std::make_shared<State>();
      state_->built = build_(state_->engine);
    }
    for (const Operand& operand : state_->built.operands) {
      if (!operand.plain || *operand.plain == operand.layout) {
        const dnnl::memory there(operand.layout, state_->engine, buffers[operand.buffer]);
        state_->given.emplace_back(operand.buffer, there);
        state_->arguments.emplace(operand.argument, there);
        continue;
      }
      dnnl::memory plain(*operand.plain, state_->engine, buffers[operand.buffer]);
      dnnl::memory reordered(operand.layout, state_->engine);
      dnnl::reorder(plain, reordered).execute(state_->stream, plain, reordered);
      state_->stream.wait();
      state_->arguments.emplace(operand.argument, reordered);
    }
    for (const Filled& operand : state_->built.filled) {
      const dnnl::memory values(operand.layout, state_->engine);
      std::fill_n(static_cast<float*>(values.get_data_handle()), operand.layout.get_size() / sizeof(float),
                  operand.value);
      state_->arguments.emplace(operand.argument, values);
    }
  }

  std::function<Built(const dnnl::engine&)> build_;
  std::shared_ptr<State> state_;
};

/// Layout of a row-major tensor of float32.
inline dnnl::memory::desc dnnl_rows(dnnl::memory::dims extents) {
  dnnl::memory::dims strides(extents.size(), 1);
  for (std::size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return {std::move(extents), dnnl::memory::data_type::f32, std::move(strides)};
}

/// The second operand is reordered once where it is a constant.
inline LibraryCall dnnl_kernel(Product p, bool constant_operand = false) {
  return DnnlKernel([p, constant_operand](const dnnl::engine& engine) {
    const auto operand = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      dnnl::memory::dims extents{rows, columns};
      dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
      if (p.batch > 1) {
        extents.insert(extents.begin(), p.batch);
        strides.insert(strides.begin(), rows * columns);
      }
      return dnnl::memory::desc(extents, dnnl::memory::data_type::f32, strides);
    };
    using md = dnnl::memory::desc;
    const md a = operand(p.m, p.k, p.transpose_a), b = operand(p.k, p.n, p.transpose_b);
    const md c = operand(p.m, p.n, false);
    const md any({p.k, p.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    const auto primitive = dnnl_interface::product(engine, a, constant_operand ? any : b, c);
    return DnnlKernel::Built{
        dnnl::matmul(primitive),
        {{DNNL_ARG_SRC, a, 0}, {DNNL_ARG_WEIGHTS, primitive.weights_desc(), 1, b}, {DNNL_ARG_DST, c, 2}}};
  });
}

/// The product by oneDNN's function of the BLAS, which packs nothing ahead of time: faster than its primitive for few
/// rows. Not for batches.
inline LibraryCall dnnl_blas_product(const Product& p) {
  return [p](void* const* buffers) {
    const auto* a = static_cast<const float*>(buffers[0]);
    const auto* b = static_cast<const float*>(buffers[1]);
    const dnnl_status_t status =
        dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, 1.0F, a,
                   p.transpose_a ? p.m : p.k, b, p.transpose_b ? p.k : p.n, 0.0F, static_cast<float*>(buffers[2]), p.n);
    if (status != dnnl_success) throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
  };
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
    return DnnlKernel::Built{dnnl::matmul(dnnl_interface::product(engine, a, b, c)),
                             {{DNNL_ARG_SRC, a, 0}, {DNNL_ARG_WEIGHTS, b, 1}, {DNNL_ARG_DST, c, 2}}};
  });
}

struct Convolution {
  std::int64_t batch = 1, height = 1, width = 1, in_channels = 1, out_channels = 1, kernel = 1, stride = 1, padding = 0;
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
    const dnnl::memory::dims kernel = s.depthwise
                                          ? dnnl::memory::dims{s.in_channels, 1, 1, s.kernel, s.kernel}
                                          : dnnl::memory::dims{s.out_channels, s.in_channels, s.kernel, s.kernel};
    // [kh, kw, ci, co], and [kh, kw, c] for depthwise, in oneDNN's order of dimensions.
    const md plain =
        s.depthwise ? md(kernel, s.types.weights, dnnl::memory::dims{1, 1, 1, s.kernel * s.in_channels, s.in_channels})
                    : md(kernel, s.types.weights, tag::hwio);
    const auto primitive = dnnl_interface::convolution(
        engine, source, md(kernel, s.types.weights, tag::any), destination, dnnl::memory::dims{s.stride, s.stride},
        dnnl::memory::dims{0, 0}, dnnl::memory::dims{s.padding, s.padding}, dnnl::memory::dims{s.padding, s.padding});
    return DnnlKernel::Built{dnnl::convolution_forward(primitive),
                             {{DNNL_ARG_SRC, source, 0},
                              {DNNL_ARG_WEIGHTS, primitive.weights_desc(), 1, plain},
                              {DNNL_ARG_DST, destination, 2}}};
  });
}
inline LibraryCall dnnl_kernel(const ConvolutionShape& s) {
  return dnnl_convolution(
      {1, s.height, s.width, s.in_channels, s.out_channels, s.kernel, s.stride, s.padding, false, {}});
}
inline LibraryCall dnnl_kernel(const DepthwiseShape& s) {
  return dnnl_convolution({1, s.size, s.size, s.channels, s.channels, 3, s.stride, 1, true, {}});
}

inline LibraryCall dnnl_kernel(SoftmaxRows s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    const auto data = dnnl_rows({s.rows, s.columns});
    return DnnlKernel::Built{dnnl::softmax_forward(dnnl_interface::softmax(engine, data, 1)),
                             {{DNNL_ARG_SRC, data, 0}, {DNNL_ARG_DST, data, 1}}};
  });
}

inline LibraryCall dnnl_kernel(LayerNormRows s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    using flag = dnnl::normalization_flags;
    const auto data = dnnl_rows({s.rows, s.columns}), channels = dnnl_rows({s.columns});
    return DnnlKernel::Built{dnnl::layer_normalization_forward(
                                 dnnl_interface::layer_norm(engine, data, 1e-5F, flag::use_scale | flag::use_shift)),
                             {{DNNL_ARG_SRC, data, 0},
                              {DNNL_ARG_SCALE, channels, 1},
                              {DNNL_ARG_SHIFT, channels, 2},
                              {DNNL_ARG_DST, data, 3}}};
  });
}

/// The mean is 0 and the variance 1, since the network's are folded into scale and shift.
inline LibraryCall dnnl_kernel(BatchNormRows s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    using flag = dnnl::normalization_flags;
    const dnnl::memory::desc data({1, s.channels, s.rows, 1}, dnnl::memory::data_type::f32,
                                  dnnl::memory::format_tag::nhwc);
    const auto channels = dnnl_rows({s.channels});
    return DnnlKernel::Built{dnnl::batch_normalization_forward(dnnl_interface::batch_norm(
                                 engine, data, 0, flag::use_global_stats | flag::use_scale | flag::use_shift)),
                             {{DNNL_ARG_SRC, data, 0},
                              {DNNL_ARG_SCALE, channels, 1},
                              {DNNL_ARG_SHIFT, channels, 2},
                              {DNNL_ARG_DST, data, 3}},
                             {{DNNL_ARG_MEAN, channels, 0}, {DNNL_ARG_VARIANCE, channels, 1}}};
  });
}

inline LibraryCall dnnl_kernel(AxisSum s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    const dnnl::memory::dims extents{s.extents[0], s.extents[1], s.extents[2]};
    dnnl::memory::dims kept = extents;
    kept[static_cast<std::size_t>(s.axis)] = 1;
    const auto from = dnnl_rows(extents), to = dnnl_rows(kept);
    return DnnlKernel::Built{dnnl::reduction(dnnl_interface::sum(engine, from, to)),
                             {{DNNL_ARG_SRC, from, 0}, {DNNL_ARG_DST, to, 1}}};
  });
}

inline LibraryCall dnnl_kernel(AddRelu s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    const auto a = dnnl_rows({s.rows, s.columns}), b = dnnl_rows({s.bias ? 1 : s.rows, s.columns});
    dnnl::post_ops then;
    dnnl_interface::append_relu(then);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(then);
    return DnnlKernel::Built{dnnl::binary(dnnl_interface::add(engine, a, b, a, attributes)),
                             {{DNNL_ARG_SRC_0, a, 0}, {DNNL_ARG_SRC_1, b, 1}, {DNNL_ARG_DST, a, 2}}};
  });
}

inline LibraryCall dnnl_kernel(PoolShape s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    const std::int64_t out = (s.size + 2 * s.padding - s.kernel) / s.stride + 1;
    const auto image = [&](std::int64_t size) {
      return dnnl::memory::desc({1, s.channels, size, size}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::nhwc);
    };
    const auto algorithm = s.average ? dnnl::algorithm::pooling_avg_exclude_padding : dnnl::algorithm::pooling_max;
    const auto from = image(s.size), to = image(out);
    return DnnlKernel::Built{
        dnnl::pooling_forward(dnnl_interface::pool(engine, algorithm, from, to, {s.stride, s.stride},
                                                   {s.kernel, s.kernel}, {s.padding, s.padding})),
        {{DNNL_ARG_SRC, from, 0}, {DNNL_ARG_DST, to, 1}}};
  });
}

inline LibraryCall dnnl_kernel(TransposeShape s) {
  return DnnlKernel([s](const dnnl::engine& engine) {
    const auto type = dnnl::memory::data_type::f32;
    const dnnl::memory::desc from({s.rows, s.columns}, type, dnnl::memory::dims{s.columns, 1});
    const dnnl::memory::desc to({s.rows, s.columns}, type, dnnl::memory::dims{1, s.rows});
    return DnnlKernel::Built{dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to)),
                             {{DNNL_ARG_FROM, from, 0}, {DNNL_ARG_TO, to, 1}}};
  });
}

/// oneDNN as one of the libraries of matrix products, for the check of what it was held to.
inline Peer dnnl_peer(InstructionSet set) {
  const auto effective = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41: return "SSE41";
      case dnnl::cpu_isa::avx: return "AVX";
      case dnnl::cpu_isa::avx2: return "AVX2";
      case dnnl::cpu_isa::avx2_vnni: return "AVX2_VNNI";
      case dnnl::cpu_isa::avx512_core: return "AVX512_CORE";
      case dnnl::cpu_isa::avx512_core_vnni: return "AVX512_CORE_VNNI";
      case dnnl::cpu_isa::avx512_core_bf16: return "AVX512_CORE_BF16";
      case dnnl::cpu_isa::avx512_core_amx: return "AVX512_CORE_AMX";
      default: return "another one";
    }
  };
  Peer peer{"oneDNN", [](const Product& p, void* const* buffers) { dnnl_kernel(p)(buffers); },
            [] {
              const dnnl_version_t* v = dnnl_version();
              return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
            },
            [effective] { return std::string(effective()); }};
  switch (set) {
    case InstructionSet::Sse42: peer.allows = detail::one_of({"SSE41"}); break;
    case InstructionSet::Avx2: peer.allows = detail::one_of({"AVX2"}); break;
    case InstructionSet::Avx512:
      peer.allows = detail::one_of({"AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"});
      break;
    case InstructionSet::Amx:
    case InstructionSet::Native: break;
  }
  return peer;
}

}  // namespace tunewright::bench
