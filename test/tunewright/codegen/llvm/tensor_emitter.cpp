// SPDX-License-Identifier: Apache-2.0
// Matrix products by tensor instructions: what every machine's loops give, and the instruction in the assembly.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/count.hpp"
#include "support/nest_arguments.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/intrinsics.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;

struct Case {
  program::operators::MatmulShape shape;
  std::string intrinsic;
  std::int64_t depth = 4;  ///< of the sum that one instruction takes
  bool packed = false;
};

/// i unrolled around tiles of as many columns as the instruction has, and `depth` terms.
schedule::Schedule tensorized(const Case& c) {
  using namespace schedule;
  const TensorIntrinsic* known = find_intrinsic(c.intrinsic);
  Schedule config{program::operators::matmul_graph(c.shape), {}};
  config.steps = {Split{2, 1, {known == nullptr ? 16 : known->n}}, Split{2, 2, {c.depth}}, Reorder{2, {3, 5, 0, 4, 6}},
                  Annotate{2, 0, LoopKind::Unrolled}};
  if (c.packed) config.steps.push_back(Pack{1, 2});
  config.steps.push_back(Tensorize{2, 4, c.intrinsic});
  return config;
}

/// Among them the two bytes that flipped signs and saturation get wrong.
std::vector<std::vector<double>> arguments_for(const loops::LoopNest& nest) {
  std::vector<std::vector<double>> arguments = test::arguments_of_all_magnitudes(nest);
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const program::ScalarType type = nest.buffers[nest.arguments[a]].type;
    if (program::is_float(type)) continue;
    arguments[a][0] = program::lowest(type);
    arguments[a][1] = program::highest(type);
  }
  return arguments;
}

/// Largest difference between the compiled nest and the same loops interpreted, relative to 1 + magnitude.
double error_of(const Case& c, const Target& target) {
  const loops::LoopNest nest = loops::lower(tensorized(c));
  codegen::LlvmCompiler compiler(target, {.verify = true});
  const auto arguments = arguments_for(nest);
  return test::compiled_error(nest, compiler, arguments, test::interpreted(nest, arguments));
}

/// Assembly for a machine that has the unit, whether this one does or not.
std::string assembly(const Case& c, TensorUnit unit) {
  Target target;
  target.isa = Isa::Avx512;
  return codegen::LlvmCompiler(target.with_tensor_unit(unit)).to_assembly(loops::lower(tensorized(c)));
}

std::vector<Target> targets_with(TensorUnit unit) {
  const Target host = host_target().with_threads(1);
  std::vector<Target> targets{host.with_isa(Isa::Sse42)};  // has no such instruction and runs the loops
  const Target wanted = unit == TensorUnit::Avx2 && contains(host.isa, Isa::Avx2) ? host.with_isa(Isa::Avx2) : host;
  if (wanted.has(unit)) {
    targets.push_back(wanted);
  } else {
    MESSAGE("this machine has no " << name(unit) << ": its instruction is compiled but not run");
  }
  return targets;
}

constexpr ScalarType s8 = ScalarType::Int8;
constexpr ScalarType u8 = ScalarType::UInt8;

}  // namespace

TEST_CASE("products of bytes with and without signs, packed and not, in tiles that divide and that do not") {
  struct Types {
    ScalarType a, b;
  };
  for (const char* intrinsic : {"avx512_vnni", "avx2_int8"}) {
    for (const Target& target : targets_with(schedule::find_intrinsic(intrinsic)->unit)) {
      for (const Types types : {Types{u8, s8}, {s8, u8}, {s8, s8}, {u8, u8}}) {
        for (const bool packed : {false, true}) {
          for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{6, 32, 24}, {5, 44, 24}, {5, 44, 22}}) {
            const Case c{{.m = m, .n = n, .k = k, .constant_b = packed, .type = types.a, .type_b = types.b},
                         intrinsic,
                         4,
                         packed};
            CHECK_MESSAGE(error_of(c, target) == 0, name(target.isa), " ", name(types.a), " ", name(types.b), " ", n);
          }
        }
      }
    }
  }
}

TEST_CASE("rows of products of signed bytes that begin before the matrix, with the border known to the compiler") {
  for (const Target& target : targets_with(TensorUnit::Avx512Vnni)) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("A", {8, 64}, s8), b = g->input("B", {64, 32}, s8);
    const auto product = program::operators::matmul(*g, a, b);
    const auto below = g->compute("below", {{"i", 8}, {"j", 32}}, [&](auto i) {
      return select(program::index_value(1) <= program::index_value(i[0]), product(i[0] - 1, i[1]),
                    program::constant(0, ScalarType::Int32));
    });
    schedule::ScheduleBuilder s(g);
    const auto rows = s.split(below.id, 0, {4});
    s.unroll(below.id, rows[0]);
    s.compute_at(product.id, below.id, rows[0]);
    const auto j = s.split(product.id, 1, {16}), k = s.split(product.id, 2, {4});
    s.reorder(product.id, {j[0], k[0], 0, j[1], k[1]});
    s.unroll(product.id, 0);
    s.tensorize(product.id, j[1], "avx512_vnni");
    const loops::LoopNest nest = loops::lower(s.schedule());
    codegen::LlvmCompiler compiler(target, {.verify = true});
    const auto arguments = arguments_for(nest);
    CHECK(test::compiled_error(nest, compiler, arguments, test::interpreted(nest, arguments)) == 0);
  }
}

