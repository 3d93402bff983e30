// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

namespace {

/// C = A B with the two operands in shared memory; a tile lists what a virtual thread, a thread and the two
/// inner levels have of an axis.
loops::LoopNest product(std::int64_t m, std::int64_t n, std::int64_t k, const test::Tile& rows,
                        const test::Tile& columns, const test::Tile& depth, std::int64_t vector = 1) {
  const auto graph = program::operators::matmul_graph({.m = m, .n = n, .k = k});
  auto s = test::tiled_on_gpu(graph, "matmul", {rows, columns}, {depth}, {"A", "B"}, vector);
  return loops::lower(s.schedule());
}

SymbolAnalyzer released() { return {.form = SymbolAnalyzer::Form::Released, .device = released_device("a100_40")}; }
Target a100() { return gpu_target("A100"); }

}  // namespace

// The figures of this case and the next were worked out from the released code, apart from this library.
TEST_CASE("worked latencies of the released form on an A100 of 40 GB") {
  const auto latency_ms = [](const loops::LoopNest& nest) { return 1e3 * released().latency_s(nest, a100()); };
  CHECK(latency_ms(product(1024, 1024, 1024, {1, 16, 2, 2}, {1, 16, 4, 1}, {4, 8})) ==
        doctest::Approx(0.188110).epsilon(1e-5));
  CHECK(latency_ms(product(1024, 1024, 1024, {1, 16, 8, 1}, {1, 16, 1, 8}, {2, 2})) ==
        doctest::Approx(0.217343).epsilon(1e-5));
  CHECK(latency_ms(product(1024, 1024, 1024, {1, 8, 16, 1}, {1, 8, 4, 4}, {16, 1})) ==
        doctest::Approx(0.896965).epsilon(1e-5));
  CHECK(latency_ms(product(256, 256, 1024, {1, 8, 2, 2}, {1, 8, 2, 2}, {8, 1})) ==
        doctest::Approx(0.030449).epsilon(1e-4));
}

TEST_CASE("worked rows of the released form") {
  GpuSymbolReader reader;
  const loops::LoopNest nest = product(1024, 1024, 1024, {1, 16, 2, 2}, {1, 16, 4, 1}, {4, 8});
  const auto rows = reader.released_rows(nest);
  REQUIRE(rows.size() == 4);  // A.shared, B.shared, C.local, C
  const GpuDevice device = released_device("a100_40");
  const std::array<double, 4> memory_ms{0.010048, 0.010048, 0, 0.000628};
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(rows[r].blocks == 256);
    CHECK(rows[r].threads == 256);
    CHECK(1e3 * released_latency(rows[r], device).memory_s == doctest::Approx(memory_ms[r]).epsilon(1e-3));
  }
  CHECK(rows[2].register_usage == 24);
  CHECK(rows[2].reuse() == doctest::Approx(4.9922).epsilon(1e-5));
  CHECK(1e3 * released_latency(rows[2], device).compute_s == doctest::Approx(0.167385).epsilon(1e-5));
}

TEST_CASE("the printed symbols of a product follow their definitions") {
  // i: 4 blocks, 2 virtual threads, 8 threads, 2 * 2 inner; j: 8, 1, 16, 4 * 1; k: 16 * 4 * 2.
  const std::array<double, 5> I{4, 2, 8, 2, 2}, J{8, 1, 16, 4, 1};
  const std::array<double, 3> K{16, 4, 2};
  GpuSymbolReader reader;
  const loops::LoopNest nest = product(256, 512, 128, {2, 8, 2, 2}, {1, 16, 4, 1}, {4, 2});
  const auto found = reader.symbols(nest);
  REQUIRE(found.size() == 4);
  const GpuSymbols &a = found[0], &b = found[1], &c = found[2], &store = found[3];
  const double own_i = I[1] * I[3] * I[4], own_j = J[1] * J[3] * J[4];  // of one thread
  const double tile_i = I[2] * own_i, tile_j = J[2] * own_j;            // of one block
  const double k = K[0] * K[1] * K[2];
  CHECK(c.registers_per_thread == own_i * own_j + own_i + own_j);
  CHECK(c.instances_per_thread == own_i * own_j * k);
  CHECK(a.shared_bytes == 4 * tile_i * K[1] * K[2]);
  CHECK(b.shared_bytes == 4 * tile_j * K[1] * K[2]);
  CHECK(c.threads_per_block == I[2] * J[2]);
  REQUIRE(a.traffic.size() == 1);
  REQUIRE(b.traffic.size() == 1);
  CHECK(a.traffic[0].bytes == 4 * I[0] * tile_i * J[0] * k);
  CHECK(b.traffic[0].bytes == 4 * J[0] * tile_j * I[0] * k);
  CHECK(a.traffic[0].contiguous_bytes == 4 * K[1] * K[2]);
  CHECK(b.traffic[0].contiguous_bytes == 4 * tile_j);
  CHECK(c.traffic.empty());
  CHECK(c.blocks == I[0] * J[0]);
  CHECK(c.flops == 2.0 * 256 * 512 * 128);
  REQUIRE(store.traffic.size() == 1);
  CHECK(store.traffic[0].bytes == 4.0 * 256 * 512);
  CHECK(store.flops == 0);
  REQUIRE(reader.kernels().size() == 1);
  CHECK(reader.kernels()[0].shared_bytes == a.shared_bytes + b.shared_bytes);
}

