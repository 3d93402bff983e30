// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// Machines with 64-bit ARM processors by name, for tuning without the machine: simulation, generation of code for
/// export, records made elsewhere.
namespace tunewright {

/// What distinguishes machines with one kind of core.
struct ArmModel {
  std::string_view name;
  std::string_view processor;  ///< as LLVM calls it, see `Target::architecture`
  unsigned cores = 0;
  std::uint64_t l1_bytes = 0;  ///< data
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
};

/// The numbers are from the makers' pages about these machines. All cores of Raspberry Pi 3 and 4 share the
/// second-level cache.
inline constexpr std::array arm_models{
    ArmModel{"Raspberry Pi 3", "cortex-a53", 4, 32 << 10, 512 << 10, 0},
    ArmModel{"Raspberry Pi 4", "cortex-a72", 4, 32 << 10, 1 << 20, 0},
    ArmModel{"Raspberry Pi 5", "cortex-a76", 4, 64 << 10, 512 << 10, 2 << 20},
    ArmModel{"Graviton2", "neoverse-n1", 64, 64 << 10, 1 << 20, 32 << 20},
    ArmModel{"Graviton3", "neoverse-v1", 64, 64 << 10, 1 << 20, 32 << 20},
    ArmModel{"Graviton4", "neoverse-v2", 96, 64 << 10, 2 << 20, 36 << 20},
};

/// A listed machine as a target, with a thread per core; restrict it with `with_threads`. Throws
/// `std::invalid_argument` with all names.
[[nodiscard]] Target arm_target(std::string_view name);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <stdexcept>

namespace tunewright {

TUNEWRIGHT_INLINE Target arm_target(std::string_view name) {
  std::string known;
  for (const ArmModel& model : arm_models) {
    if (model.name == name) {
      Target target;
      target.name = std::string(name);
      target.isa = Isa::Neon;
      target.architecture = std::string(model.processor);
      target.threads = model.cores;
      target.l1_bytes = model.l1_bytes;
      target.l2_bytes = model.l2_bytes;
      target.l3_bytes = model.l3_bytes;
      return target;
    }
    known += (known.empty() ? " '" : ", '") + std::string(model.name) + "'";
  }
  throw std::invalid_argument("no data of an ARM machine '" + std::string(name) + "'; known are" + known +
                              "; fill in a Target with isa = Isa::Neon for others");
}

}  // namespace tunewright

#endif
