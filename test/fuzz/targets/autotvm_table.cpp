// SPDX-License-Identifier: Apache-2.0
// A log of AutoTVM as a table: one of whole rows comes of it, or a `FormatError`.
#include "tunewright/data/autotvm_table.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/table.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  data::ImportedTable imported;
  if (fuzz::accepts<FormatError>(
          [&] { imported = data::read_autotvm_table(file.path(), {.file = "input", .device = "device"}); }))
    fuzz::check_table(imported);
  return 0;
}
