// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "library_kernels.hpp"
#include "peers.hpp"
#include "restriction_check.hpp"
#include "suite.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
#include "dnnl_kernels.hpp"
#endif

/// The kernels that are tuned and compared: a program, and every library that has the operator.
namespace tunewright::bench {

struct KernelCase {
  std::string name;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::vector<LibraryKernel> libraries;
  bool narrow = false;        ///< elements that tensor units multiply
  bool memory_bound = false;  ///< compared with the bandwidth as well
  /// Whether a library does all operations of the program, so that none is faster than the peak. Convolutions can be
  /// computed with fewer.
  bool all_operations = false;
};

/// The libraries to compare with, tried and found to keep to the target's instructions, and the reports on all.
class Peers {
 public:
  /// Tries every library that this program was built with. Call it before the process has threads.
  Peers(const Target& target, [[maybe_unused]] InstructionSet set, const std::vector<Variable>& environment,
        std::string_view vendor) {
    std::vector<Peer> found = product_peers(target, set, environment, vendor);
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
    found.push_back(dnnl_peer(set));
#endif
    for (Peer& peer : found) {
      reports_.push_back(check_restriction(peer, target));
      if (reports_.back().fault.empty()) kept_.push_back(std::move(peer));
    }
  }

  [[nodiscard]] const std::vector<RestrictionReport>& reports() const noexcept { return reports_; }

  [[nodiscard]] KernelCase product(std::string name, const Product& p) const {
    KernelCase c{std::move(name), product_graph(p), {}};
    c.all_operations = true;
    for (const Peer& peer : kept_) {
      if (!peer.supports(p)) continue;
      if (peer.name == "oneDNN") {  // which prepares a product once
        add_dnnl(c, p);
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
        if (p.batch == 1) c.libraries.push_back(library_kernel("oneDNN (sgemm)", c.graph, dnnl_blas_product(p)));
#endif
      } else {
        c.libraries.push_back(library_kernel(
            peer.name, c.graph, [multiply = peer.product, p](void* const* buffers) { multiply(p, buffers); }));
        if (peer.vector_product && p.batch == 1 && p.m == 1) {
          c.libraries.push_back(
              library_kernel(peer.name + " (sgemv)", c.graph,
                             [multiply = peer.vector_product, p](void* const* buffers) { multiply(p, buffers); }));
        }
      }
    }
    return c;
  }

  [[nodiscard]] KernelCase entry(const SuiteEntry& entry) const {
    KernelCase c;
    if (const auto* p = std::get_if<Product>(&entry.shape)) {
      c = product(entry.name, *p);
    } else {
      c = {entry.name, program_of(entry.shape), {}};
      add_eigen(c, entry.shape);
      add_dnnl(c, entry.shape);
    }
    c.memory_bound = entry.memory_bound;
    return c;
  }

  /// Both operands are inputs, of bytes or bfloat16.
  [[nodiscard]] KernelCase narrow_product(std::string name, Product p, NarrowType type) const {
    KernelCase c{std::move(name), narrow_product_graph(p, type), {}};
    c.narrow = true;
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
    if (has("oneDNN")) c.libraries.push_back(library_kernel("oneDNN", c.graph, dnnl_narrow_product(p, type)));
#endif
    return c;
  }

  /// A convolution of bytes or bfloat16.
  [[nodiscard]] KernelCase narrow_convolution(std::string name, const ConvolutionShape& s, NarrowType type) const {
    KernelCase c{std::move(name), narrow_convolution_graph(s, type), {}};
    c.narrow = true;
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
    if (has("oneDNN")) {
      c.libraries.push_back(library_kernel("oneDNN", c.graph,
                                           dnnl_convolution({1, s.height, s.width, s.in_channels, s.out_channels,
                                                             s.kernel, s.stride, s.padding, false, dnnl_types(type)})));
    }
#endif
    return c;
  }

