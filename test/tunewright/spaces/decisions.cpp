// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/decisions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/schedule/step.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::spaces;
using schedule::LoopKind;
using schedule::Split;
using schedule::Step;
using Sizes = std::vector<std::int64_t>;

Target avx2() {
  Target t;
  t.isa = Isa::Avx2;
  return t;
}

/// The open decisions of a tiled matmul, [i, j, k].
std::vector<Step> open_steps(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {Split{2, 0, {1, 1, 1}, m, 64, LoopKind::Unrolled},
          Split{2, 1, {1, 1, 1}, n, 64, LoopKind::Vectorized},
          Split{2, 2, {1}, k, 0, LoopKind::Serial},
          Split{2, 9, {4}, 8, -1, LoopKind::Serial},  // no choice
          schedule::Fuse{2, {3, 7, 11}, 1, true},
          schedule::Fuse{2, {5, 6}, 2, false},  // no choice
          schedule::UnrollLimit{2, {0, 16, 64}, 0},
          schedule::ComputeLocation{4, {{}, {schedule::Location::Kind::At, 2, 3}}, 0},
          schedule::ComputeLocation{5, {{}}, 0}};
}

void check_domains(const std::vector<Step>& steps, const Target& target) {
  for (const std::size_t s : {0U, 1U, 2U}) {
    const auto& split = std::get<Split>(steps[s]);
    std::int64_t product = 1;
    for (const std::int64_t factor : split.factors) {
      CHECK(factor >= 1);
      product *= factor;
    }
    // An outer part of at least one, and of every part at most a rounded-up share idle.
    CHECK(program::ceil_div(split.extent, product) >= 1);
    if (split.max_innermost > 0) CHECK(split.factors.back() <= split.max_innermost);
    CHECK(split.factors.back() <= split.extent);
  }
  CHECK(std::get<Split>(steps[3]).factors == Sizes{4});
  const auto& fuse = std::get<schedule::Fuse>(steps[4]);
  CHECK(fuse.count >= 1);
  CHECK(fuse.count <= 3);
  CHECK(std::get<schedule::Fuse>(steps[5]).count == 2);
  CHECK(std::get<schedule::UnrollLimit>(steps[6]).selected < 3);
  CHECK(std::get<schedule::ComputeLocation>(steps[7]).selected < 2);
  CHECK(std::get<schedule::ComputeLocation>(steps[8]).selected == 0);
  CHECK(decisions::fits_registers(decisions::register_tile(steps, 2, target), target));
}

