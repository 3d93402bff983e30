// SPDX-License-Identifier: Apache-2.0
// A result file of the Kernel Tuning Toolkit: a table of whole rows comes of it, or a `FormatError`.
#include "tunewright/data/ktt.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/table.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  data::ImportedTable imported;
  if (fuzz::accepts<FormatError>(
          [&] { imported = data::parse_ktt(fuzz::text(bytes, size), {.file = "input", .device = "device"}); }))
    fuzz::check_table(imported);
  return 0;
}
