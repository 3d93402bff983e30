// SPDX-License-Identifier: Apache-2.0
// What a project of somebody else writes: it sees the headers only through the targets it links.
#include <cstdio>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"

int main() {
  tunewright::Rng first(7);
  tunewright::Rng second(7);
  const tunewright::Target target = tunewright::Target{.name = "consumer"}.with_threads(2);
  const bool works = first() == second() && target.threads == 2;
  std::puts(works ? "tunewright works in a consumer" : "tunewright does not work in a consumer");
  return works ? 0 : 1;
}