TEST_CASE("products of bfloat16 numbers") {
  for (const Target& target : targets_with(TensorUnit::Avx512Bf16)) {
    for (const bool packed : {false, true}) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{6, 32, 24}, {5, 40, 24}, {5, 40, 23}}) {
        const Case c{
            {.m = m, .n = n, .k = k, .constant_b = packed, .type = ScalarType::BFloat16}, "avx512_bf16", 2, packed};
        CHECK(error_of(c, target) < 1e-5);  // sums of 24 terms of order 1 in float32
      }
    }
  }
}

TEST_CASE("a machine with the unit gets one instruction for each row and 16 columns, on registers") {
  const Case bytes{{.m = 6, .n = 32, .k = 24, .constant_b = true, .type = u8, .type_b = s8}, "avx512_vnni", 4, true};
  const std::string vnni = assembly(bytes, TensorUnit::Avx512Vnni);
  CHECK(test::count(vnni, "vpdpbusd") == 6);
  CHECK(test::count(vnni, "vpmovsx") + test::count(vnni, "vpmulld") == 0);
  Case both_signed = bytes;
  both_signed.shape.type = s8;
  CHECK(test::count(assembly(both_signed, TensorUnit::Avx512Vnni), "vpdpbusd") == 7);  // one makes up for 128 too much
  const Case pairs{{.m = 6, .n = 32, .k = 24, .type = ScalarType::BFloat16}, "avx512_bf16", 2, false};
  CHECK(test::count(assembly(pairs, TensorUnit::Avx512Bf16), "vdpbf16ps") == 6);
  // Another unit does not help.
  CHECK(test::count(assembly(bytes, TensorUnit::Avx512Bf16), "vpdpbusd") == 0);
}

TEST_CASE("with AVX2 a row and 8 columns of bytes take two sums of products of pairs, on registers") {
  const Case bytes{{.m = 3, .n = 16, .k = 24, .constant_b = true, .type = u8, .type_b = s8}, "avx2_int8", 4, true};
  Target target;
  target.isa = Isa::Avx2;
  const std::string pairs = codegen::LlvmCompiler(target).to_assembly(loops::lower(tensorized(bytes)));
  CHECK(test::count(pairs, "vpmaddwd") == 2 * 3);
  // Bytes of a column with a sign: two shifts right and one left for all rows; those of a row without: one and a mask.
  CHECK(test::count(pairs, "vpsraw") == 2);
  CHECK(test::count(pairs, "vpsllw") == 1);
  CHECK(test::count(pairs, "vpsrlw") == 3);
  CHECK(test::count(pairs, "vpmulld") + test::count(pairs, "vpmovsx") + test::count(pairs, "vpmovzx") == 0);
}

TEST_CASE("a nest that carries an instruction says so and keeps its loops") {
  const Case c{{.m = 2, .n = 16, .k = 8, .type = u8, .type_b = s8}, "avx512_vnni", 4, false};
  const std::string text = loops::to_string(loops::lower(tensorized(c)));
  CHECK_MESSAGE(text.find("for j.1 in 0..16 vectorized by avx512_vnni:") != std::string::npos, text);
  CHECK_MESSAGE(text.find("for k.1 in 0..4 unrolled reduction:") != std::string::npos, text);
}

TEST_CASE("loops that are not what the instruction computes are refused") {
  const auto refusal = [](const Case& c, std::vector<schedule::Step> more = {}) -> std::string {
    schedule::Schedule config = tensorized(c);
    config.steps.insert(config.steps.end(), more.begin(), more.end());
    try {
      (void)loops::lower(config);
    } catch (const schedule::ScheduleError& error) {
      CHECK(error.fault() == schedule::ScheduleFault::Unsupported);
      return error.what();
    }
    return "";
  };
  const Case fits{{.m = 2, .n = 32, .k = 8, .type = u8, .type_b = s8}, "avx512_vnni", 4, false};
  CHECK(refusal(fits).empty());
  Case shallow = fits;
  shallow.depth = 2;
  CHECK(refusal(shallow) ==
        "unsupported: the loops of 'matmul' from j.1 inwards are not the 1 x 16 x 4 of avx512_vnni; split "
        "and reorder "
        "so that they are");
  CHECK_FALSE(refusal(fits, {schedule::Split{2, 4, {8}}}).empty());  // the loop is split afterwards
  Case narrow = fits;
  narrow.shape.n = 8;  // the loop of 16 shrinks
  CHECK_FALSE(refusal(narrow).empty());
  Case unknown = fits;
  unknown.intrinsic = "avx1024";
  CHECK(refusal(unknown) ==
        "unsupported: step 4: unsupported: no tensor instruction is named 'avx1024'; there are avx2_int8, "
        "avx512_vnni, avx512_bf16, amx_int8, amx_bf16, wmma_fp16, wmma_bf16, wmma_int8, "
        "mma_fp16, mma_bf16, mma_int8, wgmma_fp16_n64, wgmma_bf16_n64, wgmma_int8_n64, wgmma_fp16_n128, "
        "wgmma_bf16_n128, wgmma_int8_n128, wgmma_fp16_n256, wgmma_bf16_n256, wgmma_int8_n256");
  Case floats = fits;
  floats.shape.type = ScalarType::Float32;
  floats.shape.type_b.reset();
  CHECK(refusal(floats) ==
        "unsupported: step 4: unsupported: 'matmul' is no sum of products of the types that avx512_vnni "
        "multiplies");
}
