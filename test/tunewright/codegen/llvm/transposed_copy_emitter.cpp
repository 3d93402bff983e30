// SPDX-License-Identifier: Apache-2.0
// Tiles that are transposed in registers, of every instruction set of the machine.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/count.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// out[i, j] = f(in[j, i]) in tiles of `rows` x `columns`, whose columns are vectorised.
template <class F>
loops::LoopNest transposition(std::int64_t m, std::int64_t n, std::int64_t rows, std::int64_t columns, const F& f) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto in = graph->input("in", {n, m});
  const auto other = graph->input("other", {m, n});
  graph->compute("out", {{"i", m}, {"j", n}}, [&](auto i) { return f(in(i[1], i[0]), other(i[0], i[1])); });
  schedule::ScheduleBuilder s(graph);
  const auto i = s.split(2, 0, {rows}), j = s.split(2, 1, {columns});
  s.reorder(2, {i[0], j[0], i[1], j[1]});
  s.vectorize(2, j[1]);
  return loops::lower(s.schedule());
}
const auto copied = [](const auto& in, const auto&) { return in; };

}  // namespace

TEST_CASE("square tiles are transposed, whole ones and those that extents cut") {
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa > host_target().isa) continue;
    const Target target = host_target().with_isa(isa).with_threads(1);
    const std::int64_t lanes = target.vector_bytes() / 4;
    codegen::LlvmCompiler compiler(target, {.verify = true});
    CHECK(test::compiled_error(transposition(2 * lanes, 3 * lanes, lanes, lanes, copied), compiler) == 0);
    CHECK(test::compiled_error(transposition(2 * lanes + 3, 3 * lanes - 1, lanes, lanes, copied), compiler) == 0);
    CHECK(test::compiled_error(transposition(2 * lanes, 3 * lanes, lanes, lanes / 2, copied), compiler) == 0);
    for (const std::int64_t squares : {2, 3, 4, 5}) {
      const std::int64_t width = squares * lanes;
      CHECK(test::compiled_error(transposition(2 * lanes, 2 * width, lanes, width, copied), compiler) == 0);
      CHECK(test::compiled_error(transposition(2 * lanes + 3, 2 * width - 1, lanes, width, copied), compiler) == 0);
    }
    const auto scaled = [](const auto& in, const auto&) { return in * 2.0 + 1.0; };
    CHECK(test::compiled_error(transposition(lanes, lanes, lanes, lanes, scaled), compiler) == 0);
    // What another operand has along the vectors is read across the rows of the tile: not transposed, and right.
    const auto mixed = [](const auto& in, const auto& other) { return in + other; };
    CHECK(test::compiled_error(transposition(lanes, 2 * lanes, lanes, lanes, mixed), compiler) == 0);
  }
}

TEST_CASE("a whole tile takes a load and a store for each row, and no element is moved alone") {
  if (host_target().isa < Isa::Avx2) return;
  codegen::LlvmCompiler compiler(host_target().with_isa(Isa::Avx2).with_threads(1));
  const std::string text = compiler.to_assembly(transposition(8, 8, 8, 8, copied));
  CHECK_MESSAGE(test::count(text, "vinsertps") + test::count(text, "vmovss") + test::count(text, "gather") == 0, text);
  CHECK_MESSAGE(test::count(text, "vmovups") + test::count(text, "vmovaps") + test::count(text, "vinsertf128") >= 8,
                text);
  CHECK_MESSAGE(test::count(text, "vunpck") == 16, text);
}

TEST_CASE("squares side by side are transposed one by one, and the row of each is stored in one go") {
  if (host_target().isa < Isa::Avx2) return;
  codegen::LlvmCompiler compiler(host_target().with_isa(Isa::Avx2).with_threads(1));
  const std::string text = compiler.to_assembly(transposition(8, 16, 8, 16, copied));
  CHECK_MESSAGE(test::count(text, "vinsertps") + test::count(text, "vmovss") + test::count(text, "gather") == 0, text);
  CHECK_MESSAGE(test::count(text, "vunpck") == 32, text);
}

TEST_CASE("whole tiles are transposed where the last one along the vectors is cut") {
  if (host_target().isa < Isa::Avx2) return;
  codegen::LlvmCompiler compiler(host_target().with_isa(Isa::Avx2).with_threads(1));
  const loops::LoopNest nest = transposition(24, 23, 8, 8, copied);
  CHECK(test::count(compiler.to_assembly(nest), "vunpck") == 16);
  CHECK(test::compiled_error(nest, compiler) == 0);
}
