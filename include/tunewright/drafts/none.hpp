// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tunewright::drafts {

/// No draft stage: explorers rank by the cost model.
struct None {};

}  // namespace tunewright::drafts