 private:
  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](const Peer& peer) { return peer.name == name; });
  }

  void add_dnnl([[maybe_unused]] KernelCase& c, [[maybe_unused]] const Shape& shape) const {
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
    if (!has("oneDNN")) return;
    c.libraries.push_back(
        library_kernel("oneDNN", c.graph, std::visit([](const auto& s) { return dnnl_kernel(s); }, shape)));
#endif
  }

  /// Adds Eigen's kernel where Eigen has an expression for it.
  void add_eigen([[maybe_unused]] KernelCase& c, [[maybe_unused]] const Shape& shape) const {
#ifdef TUNEWRIGHT_BENCH_EIGEN_MODULES
    if (!has("Eigen")) return;
    const auto add = [&](auto call) {
      c.libraries.push_back(library_kernel("Eigen", c.graph, [call](void* const* buffers) {
        const auto* const* in = reinterpret_cast<const float* const*>(buffers);
        call(detail::eigen(), in, reinterpret_cast<float* const*>(buffers));
      }));
    };
    using Kernels = tunewright_eigen_kernels;
    using In = const float* const*;
    using Out = float* const*;
    std::visit(
        [&](const auto& s) {
          using T = std::decay_t<decltype(s)>;
          if constexpr (std::is_same_v<T, SoftmaxRows>) {
            add([s](const Kernels& k, In in, Out out) { k.softmax(in[0], out[1], s.rows, s.columns); });
          } else if constexpr (std::is_same_v<T, LayerNormRows>) {
            add([s](const Kernels& k, In in, Out out) {
              k.layer_norm(in[0], in[1], in[2], out[3], s.rows, s.columns, 1e-5F);
            });
          } else if constexpr (std::is_same_v<T, BatchNormRows>) {
            add([s](const Kernels& k, In in, Out out) {
              k.scale_shift(in[0], in[1], in[2], out[3], s.rows, s.channels);
            });
          } else if constexpr (std::is_same_v<T, AxisSum>) {
            add([s](const Kernels& k, In in, Out out) {
              std::int64_t outer = 1, inner = 1;
              for (int axis = 0; axis < 3; ++axis)
                (axis < s.axis ? outer : inner) *= axis == s.axis ? 1 : s.extents[axis];
              k.sum(in[0], out[1], outer, s.extents[s.axis], inner);
            });
          } else if constexpr (std::is_same_v<T, AddRelu>) {
            add([s](const Kernels& k, In in, Out out) { k.add_relu(in[0], in[1], out[2], s.rows, s.columns, s.bias); });
          } else if constexpr (std::is_same_v<T, TransposeShape>) {
            add([s](const Kernels& k, In in, Out out) { k.transpose(in[0], out[1], s.rows, s.columns); });
          }
        },
        shape);
#endif
  }

  std::vector<Peer> kept_;
  std::vector<RestrictionReport> reports_;
};

/// What the quick start shows. Its names are those of files.
inline std::vector<KernelCase> quickstart_cases(const Peers& peers) {
  std::vector<KernelCase> cases;
  cases.push_back(peers.product("matmul_1024x1024x1024", {1, 1024, 1024, 1024}));
  cases.push_back(peers.entry({"conv2d_3x3_28x28x128_128", ConvolutionShape{28, 28, 128, 128, 3, 1, 1}}));
  cases.push_back(peers.entry({"depthwise_3x3_56x56x144", DepthwiseShape{56, 144, 1}}));
  cases.push_back(peers.product("batch_matmul_12x128x64x128", {12, 128, 64, 128}));
  cases.push_back(peers.entry({"softmax_1024x1024", SoftmaxRows{1024, 1024}}));
  return cases;
}

/// Products and convolutions of bytes and of bfloat16, which tensor units multiply.
inline std::vector<KernelCase> narrow_cases(const Peers& peers) {
  std::vector<KernelCase> cases;
  cases.push_back(peers.narrow_product("matmul_int8/1024x1024x1024", {1, 1024, 1024, 1024}, NarrowType::Bytes));
  cases.push_back(peers.narrow_product("matmul_bf16/1024x1024x1024", {1, 1024, 1024, 1024}, NarrowType::BFloat16));
  cases.push_back(peers.narrow_product("matmul_bf16/4096x1024x1024", {1, 4096, 1024, 1024}, NarrowType::BFloat16));
  for (const NarrowType type : {NarrowType::Bytes, NarrowType::BFloat16}) {
    const std::string narrow = type == NarrowType::Bytes ? "int8" : "bf16";
    for (const ConvolutionShape& s : resnet50_convolutions()) {
      if (s.kernel != 3 || s.stride != 1) continue;
      cases.push_back(peers.narrow_convolution("conv2d_" + narrow + "/" + extents_of(s), s, type));
    }
  }
  return cases;
}

}  // namespace tunewright::bench
