// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/hardware.hpp"

#include <doctest/doctest.h>

#include <set>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"

using namespace tunewright;
namespace hardware = tunewright::features::hardware;

static_assert(FeaturizerFor<features::Hardware, toy::Space>);
static_assert(OneRowFeaturizer<features::Hardware>);

TEST_CASE("the device of a task, in logarithms, the same for every configuration") {
  Task task = toy::task();
  task.target.name = "A100";
  const std::vector<toy::Tiles> tiles(2);
  const FeatureBatch batch = features::Hardware{}.extract(toy::Space{}, task, std::span<const toy::Tiles>(tiles));
  REQUIRE(batch.programs() == 2);
  CHECK(batch.rows() == 2);
  const auto row = batch.row(1);
  CHECK(row[0] == doctest::Approx(std::log2(109.0)));
  CHECK(row[6] == doctest::Approx(std::log2(9.0)));   // virtual threads
  CHECK(row[7] == doctest::Approx(std::log2(33.0)));  // warp
  CHECK(row[4] == 31.0F);                             // 2^31 - 1 bytes
  CHECK(row[9] == doctest::Approx(std::log2(1556.0)));
  CHECK(features::Hardware{}.schema().columns.size() == features::Hardware::columns);
}

TEST_CASE("an unknown target describes itself, with peaks where it knows them") {
  Target target{.name = "somewhere", .threads = 7, .isa = Isa::Avx512};
  const hardware::Device cpu = hardware::from_target(target);
  CHECK(cpu.cores == 7);
  CHECK(cpu.vector_unit_bytes == 64);
  CHECK(cpu.max_local_memory_per_block_bytes == 0);
  CHECK(cpu.peak_gflops == 0);
  target.kind = DeviceKind::Gpu;
  target.multiprocessors = 132;
  target.warp_size = 32;
  const hardware::Device gpu = hardware::from_target(target);
  CHECK(gpu.cores == 132);
  CHECK(gpu.vector_unit_bytes == 16);
  CHECK(gpu.peak_gflops == 0);
  target.peak_fp32_gflops = 1000;
  target.peak_gb_per_s = 100;
  CHECK(hardware::from_target(target).peak_gflops == 1000);
  CHECK(hardware::from_target(target).peak_gb_per_s == 100);
}

TEST_CASE("the eight numbers of a log; an unknown number of cores is zero") {
  const std::array<double, 8> log{-1, 16, 64, 49152, 2147483647, 1024, 8, 32};
  const hardware::Device device = hardware::from_log("K80", log);
  CHECK(device.cores == 0);
  hardware::Device known = hardware::device("K80");
  known.cores = known.peak_gflops = known.peak_gb_per_s = 0;
  CHECK(device == known);
}

TEST_CASE("eighteen devices that the two peaks tell apart, and a list of them for who asks for another") {
  std::set<std::array<float, features::Hardware::columns>> rows;
  for (const hardware::Device& device : hardware::devices) rows.insert(features::Hardware::numbers(device));
  CHECK(rows.size() == 18);
  CHECK(hardware::device("MI250X").warp_size == 64);
  CHECK(hardware::find("H900") == nullptr);
  const std::string message = test::refusal([] { (void)hardware::device("H900"); });
  CHECK(message.find("no data of a device 'H900'; known are 'K80', 'V100'") == 0);
  CHECK(message.find("fill in a hardware::Device") != std::string::npos);
}
