// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/npz.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <sstream>

#include "support/small_dataset.hpp"

using namespace tunewright;

namespace {

std::uint64_t number(const std::string& bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

// The NPY file of an array, found through the archive's directory as readers do.
std::string member(const std::string& zip, const std::string& name) {
  const std::size_t end = zip.size() - 22;
  REQUIRE(number(zip, end, 4) == 0x06054b50);
  std::size_t at = number(zip, end + 16, 4);
  for (std::uint64_t left = number(zip, end + 10, 2); left > 0; --left) {
    REQUIRE(number(zip, at, 4) == 0x02014b50);
    const std::size_t length = number(zip, at + 28, 2);
    if (zip.substr(at + 46, length) == name + ".npy") {
      const std::size_t local = number(zip, at + 42, 4);
      REQUIRE(number(zip, local, 4) == 0x04034b50);
      return zip.substr(local + 30 + number(zip, local + 26, 2), number(zip, at + 24, 4));
    }
    at += 46 + length;
  }
  return {};
}

}  // namespace

TEST_CASE("an array is laid out as NPY 1.0 in a stored ZIP") {
  std::stringstream out;
  data::NpzWriter file(out);
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  file.add("x", std::span<const float>(values), {2, 3});
  file.add("words", std::vector<std::string>{"a", "\xc3\xa9t\xc3\xa9", "bad \xff"});
  file.finish();
  const std::string zip = out.str();
  const std::string npy = member(zip, "x");
  CHECK(npy.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header = number(npy, 8, 2);
  CHECK((10 + header) % 64 == 0);
  CHECK(npy.substr(10, 57) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,),");
  CHECK(std::memcmp(npy.data() + 10 + header, values.data(), 24) == 0);
  CHECK(npy.size() == 10 + header + 24);

  const std::string words = member(zip, "words");
  CHECK(words.find("'<U5'") != std::string::npos);
  const std::size_t text = 10 + number(words, 8, 2);
  CHECK(number(words, text, 4) == 'a');
  CHECK(number(words, text + 4, 4) == 0);
  CHECK(number(words, text + 20, 4) == 0xe9);
  CHECK(number(words, text + 40 + 16, 4) == 0xfffd);
}

TEST_CASE("checksums are those of ZIP") {
  std::stringstream out;
  data::NpzWriter file(out);
  const std::vector<std::uint8_t> values{1};
  file.add("x", std::span<const std::uint8_t>(values));
  file.finish();
  // zlib.crc32 in Python of the same 129 bytes put together there
  const std::string npy = member(out.str(), "x");
  CHECK(npy.size() == 129);
  CHECK(number(out.str(), 14, 4) == 0xc0a6b27bU);
}

TEST_CASE("a dataset becomes arrays") {
  data::Dataset data = small_dataset(2, 1, 3);
  data.cost_s[1] = std::numeric_limits<double>::infinity();
  data.fault[1] = Fault::RunTimeout;
  std::stringstream out;
  data::write_npz(out, data, {"number"});
  const std::string zip = out.str();
  const std::string features = member(zip, "features"), labels = member(zip, "labels"), fault = member(zip, "fault");
  CHECK(features.find("'shape': (6,1,)") != std::string::npos);
  float label[6];
  std::memcpy(label, labels.data() + labels.size() - sizeof label, sizeof label);
  CHECK(label[0] == 1);
  CHECK(label[1] == 0);
  CHECK(label[2] == doctest::Approx(1.0 / 3));
  CHECK(fault[fault.size() - 5] == static_cast<char>(Fault::RunTimeout));
  for (const char* name :
       {"offsets", "groups", "task", "target", "cost_s", "price_s", "task_names", "target_names", "feature_names"})
    CHECK(!member(zip, name).empty());

  std::stringstream again;
  data::write_npz(again, data, {"number"});
  CHECK(again.str() == zip);
}

TEST_CASE("shapes and names that do not fit are refused") {
  std::stringstream out;
  data::NpzWriter file(out);
  const std::vector<float> values(5);
  CHECK_THROWS_WITH_AS(file.add("x", std::span<const float>(values), {2, 3}), doctest::Contains("'x' has 5 values"),
                       std::invalid_argument);
  constexpr std::size_t half = std::size_t{1} << 32;  // of the bits of a product: two of them wrap around to 0
  CHECK_THROWS_WITH_AS(file.add("x", std::span<const float>(), {half, half}),
                       doctest::Contains("'x' of shape [4294967296, 4294967296] has more than 2^53 elements"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(data::write_npz(out, small_dataset(1, 1, 1), {"a", "b"}),
                       doctest::Contains("2 feature names for 1 columns"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(file.add(std::string(65532, 'x'), std::span<const float>(values)),
                       doctest::Contains("a name of 65532 bytes; give one of at most 65531"), std::invalid_argument);
  std::vector<std::size_t> flat(40000, 1);
  flat[0] = 5;
  CHECK_THROWS_WITH_AS(file.add("x", std::span<const float>(values), flat), doctest::Contains("40000 dimensions"),
                       std::invalid_argument);
  for (int i = 0; i < 65534; ++i) file.add("x", std::span<const float>(values));
  CHECK_THROWS_WITH_AS(file.add("x", std::span<const float>(values)), doctest::Contains("has 65534 arrays"),
                       std::invalid_argument);
}

TEST_CASE("what is no character becomes one that says so") {
  std::stringstream out;
  data::NpzWriter file(out);
  const std::vector<std::string> none{"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80",
                                      "\xc0\x80",     "\xe0\x9f\xbf",     "\x80\x80\x81\x81\x81"};
  file.add("none", none);
  const std::vector<std::string> some{"\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xc2\x80"};
  file.add("some", some);
  file.finish();
  const auto code = [&](const std::string& name, std::size_t from_end) {
    const std::string npy = member(out.str(), name);
    return number(npy, npy.size() - 4 * from_end, 4);
  };
  const std::string bytes = member(out.str(), "none");
  const std::size_t width = (bytes.size() - 10 - number(bytes, 8, 2)) / 4 / none.size();
  for (std::size_t i = 1; i <= none.size(); ++i) CHECK(code("none", i * width) == 0xfffd);
  CHECK(code("some", 3) == 0xd7ff);
  CHECK(code("some", 2) == 0x10ffff);
  CHECK(code("some", 1) == 0x80);
}
