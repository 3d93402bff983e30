// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/arm_targets.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>

#include "support/refusal.hpp"

using namespace tunewright;

TEST_CASE("a Raspberry Pi 4 as its maker describes it") {
  const Target pi = arm_target("Raspberry Pi 4");
  CHECK(pi.kind == DeviceKind::Cpu);
  CHECK(pi.isa == Isa::Neon);
  CHECK(pi.architecture == "cortex-a72");
  CHECK(pi.threads == 4);
  CHECK(pi.l1_bytes == 32768);
  CHECK(pi.l2_bytes == 1048576);
  CHECK(pi.l3_bytes == 0);
  CHECK(pi.vector_bytes() == 16);
  CHECK(pi.vector_registers() == 32);
  CHECK(pi.tensor_units == 0);
}

TEST_CASE("no two machines share journals, and others are named") {
  std::set<std::uint64_t> keys;
  for (const ArmModel& model : arm_models) keys.insert(stable_hash(arm_target(model.name)));
  CHECK(keys.size() == arm_models.size());
  const std::string said = test::refusal([] { static_cast<void>(arm_target("Raspberry Pi 2")); });
  CHECK(said.starts_with("no data of an ARM machine 'Raspberry Pi 2'; known are 'Raspberry Pi 3', 'Raspberry Pi 4'"));
  CHECK(said.find("isa = Isa::Neon") != std::string::npos);
}

TEST_CASE("instruction sets contain those of their own family alone") {
  CHECK(contains(Isa::Avx512, Isa::Sse42));
  CHECK(contains(Isa::Neon, Isa::Neon));
  CHECK_FALSE(contains(Isa::Avx2, Isa::Avx512));
  CHECK_FALSE(contains(Isa::Neon, Isa::Sse42));
  CHECK_FALSE(contains(Isa::Avx512, Isa::Neon));
  CHECK(test::refusal([] { static_cast<void>(arm_target("Graviton2").with_isa(Isa::Avx2)); }) ==
        "target 'Graviton2' has no avx2; ask for at most neon");
  CHECK(test::refusal([] { static_cast<void>(Target{.isa = Isa::Avx512}.with_isa(Isa::Neon)); }) ==
        "target 'generic-cpu' has no neon; ask for at most avx512");
}
