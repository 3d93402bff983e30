// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eigen_kernels.hpp"
#include "instruction_sets.hpp"
#include "shapes.hpp"
#include "shared_library.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_XSMM
#include <libxsmm.h>
#endif

/// Libraries that multiply matrices, each opened by the process that calls it, when it first does: that is the
/// measuring process or one that checks what the library does, never the tuner's own, whose forks must not inherit
/// threads.
///
/// OpenBLAS, BLIS and MKL have functions of the same names, so none is linked.
namespace tunewright::bench {

/// A library as far as all of them are alike.
struct Peer {
  std::string name;
  /// A call of the product with buffers A, B, C.
  std::function<void(const Product&, void* const* buffers)> product;
  std::function<std::string()> version;
  /// What it says its kernels are made for; empty where it does not say.
  std::function<std::string()> kernels;
  /// Whether it may say so under the instruction set.
  std::function<bool(const std::string& kernels)> allows = [](const std::string&) { return true; };
  /// Whether it has the product at all.
  std::function<bool(const Product&)> supports = [](const Product&) { return true; };
  /// The product of one row, where it has a function of its own for that.
  std::function<void(const Product&, void* const* buffers)> vector_product{};
};

namespace detail {

inline std::function<bool(const std::string&)> one_of(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
}

/// Opened once a process; a failure is thrown at each call.
inline const SharedLibrary& opened(const std::string& path) {
  static std::map<std::string, SharedLibrary> libraries;
  const auto found = libraries.find(path);
  return found != libraries.end() ? found->second : libraries.emplace(path, SharedLibrary(path)).first->second;
}
template <class Function>
Function* function(const std::string& path, const char* name) {
  Function* found = nullptr;
  opened(path).find(found, name);
  return found;
}

// The C interface of the BLAS, with 32-bit numbers.
using cblas_sgemm = void(int layout, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                         int lda, const float* b, int ldb, float beta, float* c, int ldc);
inline constexpr int cblas_row_major = 101, cblas_no_transpose = 111, cblas_transpose = 112;

inline void blas_product(cblas_sgemm* gemm, const Product& p, void* const* buffers) {
  const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const auto* a = static_cast<const float*>(buffers[0]);
  const auto* b = static_cast<const float*>(buffers[1]);
  auto* c = static_cast<float*>(buffers[2]);
  for (std::int64_t i = 0; i < p.batch; ++i) {
    gemm(cblas_row_major, p.transpose_a ? cblas_transpose : cblas_no_transpose,
         p.transpose_b ? cblas_transpose : cblas_no_transpose, m, n, k, 1.0F, a + i * p.m * p.k, p.transpose_a ? m : k,
         b + i * p.k * p.n, p.transpose_b ? k : n, 0.0F, c + i * p.m * p.n, n);
  }
}

using cblas_sgemv = void(int layout, int transpose_a, int m, int n, float alpha, const float* a, int lda,
                         const float* x, int increment_x, float beta, float* y, int increment_y);

/// One row as a vector that the second operand, transposed, is multiplied by.
inline void blas_vector_product(cblas_sgemv* gemv, const Product& p, void* const* buffers) {
  const auto n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int rows = p.transpose_b ? n : k, columns = p.transpose_b ? k : n;
  gemv(cblas_row_major, p.transpose_b ? cblas_no_transpose : cblas_transpose, rows, columns, 1.0F,
       static_cast<const float*>(buffers[1]), columns, static_cast<const float*>(buffers[0]), 1, 0.0F,
       static_cast<float*>(buffers[2]), 1);
}

/// A library with the C interface of the BLAS, whose names begin with `prefix`; `prepare` is called ahead of each
/// product.
[[maybe_unused]] inline Peer blas_peer(
    std::string name, const std::string& path, std::function<std::string()> version,
    std::function<std::string()> kernels, const std::function<void()>& prepare = [] {},
    const std::string& prefix = "") {
  Peer peer{std::move(name),
            [path, prepare, gemm = prefix + "cblas_sgemm"](const Product& p, void* const* buffers) {
              prepare();
              blas_product(function<cblas_sgemm>(path, gemm.c_str()), p, buffers);
            },
            std::move(version), std::move(kernels)};
  peer.vector_product = [path, prepare, gemv = prefix + "cblas_sgemv"](const Product& p, void* const* buffers) {
    prepare();
    blas_vector_product(function<cblas_sgemv>(path, gemv.c_str()), p, buffers);
  };
  return peer;
}

/// Chooses kernels of BLIS by the name of their family: its numbers differ between versions. The first of `wanted`
/// that this BLIS has is taken.
inline void choose_blis_kernels(const std::string& path, const std::vector<std::string>& wanted) {
  auto* const name_of_kernels = function<const char*(int)>(path, "bli_arch_string");
  int chosen = -1;
  std::size_t rank = wanted.size();
  for (int number = 0;; ++number) {
    const std::string_view name = name_of_kernels(number);
    const auto place = static_cast<std::size_t>(std::find(wanted.begin(), wanted.end(), name) - wanted.begin());
    if (place < rank) {
      rank = place;
      chosen = number;
    }
    if (name == "generic") break;  // the last
  }
  if (chosen < 0) throw std::runtime_error("'" + path + "' has no kernels for this instruction set");
  ::setenv("BLIS_ARCH_TYPE", std::to_string(chosen).c_str(), 1);
}

[[maybe_unused]] inline Peer openblas(const std::string& path, const std::vector<Variable>& environment) {
  const auto core = std::find_if(environment.begin(), environment.end(),
                                 [](const Variable& v) { return v.first == "OPENBLAS_CORETYPE"; });
  // Python's package of it has names of its own, so that a program can have both.
  const std::string prefix = path.find("scipy_openblas") == std::string::npos ? "" : "scipy_";
  const auto text = [path, prefix](const char* name) {
    return std::string(function<char*()>(path, (prefix + name).c_str())());
  };
  Peer peer = blas_peer(
      "OpenBLAS", path, [text] { return text("openblas_get_config"); },
      [text] { return text("openblas_get_corename"); }, [] {}, prefix);
  if (core != environment.end() && !core->second.empty()) peer.allows = one_of({core->second});
  return peer;
}

[[maybe_unused]] inline Peer blis(const std::string& path, InstructionSet set, std::string_view vendor) {
  const bool amd = vendor == "AuthenticAMD";
  std::vector<std::string> wanted;
  switch (set) {
    case InstructionSet::Sse42: wanted = {"penryn"}; break;
    case InstructionSet::Avx2:
      wanted = amd ? std::vector<std::string>{"zen3", "zen2", "zen", "haswell"} : std::vector<std::string>{"haswell"};
      break;
    case InstructionSet::Avx512:
    case InstructionSet::Amx:
      wanted = amd ? std::vector<std::string>{"zen4", "skx"} : std::vector<std::string>{"skx"};
      break;
    case InstructionSet::Native: break;
  }
  const auto prepare = [path, wanted] {
    static const bool chosen = [&] {
      if (wanted.empty())
        ::unsetenv("BLIS_ARCH_TYPE");
      else
        choose_blis_kernels(path, wanted);
      function<void()>(path, "bli_init")();  // or it cannot say what it chose
      return true;
    }();
    static_cast<void>(chosen);
  };
  Peer peer = blas_peer(
      "BLIS", path, [path] { return std::string(function<const char*()>(path, "bli_info_get_version_str")()); },
      [path, prepare] {
        prepare();
        return std::string(
            function<const char*(int)>(path, "bli_arch_string")(function<int()>(path, "bli_arch_query_id")()));
      },
      prepare);
  if (!wanted.empty()) peer.allows = one_of(wanted);
  return peer;
}

/// MKL does not say which kernels it runs.
[[maybe_unused]] inline Peer mkl(const std::string& path) {
  return blas_peer(
      "MKL", path,
      [path] {
        char text[200] = {};
        function<void(char*, int)>(path, "mkl_get_version_string")(text, sizeof text - 1);
        const std::string padded = text;
        return padded.substr(0, padded.find_last_not_of(' ') + 1);
      },
      [] { return std::string(); });
}

#ifdef TUNEWRIGHT_BENCH_HAS_XSMM
/// Row-major operands are the transposed ones of its order by columns, so they change places.
inline Peer xsmm() {
  Peer peer{"libxsmm",
            [](const Product& p, void* const* buffers) {
              const auto m = static_cast<libxsmm_blasint>(p.n), n = static_cast<libxsmm_blasint>(p.m);
              const auto k = static_cast<libxsmm_blasint>(p.k);
              const float alpha = 1, beta = 0;
              const auto* a = static_cast<const float*>(buffers[1]);
              const auto* b = static_cast<const float*>(buffers[0]);
              auto* c = static_cast<float*>(buffers[2]);
              if (p.batch == 1) {
                libxsmm_xgemm_omp(LIBXSMM_GEMM_PRECISION_F32, LIBXSMM_GEMM_PRECISION_F32, "N", "N", &m, &n, &k, &alpha,
                                  a, &m, b, &k, &beta, c, &m);
                return;
              }
              const int flags = LIBXSMM_GEMM_FLAG_NONE;
              const auto kernel =
                  libxsmm_smmdispatch(m, n, k, nullptr, nullptr, nullptr, &alpha, &beta, &flags, nullptr);
              if (kernel == nullptr) throw std::runtime_error("libxsmm has no kernel for this batch of products");
#pragma omp parallel for schedule(static)
              for (std::int64_t i = 0; i < p.batch; ++i)
                kernel(a + i * p.k * p.n, b + i * p.m * p.k, c + i * p.m * p.n);
            },
            [] { return std::string(LIBXSMM_VERSION); }, [] { return std::string(libxsmm_get_target_arch()); }};
  const char* target = std::getenv("LIBXSMM_TARGET");
  if (target != nullptr) peer.allows = one_of({target});
  peer.supports = [](const Product& p) { return !p.transpose_a && !p.transpose_b; };
  return peer;
}
#endif

#ifdef TUNEWRIGHT_BENCH_EIGEN_MODULES
inline const char* eigen_module_name(Isa isa) {
  switch (isa) {
    case Isa::Sse42: return "sse42";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: break;
  }
  throw std::invalid_argument("there is no module of Eigen's kernels for instruction set " + std::string(name(isa)));
}
/// The instruction sets of all modules, for the whole program one: that of its target.
inline std::string& eigen_path() {
  static std::string path;
  return path;
}
inline const tunewright_eigen_kernels& eigen() {
  return *function<const tunewright_eigen_kernels*()>(eigen_path(), "tunewright_eigen")();
}

inline Peer eigen_peer(Isa isa) {
  eigen_path() = std::string(TUNEWRIGHT_BENCH_EIGEN_MODULES) + "/tunewright_eigen_" + eigen_module_name(isa) + ".so";
  return {"Eigen",
          [](const Product& p, void* const* buffers) {
            const auto* a = static_cast<const float*>(buffers[0]);
            const auto* b = static_cast<const float*>(buffers[1]);
            auto* c = static_cast<float*>(buffers[2]);
            for (std::int64_t i = 0; i < p.batch; ++i) {
              eigen().product(a + i * p.m * p.k, b + i * p.k * p.n, c + i * p.m * p.n, p.m, p.n, p.k, p.transpose_a,
                              p.transpose_b);
            }
          },
          [] { return std::string(eigen().version); }, [] { return std::string(eigen().instructions); },
          [isa](const std::string& instructions) {
            return instructions.find(isa == Isa::Sse42 ? "AVX" : "AVX512") == std::string::npos || isa == Isa::Avx512;
          }};
}
#endif

}  // namespace detail

/// The libraries of matrix products that were found, held to `set`; oneDNN, which does more, is in dnnl_kernels.hpp.
/// `target` is the machine held to `set`.
[[nodiscard]] inline std::vector<Peer> product_peers([[maybe_unused]] const Target& target,
                                                     [[maybe_unused]] InstructionSet set,
                                                     [[maybe_unused]] const std::vector<Variable>& environment,
                                                     [[maybe_unused]] std::string_view vendor) {
  std::vector<Peer> peers;
#ifdef TUNEWRIGHT_BENCH_EIGEN_MODULES
  peers.push_back(detail::eigen_peer(target.isa));
#endif
#ifdef TUNEWRIGHT_BENCH_OPENBLAS
  peers.push_back(detail::openblas(TUNEWRIGHT_BENCH_OPENBLAS, environment));
#endif
#ifdef TUNEWRIGHT_BENCH_BLIS
  peers.push_back(detail::blis(TUNEWRIGHT_BENCH_BLIS, set, vendor));
#endif
#ifdef TUNEWRIGHT_BENCH_HAS_XSMM
  peers.push_back(detail::xsmm());
#endif
#ifdef TUNEWRIGHT_BENCH_MKL
  peers.push_back(detail::mkl(TUNEWRIGHT_BENCH_MKL));
#endif
  return peers;
}

}  // namespace tunewright::bench
