// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/summary/schedule_signature.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::loops;
using namespace tunewright::schedule;

namespace {

constexpr TensorId product = 2;
using Numbers = std::vector<std::int64_t>;

template <class T>
std::vector<T> list(std::span<const T> all) {
  return {all.begin(), all.end()};
}

/// What a schedule of a product of matrices reads as; its words are empty where it is refused.
struct Signed {
  std::vector<std::uint64_t> words;
  Numbers factors, limits;
};
Signed read(const std::vector<Step>& steps) {
  const auto graph = program::operators::matmul_graph({.m = 64, .n = 64, .k = 64});
  const auto signature = std::make_unique<ScheduleSignature>();
  if (!signature->read({graph, steps})) return {};
  return {list(signature->words()), list(signature->factors()), list(signature->unroll_limits())};
}

std::vector<Step> steps_of(Numbers factors, std::uint32_t limit) {
  return {Split{product, 0, std::move(factors)}, FollowSplit{product, 1, 0, 2}, Split{product, 2, {8}},
          FollowFusedSplit{product, 3, {0, 2}, 0}, UnrollLimit{product, {0, 16, 512}, limit}};
}

}  // namespace

TEST_CASE("factors of splits and of those that follow them are read one step after the other") {
  const Signed s = read(steps_of({4, 2, 3}, 2));
  CHECK(s.factors == Numbers{4, 2, 3, 4, 6, 8, 32});  // 4 * 2 * 3, followed by 4 * (2 * 3); 8; 4 * 8
  CHECK(s.limits == Numbers{512});
}

TEST_CASE("tile sizes and unroll limits are not among the words, all else is") {
  const Signed s = read(steps_of({4, 2, 3}, 2)), other_numbers = read(steps_of({2, 2, 2}, 0));
  CHECK(!s.words.empty());
  CHECK(s.words == other_numbers.words);
  CHECK(s.words != read(steps_of({4, 2}, 2)).words);
  const auto annotated = [](std::uint32_t iter, LoopKind kind) {
    return read({Split{product, 0, {4}}, Annotate{product, iter, kind}}).words;
  };
  CHECK(annotated(3, LoopKind::Unrolled) == annotated(3, LoopKind::Unrolled));
  CHECK(annotated(3, LoopKind::Unrolled) != annotated(3, LoopKind::Vectorized));
  CHECK(annotated(3, LoopKind::Unrolled) != annotated(4, LoopKind::Unrolled));
  const auto reordered = [](std::vector<IterId> order) { return read({Reorder{product, std::move(order)}}).words; };
  CHECK(reordered({0, 1, 2}) != reordered({0, 2, 1}));
  CHECK(reordered({0, 1}) != reordered({0, 1, 0}));
}

TEST_CASE("factors in front of an rfactor are part of the structure, those behind it are not") {
  const auto factored = [](std::int64_t before, std::int64_t after) {
    return read({Split{product, 2, {before}}, Rfactor{product, 4}, Split{product, 0, {after}}}).words;
  };
  CHECK(factored(4, 2) == factored(4, 8));
  CHECK(factored(4, 2) != factored(8, 2));
}

TEST_CASE("steps that choose what they do not have, or split by too much, are refused") {
  CHECK(!read({Split{product, 0, {1 << 16, 1 << 15}}}).words.empty());  // 2^31 together
  CHECK(read({Split{product, 0, {1 << 16, 1 << 16}}}).words.empty());
  CHECK(read({Split{product, 0, {0}}}).words.empty());
  CHECK(read({Split{product, 0, {2}}, FollowSplit{product, 1, 0, 2}}).words.empty());  // of one factor
  CHECK(read({FollowSplit{product, 1, 0, 1}, Split{product, 0, {2}}}).words.empty());  // of a later step
  CHECK(read({Split{product, 0, {2}}, FollowFusedSplit{product, 1, {0}, 1}}).words.empty());
  CHECK(read({UnrollLimit{product, {16}, 1}}).words.empty());
  CHECK(read({ComputeLocation{product, {}, 0}}).words.empty());
  CHECK(read({Fuse{product, {0, 1}, 3}}).words.empty());
  CHECK(read({Annotate{1 << 16, 0, LoopKind::Unrolled}}).words.empty());  // a stage that no word has room for
}

TEST_CASE("schedules of more steps than there is room for are refused") {
  const Step step = Annotate{product, 0, LoopKind::Unrolled};
  CHECK(!read(std::vector<Step>(ScheduleSignature::most, step)).words.empty());
  CHECK(read(std::vector<Step>(ScheduleSignature::most + 1, step)).words.empty());
  CHECK(read({Reorder{product, std::vector<IterId>(2 * ScheduleSignature::most, 0)}}).words.empty());
}

TEST_CASE("words that are swapped or fewer hash differently") {
  const auto hash = [](std::initializer_list<std::uint64_t> words) {
    ScheduleSignature::Words all;
    for (const std::uint64_t word : words) all.put(word);
    return all.hash();
  };
  CHECK(hash({3, 8, 5}) == hash({3, 8, 5}));
  CHECK(hash({8, 3, 5}) != hash({3, 8, 5}));
  CHECK(hash({3, 5, 8}) != hash({3, 8, 5}));
  CHECK(hash({0}) != hash({0, 0}));
}
