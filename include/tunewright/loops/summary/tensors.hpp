// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/tensor_statements.hpp"

namespace tunewright::loops {

/// Finds the tensor statements of the nest from which code for a lowered nest is generated.
class SummaryTensors {
 public:
  /// One per statement: its share is the sum over the sides of branches; all other values, such as counts, are those of
  /// the first side with an instruction. Pointers refer to the nest, or to an internal copy that is valid until the
  /// next call.
  void find(const loops::LoopNest& nest, std::vector<loops::TensorStatement>& found);

 private:
  loops::TensorStatements statements_;
  loops::LoopNest emitted_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/prepare_for_codegen.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE void SummaryTensors::find(const loops::LoopNest& nest, std::vector<loops::TensorStatement>& found) {
  const bool is_final = loops::TensorStatements::is_final(nest);
  constexpr std::size_t any_vector_bytes = 64;  // tiles of tensor statements are not divided
  if (!is_final) emitted_ = loops::prepare_for_codegen(nest, any_vector_bytes);
  statements_.find(is_final ? nest : emitted_, found);
  auto end = found.begin();
  for (auto next = found.begin(); next != found.end(); ++next) {
    const auto known = std::find_if(found.begin(), end, [&](const auto& t) { return t.number == next->number; });
    if (known != end)
      known->share += next->share;
    else
      *end++ = *next;
  }
  found.erase(end, found.end());
}

}  // namespace tunewright::loops

#endif