TEST_CASE("tile sizes: divisors, and what idles little") {
  const auto sizes = [](std::int64_t extent, std::int64_t cap, bool imperfect) {
    Sizes all = decisions::tile_sizes(extent, cap, imperfect);
    std::sort(all.begin(), all.end());
    return all;
  };
  CHECK(sizes(12, 12, false) == Sizes{1, 2, 3, 4, 6, 12});
  CHECK(sizes(12, 5, false) == Sizes{1, 2, 3, 4});
  CHECK(sizes(1, 64, false) == Sizes{1});
  CHECK(sizes(1024, 1024, false) == Sizes{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  CHECK(sizes(7, 64, false) == Sizes{1, 2, 4, 7});          // a prime: 8 points for 7 leave an eighth idle
  CHECK(sizes(12, 12, true) == Sizes{1, 2, 3, 4, 6, 12});   // 5 would leave 3 of 15 idle, 7 2 of 14 = 1/7
  CHECK(sizes(30, 8, true) == Sizes{1, 2, 3, 4, 5, 6, 8});  // 4 and 8 leave 2 of 32
  CHECK(decisions::waste(7, 4) == doctest::Approx(0.125));
  CHECK(decisions::waste(8, 4) == 0.0);
}

TEST_CASE("what a register tile takes and saves") {
  std::vector<Step> steps = open_steps(12, 32, 8);
  std::get<Split>(steps[0]).factors = {1, 1, 6};
  std::get<Split>(steps[1]).factors = {1, 2, 16};
  std::get<Split>(steps[2]).factors = {8};
  CHECK(decisions::CoreLimits(avx2()).lanes == 8);
  const decisions::RegisterTile tile = decisions::register_tile(steps, 2, avx2());
  CHECK(tile.rows == 6);
  CHECK(tile.vectors == 2);
  CHECK(tile.registers() == 12 + 2 + 1);  // sums, a row of one operand, an element of the other
  CHECK(decisions::register_tile(steps, 3, avx2()).accumulators() == 1);
  CHECK(decisions::fits_registers({6, 2}, avx2()));        // of 16
  CHECK(decisions::fits_registers({4, 3}, avx2()));        // 12 + 3 + 1
  CHECK_FALSE(decisions::fits_registers({7, 2}, avx2()));  // 14 + 2 + 1
  // 8 steps of 12 multiply-adds, 8 loads taking as long as those, and 12 sums set and stored.
  CHECK(decisions::busy_share(steps, 2, avx2()) == doctest::Approx(96.0 / (12 * 8 + 2 * 12)));
  // Rows as 5 + 5 + 2, of which the last sums wait for themselves; 32 columns as 12 + 12 + 8, vectors as 2 + 2 + 1.
  std::get<Split>(steps[0]).factors = {1, 1, 5};
  std::get<Split>(steps[1]).factors = {1, 2, 12};
  const double two_vectors = 2 * (1.5 * 7 * 8 + 2 * 10) + (8 * 8 + 2 * 4);
  const double one_vector = 2 * (1.5 * 6 * 8 + 2 * 5) + (8 * 8 + 2 * 2);
  CHECK(decisions::busy_share(steps, 2, avx2()) == doctest::Approx(12 * 4 * 8 / (2 * two_vectors + one_vector)));
  std::get<Split>(steps[0]).factors = {1, 1, 1};
  std::get<Split>(steps[1]).factors = {1, 1, 8};
  CHECK(decisions::busy_share(steps, 2, avx2()) == doctest::Approx(8.0 / (8 * 8 + 2)));  // one sum: waits for itself
}

TEST_CASE("registers hold half as many elements of eight bytes") {
  const decisions::CoreLimits doubles(avx2(), sizeof(double)), halves(avx2(), 2);
  CHECK(doubles.lanes == 4);
  CHECK(halves.lanes == 8);  // computed as floats
  CHECK(doubles.l2_elements == decisions::CoreLimits(avx2()).l2_elements / 2);
  std::vector<Step> steps = open_steps(12, 32, 8);
  std::get<Split>(steps[0]).factors = {1, 1, 6};
  std::get<Split>(steps[1]).factors = {1, 2, 16};
  CHECK(decisions::register_tile(steps, 2, doubles).vectors == 4);
  CHECK_FALSE(decisions::fits_registers(decisions::register_tile(steps, 2, doubles), doubles));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    std::vector<Step> drawn = open_steps(96, 96, 96);
    decisions::draw_all(drawn, avx2(), rng, sizeof(double));
    CHECK(decisions::fits_registers(decisions::register_tile(drawn, 2, doubles), doubles));
    decisions::mutate_one(drawn, avx2(), rng, sizeof(double));
    CHECK(decisions::fits_registers(decisions::register_tile(drawn, 2, doubles), doubles));
  }
}

TEST_CASE("columns that no good tile divides are divided into large tiles and the vectors that are left") {
  // 55 columns: 7 vectors as 3 + 3 + 1 or as 2 + 2 + 2 + 1, where only single vectors divide what vectors hold.
  std::size_t several = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    std::vector<Step> steps = open_steps(841, 55, 675);
    decisions::draw_all(steps, avx2(), rng);
    const std::int64_t size = std::get<Split>(steps[1]).factors.back();
    if (size == 16 || size == 24) ++several;
  }
  CHECK(several > 100);
}

