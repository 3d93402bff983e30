// SPDX-License-Identifier: Apache-2.0
// A generator is never made silently from a number: the seed of a stage is written where it is chosen.
// error: could not convert
// error: no viable conversion
#include "tunewright/core/rng.hpp"

tunewright::Rng generator() {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  return 7U;
#else
  return tunewright::Rng(7U);
#endif
}
