// SPDX-License-Identifier: Apache-2.0
// An option that a policy lacks, a slot that does not exist, and options that stand out of order are named.
// error 1: has no non-static data member named 'populaton'
// error 1: field designator 'populaton' does not refer to any field
// error 2: has no non-static data member named 'explorrer'
// error 2: field designator 'explorrer' does not refer to any field
// error 3: designator order for field 'tunewright::Parts<Recipe>::explorer' does not match declaration order
// error 3: ISO C++ requires field designators to be specified in declaration order; field 'seed'
// error 4: designator order for field
// error 4: ISO C++ requires field designators to be specified in declaration order; field 'generations'
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

#ifdef __clang__  // which accepts any order, with a warning
#pragma clang diagnostic error "-Wreorder-init-list"
#endif

struct Recipe : toy::Evolution {};

tunewright::Tuner<Recipe> by_default;
#if !defined(TUNEWRIGHT_SHOULD_FAIL)
tunewright::Tuner<Recipe> tuner{{.explorer = {.population = 8}, .seed = 7}};
#elif TUNEWRIGHT_SHOULD_FAIL == 1
tunewright::Tuner<Recipe> tuner{{.explorer = {.populaton = 8}}};
#elif TUNEWRIGHT_SHOULD_FAIL == 2
tunewright::Tuner<Recipe> tuner{{.explorrer = {.population = 8}}};
#elif TUNEWRIGHT_SHOULD_FAIL == 3
tunewright::Tuner<Recipe> tuner{{.seed = 7, .explorer = {.population = 8}}};
#elif TUNEWRIGHT_SHOULD_FAIL == 4
tunewright::Tuner<Recipe> tuner{{.explorer = {.generations = 1, .population = 8}}};
#endif
