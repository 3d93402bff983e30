// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest_summary.hpp"

namespace tunewright::loops {

/// Content hash of the program that a summary describes: its loops, buffers, and what each statement computes, from
/// which elements, and writes. Schedules of one graph that lower to the same loops and statements have the same hash,
/// however their steps came to them: loops of one iteration are none, and numbers of variables do not count.
/// Independent of platform and run. Cost: a microsecond.
[[nodiscard]] std::uint64_t program_hash(const NestSummary& summary);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include <cstddef>
#include <vector>

#include "tunewright/core/hash.hpp"

namespace tunewright::loops {

/// Hashes what a summary says, in which variables count by the order in which loops over them begin.
class ProgramHasher {
 public:
  explicit ProgramHasher(const NestSummary& summary) : summary_(summary), number_(summary.indices.extents.size()) {}

  [[nodiscard]] std::uint64_t run() {
    for (const BufferSummary& buffer : summary_.buffers) add(buffer);
    for (const NestSummary::Step& step : summary_.steps()) {
      hash_.add(static_cast<unsigned>(step.event));
      switch (step.event) {
        case NestSummary::Event::Enter: enter(summary_.loops[step.of]); break;
        case NestSummary::Event::Run: add(summary_.statements[step.of]); break;
        case NestSummary::Event::Fill: add(summary_.fills[step.of]); break;
        case NestSummary::Event::Allocate: allocate(step.of); break;
        case NestSummary::Event::Leave:
        case NestSummary::Event::Next: break;
      }
    }
    return hash_.value();
  }

 private:
  void add(const BufferSummary& buffer) {
    hash_.add(buffer.element_bytes).add(static_cast<unsigned>(buffer.scope)).add(static_cast<unsigned>(buffer.role));
    hash_.add(buffer.stages).add(static_cast<unsigned>(buffer.asynchronous)).add(buffer.elements);
    for (const PackedDimension& piece : buffer.packing) hash_.add(piece.dimension).add(piece.divisor).add(piece.extent);
    for (const std::int64_t extent : buffer.shape) hash_.add(extent);
  }
  void enter(const LoopSummary& loop) {
    number_[loop.var] = ++loops_;
    hash_.add(loop.extent).add(static_cast<unsigned>(loop.kind)).add(static_cast<unsigned>(loop.reduction));
    hash_.add(loop.unroll_limit);
    if (loop.intrinsic != nullptr) hash_.add(loop.intrinsic->name);
  }
  void allocate(std::uint32_t buffer) {
    hash_.add(buffer);
    for (const FlatIndex& origin : summary_.buffers[buffer].origin) hash_.add(value_of(origin));
  }
  void add(const StatementSummary& statement) {
    hash_.add(static_cast<unsigned>(statement.kind)).add(statement.target).add(statement.body_hash);
    for (const FlatIndex& value : statement.axis_values) hash_.add(value_of(value));
  }

  // Terms are sorted by the numbers of variables, which do not count, so their hashes are added up.
  [[nodiscard]] std::uint64_t value_of(const FlatIndex& index) const {
    std::uint64_t sum = mix64(static_cast<std::uint64_t>(index.constant));
    for (const FlatIndex::Term& term : index.terms()) {
      const bool is_variable = term.kind == FlatIndex::Kind::Variable;
      StableHash hash;
      hash.add(term.coefficient).add(static_cast<unsigned>(term.kind));
      if (is_variable)
        hash.add(number_[term.of]);
      else
        hash.add(term.divisor).add(value_of(summary_.indices.numerator(term)));
      sum += hash.value();
    }
    return sum;
  }

  const NestSummary& summary_;
  std::vector<std::uint32_t> number_;  // by variable
  std::uint32_t loops_ = 0;
  StableHash hash_;
};

TUNEWRIGHT_INLINE std::uint64_t program_hash(const NestSummary& summary) { return ProgramHasher(summary).run(); }

}  // namespace tunewright::loops

#endif
