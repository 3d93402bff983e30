// SPDX-License-Identifier: Apache-2.0
// [snippet-begin program]
#include <stdio.h>
#include <stdlib.h>

#include "matmul.h"

enum { size = 128 };

int main(void) {
  void* buffers[matmul_buffer_count];
  for (int b = 0; b < matmul_buffer_count; ++b) buffers[b] = aligned_alloc(64, (matmul_buffer_bytes[b] + 63) / 64 * 64);
  float *x = buffers[matmul_A], *y = buffers[matmul_B], *z = buffers[matmul_matmul];
  for (int i = 0; i < size * size; ++i) x[i] = (float)(i % 3), y[i] = (float)(i % 5);
  matmul(buffers, &tunewright_serial_runtime);

  float sum = 0;
  for (int k = 0; k < size; ++k) sum += x[size + k] * y[k * size + 2];
  printf("row 1, column 2: %g, expected %g\n", (double)z[size + 2], (double)sum);
  return z[size + 2] == sum ? 0 : 1;
}
// [snippet-end program]