TEST_CASE("six scheduling blocks on four units leave a quarter idle") {
  CHECK(wave_utilisation(6, 4) == 0.75);
  GpuSymbols s;
  s.threads_per_block = 6 * 32;
  const GpuDevice device = gpu_device(a100());
  CHECK(penalties(s, 0, device).l1_compute == 0.75);
  s.threads_per_block = 48;
  CHECK(penalties(s, 0, device).warp_occupancy == 0.75);
  s.threads_per_block = 1024;
  GpuDevice of_blocks = device;
  of_blocks.registers_per_block = 65536;  // 64 for each of 1024 threads
  CHECK(penalties(s, 128, of_blocks).l0_memory == 0.5);
  of_blocks.registers_per_thread = 0;  // unknown
  CHECK(penalties(s, 128, of_blocks).l0_memory == 0.5);
  of_blocks.registers_per_block = 0;
  CHECK(penalties(s, 128, of_blocks).l0_memory == 1);
  CHECK(transaction_utilisation({.bytes = 1, .contiguous_bytes = 48}, device) == 0.75);
  CHECK(transaction_utilisation({.bytes = 1, .contiguous_bytes = 4}, device) == 0.125);
}

TEST_CASE("a copy of a matrix by the printed form: bandwidth, blocks in the last wave do not slow it") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1024, 1024});
  g->compute("y", {{"i", 1024}, {"j", 1024}}, [&](auto i) { return x(i[0], i[1]); });
  const auto along = [&](std::uint32_t axis) {
    schedule::ScheduleBuilder s(g);
    const auto parts = s.split(1, axis, {256});
    s.reorder(1, {1 - axis, parts[0], parts[1]});
    s.bind(1, s.fuse(1, {1 - axis, parts[0]}), schedule::LoopKind::BlockX);
    s.bind(1, parts[1], schedule::LoopKind::ThreadX);
    return loops::lower(s.schedule());
  };
  const SymbolAnalyzer printed{.form = SymbolAnalyzer::Form::Printed};
  const double bytes = 2 * 4.0 * 1024 * 1024;
  CHECK(printed.latency_s(along(1), a100()) == doctest::Approx(bytes / 1555e9).scale(0));
  // Down a column each element is a transaction of its own: 4 bytes of 32.
  CHECK(printed.latency_s(along(0), a100()) == doctest::Approx(8 * bytes / 1555e9).scale(0));
}

TEST_CASE("times to compute and to move may be added or the longer taken in either form") {
  const loops::LoopNest nest = product(1024, 1024, 1024, {1, 16, 2, 2}, {1, 16, 4, 1}, {4, 8});
  SymbolAnalyzer analyzer = released();
  const double longer = analyzer.latency_s(nest, a100());
  analyzer.combine = SymbolAnalyzer::Combine::Sum;
  CHECK(analyzer.latency_s(nest, a100()) == doctest::Approx(longer).scale(0));  // a row of it does one or the other
  SymbolAnalyzer printed{.form = SymbolAnalyzer::Form::Printed};
  const double sum = printed.latency_s(nest, a100());
  printed.combine = SymbolAnalyzer::Combine::Max;
  CHECK(printed.latency_s(nest, a100()) == doctest::Approx(sum).scale(0));
}

