// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Eigen is compiled for an instruction set rather than choosing one when it runs. So there is a module of it for each,
/// built from eigen_kernels.cpp, and the program opens the one it is held to. Modules hide their symbols: instances of
/// one template for several instruction sets must not be merged.
extern "C" {
struct tunewright_eigen_kernels {
  const char* version;
  const char* instructions;  ///< as Eigen names them
  void (*product)(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n, std::int64_t k,
                  bool transpose_a, bool transpose_b);
  void (*softmax)(const float* x, float* y, std::int64_t rows, std::int64_t columns);
  void (*layer_norm)(const float* x, const float* gamma, const float* beta, float* y, std::int64_t rows,
                     std::int64_t columns, float epsilon);
  void (*scale_shift)(const float* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                      std::int64_t columns);
  void (*sum)(const float* x, float* y, std::int64_t outer, std::int64_t summed, std::int64_t inner);
  void (*add_relu)(const float* a, const float* b, float* y, std::int64_t rows, std::int64_t columns, bool bias);
  void (*transpose)(const float* x, float* y, std::int64_t rows, std::int64_t columns);
};
/// The one function of a module.
const tunewright_eigen_kernels* tunewright_eigen();
}