TEST_CASE("tiles of any number of axes of rows are estimated") {
  // Each axis has two tiles of two rows and one of one: 2^60 kinds of tiles.
  const std::vector<Step> steps(60, Split{2, 0, {2}, 5, 64, LoopKind::Unrolled});
  const double busy = decisions::busy_share(steps, 2, avx2());
  CHECK(busy > 0);
  CHECK(busy <= 1);
}

TEST_CASE("draws favour tiles that load few operands and stay in registers, and operands that are not copied") {
  const schedule::ComputeLocation copy{4,
                                       {{schedule::Location::Kind::Inline, 0, 0},
                                        {schedule::Location::Kind::At, 2, 3},
                                        {schedule::Location::Kind::At, 2, 4},
                                        {schedule::Location::Kind::At, 2, 5},
                                        {schedule::Location::Kind::At, 2, 6}},
                                       0};
  int wide = 0, plain = 0, in_one_go = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    std::vector<Step> steps = open_steps(128, 64, 128);
    steps.push_back(copy);
    decisions::draw_all(steps, avx2(), rng);
    const decisions::RegisterTile tile = decisions::register_tile(steps, 2, avx2());
    wide += 10 * tile.accumulators() >= 12 * (tile.rows + tile.vectors) ? 1 : 0;  // 2 rows of 3 vectors, say
    plain += std::get<schedule::ComputeLocation>(steps.back()).selected == 0 ? 1 : 0;
    in_one_go += std::get<Split>(steps[2]).factors[0] == 128 ? 1 : 0;
  }
  CHECK(wide > 200);
  CHECK(wide < 400);   // others stay possible
  CHECK(plain > 200);  // one of five would be 80
  CHECK(plain < 280);
  CHECK(in_one_go > 200);  // one of eight sizes would be 50
  CHECK(in_one_go < 400);
}

TEST_CASE("products of few rows with an operand beyond the second cache read it in long streams") {
  Target target = avx2();
  target.threads = 2;
  target.l2_bytes = std::uint64_t{1} << 20;
  std::vector<Step> steps = open_steps(1, 1024, 1024);  // an operand of 4 MiB
  CHECK(decisions::reads_once(steps, 2, target));
  CHECK_FALSE(decisions::reads_once(open_steps(1, 512, 512), 2, target));    // of 1 MiB
  CHECK_FALSE(decisions::reads_once(open_steps(2, 1024, 1024), 2, target));  // tiles of one row: read twice
  CHECK_FALSE(decisions::reads_once(steps, 3, target));                      // a stage without tiles

  std::get<Split>(steps[1]).factors = {1, 1, 32};
  Rng one(1);
  for (int draw = 0; draw < 50; ++draw) {
    decisions::draw_streams(std::get<Split>(steps[1]), target, one);
    decisions::draw_streams(std::get<Split>(steps[2]), target, one);
    const Sizes columns = std::get<Split>(steps[1]).factors;
    CHECK(columns[0] == 1);
    CHECK(columns[1] <= 16);  // 32 tiles, half of them a thread
    CHECK(16 % columns[1] == 0);
    CHECK(columns[2] == 32);
    const std::int64_t terms = std::get<Split>(steps[2]).factors[0];
    CHECK((terms == 4 || terms == 8 || terms == 16 || terms == 32));
  }

  int long_streams = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    std::vector<Step> drawn = open_steps(1, 1024, 1024);
    decisions::draw_all(drawn, target, rng);
    const Sizes& columns = std::get<Split>(drawn[1]).factors;
    long_streams += columns[0] == 1 && columns[1] * columns[2] >= 256 && std::get<Split>(drawn[2]).factors[0] <= 32;
  }
  CHECK(long_streams > 80);
  CHECK(long_streams < 190);  // others stay possible
}

