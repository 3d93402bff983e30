// SPDX-License-Identifier: Apache-2.0
// Foreign names and texts in an NPZ archive, which is written and never read: the lines of the input become an array of
// texts, the first of them its name. Headers of the archive must agree with each other, and texts be Unicode.
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/data/npz.hpp"

using namespace tunewright;

namespace {

std::size_t number(const std::string& archive, std::size_t at, std::size_t bytes) {
  fuzz::require(at + bytes <= archive.size(), "numbers stand inside of the archive");
  std::size_t value = 0;
  std::memcpy(&value, archive.data() + at, bytes);
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::vector<std::string> lines;
  std::istringstream in(std::string(fuzz::text(bytes, size)));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) return 0;
  std::ostringstream out;
  data::NpzWriter file(out);
  if (!fuzz::accepts<std::invalid_argument>([&] { file.add(lines.front(), lines); })) return 0;
  file.finish();

  const std::string archive = out.str();
  fuzz::require(archive.size() > 22 && number(archive, archive.size() - 22, 4) == 0x06054b50, "the archive ends");
  fuzz::require(number(archive, archive.size() - 12, 2) == 1, "there is one member");
  const std::size_t directory = number(archive, archive.size() - 6, 4), name_bytes = number(archive, 26, 2);
  fuzz::require(number(archive, directory, 4) == 0x02014b50, "the directory is where the end says");
  fuzz::require(archive.substr(30, name_bytes) == lines.front() + ".npy", "the member has its name");
  const std::size_t npy = 30 + name_bytes, data_at = npy + 10 + number(archive, npy + 8, 2);
  fuzz::require(npy + number(archive, 18, 4) == directory, "the member ends where the directory begins");
  fuzz::require((directory - data_at) % (4 * lines.size()) == 0, "texts have one length");
  for (std::size_t at = data_at; at < directory; at += 4) {
    const std::size_t code = number(archive, at, 4);
    fuzz::require(code < 0xd800 || (code > 0xdfff && code <= 0x10ffff), "texts are Unicode");
  }
  return 0;
}
