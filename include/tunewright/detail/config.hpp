// SPDX-License-Identifier: Apache-2.0
#pragma once

// The library is header-only unless `TUNEWRIGHT_SEPARATE_COMPILATION` is defined. Then functions that are not templates
// are compiled once, by one source file per component (tunewright/src/<component>.hpp), and other sources see only
// their declarations.
//
// A header with such functions ends with a section of definitions, which also has the includes that only definitions
// need:
//
//   #if TUNEWRIGHT_DEFINES(loops)
//   #include "tunewright/loops/lower/emission.hpp"
//   namespace tunewright::loops {
//   TUNEWRIGHT_INLINE LoopNest lower(const schedule::State& state) { ... }
//   }
//   #endif
//
// Other headers may use only these macros. docs/design/separate_compilation.md explains the use and the limits of
// separate compilation.

// Marks functions that call code compiled by the library. Clang's UndefinedBehaviorSanitizer reads the type of a
// function from the bytes before it; generated code has none there, and the bytes may not be readable.
#if defined(__clang__)
#define TUNEWRIGHT_CALLS_COMPILED_CODE __attribute__((no_sanitize("function")))
#else
#define TUNEWRIGHT_CALLS_COMPILED_CODE
#endif

// Units that are compiled together, one bit each. All headers of a unit belong to one component.
#define TUNEWRIGHT_UNIT_core 0x1
#define TUNEWRIGHT_UNIT_models 0x2
#define TUNEWRIGHT_UNIT_measurers 0x4
#define TUNEWRIGHT_UNIT_data 0x8
#define TUNEWRIGHT_UNIT_features 0x10
#define TUNEWRIGHT_UNIT_journal 0x20
#define TUNEWRIGHT_UNIT_gzip 0x40
#define TUNEWRIGHT_UNIT_networks 0x80
#define TUNEWRIGHT_UNIT_program 0x100
#define TUNEWRIGHT_UNIT_schedule 0x200
#define TUNEWRIGHT_UNIT_loops 0x400
#define TUNEWRIGHT_UNIT_spaces 0x800
#define TUNEWRIGHT_UNIT_program_features 0x1000
#define TUNEWRIGHT_UNIT_drafts 0x2000
#define TUNEWRIGHT_UNIT_simulated 0x4000
#define TUNEWRIGHT_UNIT_reference 0x8000
#define TUNEWRIGHT_UNIT_codegen 0x10000
#define TUNEWRIGHT_UNIT_sandbox 0x20000
#define TUNEWRIGHT_UNIT_tuning_logs 0x40000
#define TUNEWRIGHT_UNIT_orc 0x80000
#define TUNEWRIGHT_UNIT_nvrtc 0x100000
#define TUNEWRIGHT_UNIT_whole_networks 0x200000
#define TUNEWRIGHT_UNIT_plots 0x400000
#define TUNEWRIGHT_UNIT_onnx_operators 0x800000
#define TUNEWRIGHT_UNIT_onnx 0x1000000
#define TUNEWRIGHT_UNIT_remote 0x2000000
#define TUNEWRIGHT_UNIT_mpi 0x4000000

#if !defined(TUNEWRIGHT_SEPARATE_COMPILATION)
#define TUNEWRIGHT_DEFINES(unit) 1
#define TUNEWRIGHT_INLINE inline
#else
#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES 0
#endif
#define TUNEWRIGHT_DEFINES(unit) ((TUNEWRIGHT_COMPILES & TUNEWRIGHT_UNIT_##unit) != 0)
#define TUNEWRIGHT_INLINE
#endif