TEST_CASE("columns of a tensor instruction are the vectors of its register tile") {
  Target target;
  target.isa = Isa::Avx512;
  std::vector<Step> steps{Split{2, 0, {1, 1, 7}, 28, 64, LoopKind::Unrolled},
                          Split{2, 1, {1, 1, 2}, 28, 64, LoopKind::Unrolled},
                          Split{2, 4, {1, 1, 2}, 8, 64, LoopKind::Unrolled}, Split{2, 3, {16}, 32, 0, LoopKind::Serial},
                          schedule::Tensorize{2, 6, "avx512_vnni"}};
  const decisions::RegisterTile tile = decisions::register_tile(steps, 2, target);
  CHECK(tile.rows == 14);
  CHECK(tile.vectors == 2);
  CHECK(tile.registers() == 28 + 2 + 1);
  std::get<schedule::Tensorize>(steps.back()).stage = 3;  // of another stage
  CHECK(decisions::register_tile(steps, 2, target).rows == 28);
  std::get<schedule::Tensorize>(steps.back()).stage = 2;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    decisions::draw_all(steps, target, rng);
    CHECK(decisions::fits_registers(decisions::register_tile(steps, 2, target), target));
  }
}

TEST_CASE("draws stay within domains and the register file, mutations too") {
  for (const auto& [m, n, k] :
       std::vector<std::array<std::int64_t, 3>>{{128, 512, 64}, {7, 13, 31}, {1, 1, 1}, {1, 1000, 3}}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Rng rng(seed);
      std::vector<Step> steps = open_steps(m, n, k);
      decisions::draw_all(steps, avx2(), rng);
      check_domains(steps, avx2());
      for (int i = 0; i < 20; ++i) {
        std::vector<Step> changed = steps;
        if (!decisions::mutate_one(changed, avx2(), rng)) continue;
        CHECK(changed != steps);
        check_domains(changed, avx2());
        steps = std::move(changed);
      }
    }
  }
}

TEST_CASE("tiles keep the core about as busy after many mutations as when they were drawn") {
  const auto busy = [](const std::vector<Step>& steps) { return decisions::busy_share(steps, 2, avx2()); };
  double drawn = 0, mutated = 0;
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    std::vector<Step> steps = open_steps(128, 512, 64);
    decisions::draw_all(steps, avx2(), rng);
    drawn += busy(steps);
    const std::vector<Step> start = steps;
    for (int i = 0; i < 16; ++i) decisions::mutate_one(steps, avx2(), rng);
    mutated += busy(steps);
    changed += std::get<Split>(steps[0]).factors.back() != std::get<Split>(start[0]).factors.back() ? 1 : 0;
  }
  CHECK(mutated > 0.8 * drawn);  // a walk that accepts every change keeps a third
  CHECK(changed > 60);
}

TEST_CASE("equal generators draw equal decisions, others different ones") {
  std::vector<Step> a = open_steps(128, 512, 64), b = a, c = a;
  Rng one(4), two(4), three(5);
  decisions::draw_all(a, avx2(), one);
  decisions::draw_all(b, avx2(), two);
  decisions::draw_all(c, avx2(), three);
  CHECK(a == b);
  CHECK(a != c);
}

TEST_CASE("every open decision is drawn and mutated some time; closed ones never") {
  const std::vector<Step> start = open_steps(128, 512, 64);
  std::vector<int> changes(start.size(), 0);
  Rng rng(1);
  for (int i = 0; i < 600; ++i) {
    std::vector<Step> changed = start;
    if (!decisions::mutate_one(changed, avx2(), rng)) continue;
    int count = 0;
    for (std::size_t s = 0; s < start.size(); ++s) {
      if (changed[s] == start[s]) continue;
      ++changes[s];
      ++count;
    }
    CHECK(count == 1);
  }
  for (const std::size_t open : {0U, 1U, 2U, 4U, 6U, 7U}) CHECK(changes[open] > 0);
  for (const std::size_t closed : {3U, 5U, 8U}) CHECK(changes[closed] == 0);
}

TEST_CASE("nothing to mutate") {
  std::vector<Step> steps{schedule::Annotate{2, 0, LoopKind::Parallel}, schedule::UnrollLimit{2, {16}, 0}};
  Rng rng(1);
  CHECK_FALSE(decisions::mutate_one(steps, avx2(), rng));
  std::vector<Step> none;
  CHECK_FALSE(decisions::mutate_one(none, avx2(), rng));
}

}  // namespace
