// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "../two_cores.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/study/options.hpp"

namespace tunewright::bench {

/// Calls use(target, measurer) for what `--machine` names: "real" is this machine's CPU, "cores" are two simulated
/// ones. Throws `std::invalid_argument` for another name.
template <class Use>
void with_chosen_machine(const study::Options& options, Use&& use) {
  const std::string machine = options.text("machine");
  if (machine == "real") {
    Target host = host_target();
    host.name = "host";
    use(host, measurers::OrcJit{});
  } else if (machine == "cores") {
    use(two_cores(), measurers::Simulated{});
  } else {
    throw std::invalid_argument("--machine=" + machine + ": give real or cores");
  }
}

}  // namespace tunewright::bench
