// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "library_kernels.hpp"
#include "shapes.hpp"
#include "tile_palette.hpp"

/// Kernels of oneDNN, of its second and its third interface.
namespace tunewright::bench {

namespace dnnl_interface {

using Description = dnnl::memory::desc;

#if DNNL_VERSION_MAJOR >= 3
inline dnnl::memory::dims dims(const Description& d) { return d.get_dims(); }
inline dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Description& a, const Description& b,
                                            const Description& c) {
  return {engine, a, b, c};
}
inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine, const Description& data, int axis) {
  return {engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, data, data, axis};
}
/// Of source, weights, destination, strides, dilation and padding before and behind.
template <class... Geometry>
dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& engine, const Geometry&... geometry) {
  return {engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, geometry...};
}
#else
inline dnnl::memory::dims dims(const Description& d) { return d.dims(); }
inline dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Description& a, const Description& b,
                                            const Description& c) {
  return {dnnl::matmul::desc(a, b, c), engine};
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

/// A primitive made at its first call, in the measuring process; constants are reordered then, once.
class DnnlKernel {
 public:
  struct Built {
    dnnl::primitive primitive;
    dnnl::memory::desc source, weights, destination;  ///< as the primitive wants them
    dnnl::memory::desc plain_weights;                 ///< as the graph has them; empty when they are no constant
  };
  explicit DnnlKernel(std::function<Built(const dnnl::engine&)> build) : build_(std::move(build)) {}

  void operator()(void* const* buffers) {
    if (!state_) {
      {
        [[maybe_unused]] const TilePalette told;  // no longer than needed: threads that start meanwhile inherit it
        state_ = std::make_shared<State>();
        state_->built = build_(state_->engine);
      }
      const Built& b = state_->built;
      const bool has_weights = dnnl_interface::dims(b.weights).size() > 0;
      if (has_weights && dnnl_interface::dims(b.plain_weights).size() > 0 && b.plain_weights != b.weights) {
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
    arguments.emplace(DNNL_ARG_DST, dnnl::memory(s.built.destination, s.engine, buffers[s.has_weights ? 2 : 1]));
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
    return DnnlKernel::Built{dnnl::matmul(dnnl_interface::product(engine, a, b, c)), a, b, c, {}};
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
    return DnnlKernel::Built{dnnl::matmul(dnnl_interface::product(engine, a, b, c)), a, b, c, {}};
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
    return DnnlKernel::Built{dnnl::convolution_forward(primitive), source, primitive.weights_desc(), destination,
                             plain};
  });
}

inline LibraryCall dnnl_softmax(std::int64_t rows, std::int64_t columns) {
  return DnnlKernel([rows, columns](const dnnl::engine& engine) {
    const dnnl::memory::desc data({rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
    const auto primitive = dnnl_interface::softmax(engine, data, 1);
    return DnnlKernel::Built{dnnl::softmax_forward(primitive), data, {}, data, {}};
  });
}

}  // namespace tunewright::bench
