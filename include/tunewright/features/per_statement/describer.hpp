// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/features/program_describer.hpp"

namespace tunewright::features::per_statement {

/// Writes the rows of `schema.hpp` for programs, one row per stored buffer in the order of first visit.
class Describer : public ProgramDescriber {
 public:
  Describer();
};

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/features/per_statement/describer_of.hpp"

namespace tunewright::features::per_statement {

TUNEWRIGHT_INLINE Describer::Describer()
    : ProgramDescriber(DescriberOf<loops::LoopNest>(), DescriberOf<loops::NestSummary>()) {}

}  // namespace tunewright::features::per_statement

#endif
