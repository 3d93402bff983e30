// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Matrix products by tensor instructions of CPUs, lowered.
namespace tunewright::test {

/// Columns as they are, packed ahead, or by a copy, of all terms or of 32 at a time.
enum class Columns { AsTheyAre, PackedAhead, Copied, CopiedInBlocks };

/// `rows` of 32 columns, 128 terms, in blocks of two by two tiles of bfloat16.
inline loops::LoopNest tile_product(std::int64_t rows, Columns columns) {
  using namespace schedule;
  Schedule config{program::operators::matmul_graph({.m = rows,
                                                    .n = 32,
                                                    .k = 128,
                                                    .constant_b = columns == Columns::PackedAhead,
                                                    .type = program::ScalarType::BFloat16}),
                  {}};
  const bool copied = columns == Columns::Copied || columns == Columns::CopiedInBlocks;
  if (copied)
    config.steps = {CacheRead{1, 2, Scope::Local}, Split{3, 1, {16}}, Split{3, 0, {2}}, Reorder{3, {4, 2, 3, 5}},
                    Annotate{3, 5, LoopKind::Unrolled}};
  for (const Step& step : std::vector<Step>{Split{2, 0, {2, 16}}, Split{2, 1, {2, 16}}, Split{2, 2, {16, 2}},
                                            Reorder{2, {3, 6, 9, 4, 7, 5, 10, 8, 11}},
                                            Annotate{2, 4, LoopKind::Unrolled}, Annotate{2, 7, LoopKind::Unrolled}})
    config.steps.push_back(step);
  if (columns == Columns::CopiedInBlocks) config.steps.push_back(ComputeLocation{3, {{Location::Kind::At, 2, 9}}});
  if (columns != Columns::AsTheyAre)
    config.steps.push_back(Pack{copied ? program::TensorId{3} : program::TensorId{1}, 2});
  config.steps.push_back(Tensorize{2, 5, "amx_bf16"});
  return loops::lower(config);
}

/// `rows`, eight at a time, of `columns` columns, 64 terms, of bytes of `type` by such with a sign, by an
/// instruction for one row.
inline loops::LoopNest row_product(program::ScalarType type, std::int64_t rows = 8, std::int64_t columns = 16,
                                   const std::string& intrinsic = "avx512_vnni") {
  using namespace schedule;
  Schedule config{
      program::operators::matmul_graph(
          {.m = rows, .n = columns, .k = 64, .constant_b = true, .type = type, .type_b = program::ScalarType::Int8}),
      {Split{2, 0, {8}}, Split{2, 1, {find_intrinsic(intrinsic)->n}}, Split{2, 2, {4}}, Reorder{2, {3, 5, 7, 4, 6, 8}},
       Annotate{2, 4, LoopKind::Unrolled}, Annotate{2, 6, LoopKind::Vectorized}, Pack{1, 2},
       Tensorize{2, 6, intrinsic}}};
  return loops::lower(config);
}

}  // namespace tunewright::test
