// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/features/dataflow/schema.hpp"
#include "tunewright/features/program_describer.hpp"

namespace tunewright::features::dataflow {

/// Writes the rows of `schema.hpp` for programs.
class Describer : public ProgramDescriber {
 public:
  explicit Describer(bool store_rows = true, bool squared_operations = false, bool asynchronous_copies = false);
};

}  // namespace tunewright::features::dataflow

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/features/dataflow/describer_of.hpp"

namespace tunewright::features::dataflow {

TUNEWRIGHT_INLINE Describer::Describer(bool store_rows, bool squared_operations, bool asynchronous_copies)
    : ProgramDescriber(DescriberOf<loops::LoopNest>(store_rows, squared_operations, asynchronous_copies),
                       DescriberOf<loops::NestSummary>(store_rows, squared_operations, asynchronous_copies)) {}

}  // namespace tunewright::features::dataflow

#endif
