// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/scalar_type.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <string_view>

#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright::program;

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("types are told by size, kind and name") {
  CHECK(size_in_bytes(ScalarType::Float16) == 2);
  CHECK(size_in_bytes(ScalarType::BFloat16) == 2);
  CHECK(size_in_bytes(ScalarType::Int8) == 1);
  CHECK(size_in_bytes(ScalarType::UInt8) == 1);
  CHECK(name(ScalarType::Float16) == "float16");
  CHECK(name(ScalarType::BFloat16) == "bfloat16");
  CHECK(name(ScalarType::Int8) == "int8");
  CHECK(name(ScalarType::UInt8) == "uint8");
  CHECK(is_float(ScalarType::BFloat16));
  CHECK_FALSE(is_float(ScalarType::Int8));
  CHECK(is_narrow_float(ScalarType::Float16));
  CHECK_FALSE(is_narrow_float(ScalarType::Float32));
  CHECK(epsilon(ScalarType::Float16) == 0x1p-10);
  CHECK(epsilon(ScalarType::BFloat16) == 0x1p-7);
}

TEST_CASE("operands are widened to a type that holds both") {
  CHECK(common_type(ScalarType::Int8, ScalarType::UInt8) == ScalarType::Int32);
  CHECK(common_type(ScalarType::Float16, ScalarType::BFloat16) == ScalarType::Float32);
  CHECK(common_type(ScalarType::Int8, ScalarType::Int32) == ScalarType::Int32);
  CHECK(common_type(ScalarType::Float16, ScalarType::Float32) == ScalarType::Float32);
  CHECK(common_type(ScalarType::Int64, ScalarType::BFloat16) == ScalarType::BFloat16);
  CHECK(common_type(ScalarType::Bool, ScalarType::UInt8) == ScalarType::UInt8);
  const Expr h = load(0, ScalarType::Float16, {IndexExpr(0)});
  CHECK((h * 0.1)->type == ScalarType::Float16);  // a number takes the type of the other operand
  CHECK((h + load(1, ScalarType::BFloat16, {IndexExpr(0)}))->type == ScalarType::Float32);
}

TEST_CASE("integers wrap around, whatever overflowed") {
  CHECK(rounded(128, ScalarType::Int8) == -128);
  CHECK(rounded(-129, ScalarType::Int8) == 127);
  CHECK(rounded(-128 * -128, ScalarType::Int8) == 0);
  CHECK(rounded(256, ScalarType::UInt8) == 0);
  CHECK(rounded(-1, ScalarType::UInt8) == 255);
  CHECK(rounded(0x1p31, ScalarType::Int32) == -0x1p31);
  CHECK(rounded(-7.0 / 2, ScalarType::Int8) == -3);                // quotients lose their fraction
  CHECK(product(0x7fffffff, 0x7fffffff, ScalarType::Int32) == 1);  // (2^31 - 1)^2 = 2^62 - 2^32 + 1, modulo 2^32
  CHECK(product(-128, -128, ScalarType::Int8) == 0);
}

TEST_CASE("casts from floating point to integers saturate, those between integers keep the lower bits") {
  CHECK(converted(127.9, ScalarType::Float32, ScalarType::Int8) == 127);
  CHECK(converted(1000, ScalarType::Float32, ScalarType::Int8) == 127);
  CHECK(converted(-infinite, ScalarType::Float32, ScalarType::Int8) == -128);
  CHECK(converted(-0.9, ScalarType::Float16, ScalarType::UInt8) == 0);
  CHECK(converted(-5, ScalarType::Float64, ScalarType::UInt8) == 0);
  CHECK(converted(not_a_number, ScalarType::Float32, ScalarType::Int32) == 0);
  CHECK(converted(3e9, ScalarType::Float64, ScalarType::Int32) == 2147483647);
  CHECK(converted(300, ScalarType::Int32, ScalarType::UInt8) == 44);
  CHECK(converted(200, ScalarType::UInt8, ScalarType::Int8) == -56);
  CHECK(converted(-1, ScalarType::Int8, ScalarType::UInt8) == 255);
  CHECK(converted(2049, ScalarType::Int32, ScalarType::Float16) == 2048);
  CHECK(converted(1e6, ScalarType::Float32, ScalarType::Float16) == infinite);
  CHECK(converted(0.25, ScalarType::Float16, ScalarType::Bool) == 1);
}

TEST_CASE("the empty maximum of integers is their least number") {
  CHECK(identity(Combiner::Max, ScalarType::Int8) == -128);
  CHECK(identity(Combiner::Min, ScalarType::UInt8) == 255);
  CHECK(identity(Combiner::Max, ScalarType::Float16) == -infinite);
  CHECK(identity(Combiner::Sum, ScalarType::Int8) == 0);
}

TEST_CASE("content hashes of programs in older types stay what they were") {
  // Journals and pretrained models name tasks by these numbers.
  CHECK(stable_hash(*operators::matmul_graph({.m = 64, .n = 32, .k = 16})) == 0x14caf609cda21fb7U);
  CHECK(stable_hash(*operators::matmul_graph({.m = 4, .n = 5, .k = 6, .type = ScalarType::Float64})) ==
        0x2ccfccadd8cf390aU);
  CHECK(stable_hash(*operators::matmul_graph({.m = 64, .n = 32, .k = 16, .type = ScalarType::Float16})) !=
        stable_hash(*operators::matmul_graph({.m = 64, .n = 32, .k = 16, .type = ScalarType::BFloat16})));
}