TEST_CASE("a block beyond the device is hopeless") {
  for (const auto form :
       {SymbolAnalyzer::Form::Hierarchical, SymbolAnalyzer::Form::Printed, SymbolAnalyzer::Form::Released}) {
    const SymbolAnalyzer analyzer{.form = form};
    // 2048 threads; 2 * 256 * 128 floats of shared memory.
    CHECK(std::isinf(analyzer.latency_s(product(256, 256, 64, {1, 64, 1, 1}, {1, 32, 1, 1}, {2, 2}), a100())));
    CHECK(std::isinf(analyzer.latency_s(product(256, 256, 256, {1, 16, 16, 1}, {1, 16, 16, 1}, {16, 8}), a100())));
    CHECK(std::isfinite(analyzer.latency_s(product(256, 256, 64, {1, 32, 1, 1}, {1, 32, 1, 1}, {2, 2}), a100())));
  }
}

TEST_CASE("a device is for the forms that it describes: the default form asks the target") {
  const SymbolAnalyzer other_device{.device = released_device("a100_40")};
  CHECK(std::isinf(other_device.latency_s(product(256, 256, 64, {1, 64, 1, 1}, {1, 32, 1, 1}, {2, 2}), a100())));
  Target unknown = a100();
  unknown.peak_gb_per_s = 0;
  const loops::LoopNest nest = product(64, 64, 64, {1, 8, 1, 1}, {1, 8, 1, 1}, {2, 2});
  CHECK_THROWS_AS((void)other_device.latency_s(nest, unknown), std::invalid_argument);
}

TEST_CASE("what a draft cannot work with is said") {
  const loops::LoopNest nest = product(64, 64, 64, {1, 8, 1, 1}, {1, 8, 1, 1}, {2, 2});
  Target unknown = a100();
  unknown.peak_gb_per_s = 0;
  CHECK(test::refusal([&] { (void)SymbolAnalyzer{}.latency_s(nest, unknown); }).find("peak_gb_per_s") !=
        std::string::npos);
  CHECK(test::refusal([] { (void)released_device("h100"); }).find("it has 'k80', 't4'") != std::string::npos);
  CHECK_THROWS_AS((void)(SymbolAnalyzer{.multiprocessor = {.overlap = 2}}.latency_s(nest, Target{})),
                  std::invalid_argument);
}

TEST_CASE("rates that are none are refused by name, for they would score every program as hopeless or alike") {
  const loops::LoopNest nest = product(64, 64, 64, {1, 8, 1, 1}, {1, 8, 1, 1}, {2, 2});
  const auto refused = [&](const SymbolAnalyzer& draft) {
    return test::refusal([&] { (void)draft.latency_s(nest, a100()); });
  };
  CHECK(refused({.multiprocessor = {.frequency_hz = 0}}) ==
        "SymbolAnalyzer: multiprocessor.frequency_hz is 0; give a finite frequency above 0");
  CHECK(refused({.multiprocessor = {.cache_speed = -1}}).find("multiprocessor.cache_speed is -1") != std::string::npos);
  CHECK(refused({.multiprocessor = {.launch = std::nan("")}}).find("multiprocessor.launch") != std::string::npos);
  CHECK(refused({.multiprocessor = {.registers_for_addresses = std::nan("")}})
            .find("multiprocessor.registers_for_addresses") != std::string::npos);
  CHECK(refused({.core = {.loads_per_cycle = 0}}).find("core.loads_per_cycle is 0") != std::string::npos);
  CHECK(refused({.core = {.bytes_per_cycle = {1, 1, 0}}}).find("core.bytes_per_cycle is 0") != std::string::npos);
  CHECK(refused({.core = {.tensor_units = {.shuffles_per_cycle = 0}}}).find("shuffles_per_cycle") != std::string::npos);
  CHECK(refused({.form = SymbolAnalyzer::Form::Printed, .device = GpuDevice{}}).find("device.peak_gflops is 0") !=
        std::string::npos);
  CHECK(test::refusal([&] {
          (void)Roofline{.core = {.frequency_hz = -1}}.latency_s(nest, a100());
        }).find("Roofline: core.frequency_hz is -1") == 0);
  Target unknown = a100();
  unknown.peak_fp32_gflops = std::nan("");
  CHECK(test::refusal([&] { (void)Roofline{}.latency_s(nest, unknown); }).find("does not say its peak") !=
        std::string::npos);
}
