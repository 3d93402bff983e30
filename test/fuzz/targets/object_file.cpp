// SPDX-License-Identifier: Apache-2.0
// The object file of a kernel, which is linked into the process and never called, and one whose symbol gets another
// name: it is found under that one, and gets the first one back.
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/object_loader.hpp"

using namespace tunewright;

namespace {

void link(const std::vector<char>& object, const std::string& symbol) {
  (void)fuzz::accepts<std::runtime_error>(
      [&] { (void)fuzz::accepts<std::invalid_argument>([&] { (void)codegen::ObjectCode(object, symbol); }); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::vector<char> object(bytes, bytes + size);
  link(object, "kernel");
  std::vector<char> renamed;
  if (!fuzz::accepts<std::invalid_argument>(
          [&] { renamed = codegen::with_symbol_renamed(object, "kernel", "another"); }))
    return 0;
  link(renamed, "another");
  std::vector<char> back = codegen::with_symbol_renamed(renamed, "another", "kernel");
  fuzz::require(back.size() > renamed.size() && renamed.size() > object.size(), "a new name is appended");
  return 0;
}
