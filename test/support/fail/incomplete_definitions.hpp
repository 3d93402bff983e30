// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/samplers/cluster_centres.hpp"

namespace tunewright {

std::size_t three();

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

// Lacks core/order.hpp, which samplers/cluster_centres.hpp includes for its own definitions only.
TUNEWRIGHT_INLINE std::size_t three() { return positions(3).size(); }

}  // namespace tunewright

#endif
