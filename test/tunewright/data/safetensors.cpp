// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/safetensors.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"

using namespace tunewright;
using data::Tensor;
using data::TensorType;

namespace {

std::string file_of(const std::string& header, const std::string& bytes) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return out + header + bytes;
}
data::TensorFile read(const std::string& text) {
  std::istringstream in(text);
  return data::read_safetensors(in);
}
std::string why_refused(const std::string& text) {
  return test::refusal<std::runtime_error>([&] { (void)read(text); });
}
std::string written(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata = {}) {
  std::ostringstream out;
  data::write_safetensors(out, tensors, metadata);
  return out.str();
}

}  // namespace

TEST_CASE("a file byte by byte") {
  // 1.0F is 0x3f800000; the header, 54 bytes, is padded with spaces to 56.
  const std::string text = written({Tensor::of<float>("w", {1.0F})});
  CHECK(text == file_of("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ",
                        std::string("\x00\x00\x80\x3f", 4)));
}

TEST_CASE("what is written is read: types, shapes, metadata") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> floats{1.5F, -0.0F, infinity, 1e-40F, 3, 4};
  const std::vector<Tensor> tensors{
      Tensor::of<std::uint16_t>("bits", {1, 65535}), Tensor::of<float>("matrix", {2, 3}, floats),
      Tensor::of<double>("number", {}, std::vector<double>{2.5}), Tensor::of<std::int64_t>("empty", {}),
      Tensor::of<std::uint64_t>("big", {0xffffffffffffffffULL})};
  const std::map<std::string, std::string> metadata{{"feature_schema", "7"}, {"q\"uote\\", "line\nä\x01"}};
  const data::TensorFile file = read(written(tensors, metadata));
  CHECK(file.metadata == metadata);
  CHECK(file.tensors.size() == 5);
  for (const Tensor& tensor : tensors) CHECK(file.at(tensor.name) == tensor);
  CHECK(file.at("matrix").values<float>() == floats);
  CHECK(file.at("number").shape.empty());
  CHECK(file.at("number").values<double>() == std::vector<double>{2.5});
  CHECK(file.at("empty").values<std::int64_t>().empty());
  CHECK(file.at("bits").values<std::uint16_t>() == std::vector<std::uint16_t>{1, 65535});
  CHECK(file.tensors.back().name == "bits");  // eight bytes an element first, two last
  CHECK_THROWS_WITH_AS((void)file.at("bits").values<float>(), "tensor 'bits' holds U16, not F32", std::runtime_error);
  CHECK_THROWS_WITH_AS((void)file.at("bias"), "there is no tensor 'bias'", std::runtime_error);
  CHECK(read(written({})).tensors.empty());
}

TEST_CASE("files of others: any order, escapes, types without a C++ counterpart") {
  const auto file =
      read(file_of("{ \"\\u00e4\\ud83d\\ude00\" : {\"data_offsets\":[2,4], \"shape\":[ 1 ], \"dtype\":\"BF16\"},"
                   "\"a\":{\"dtype\":\"BOOL\",\"shape\":[2,1],\"data_offsets\":[0,2]}}\n  ",
                   std::string("\x01\0ab", 4)));
  CHECK(file.tensors[0].name == "a");
  CHECK(file.tensors[0].type == TensorType::Bool);
  CHECK(file.tensors[1].name == "ä😀");
  CHECK(file.tensors[1].type == TensorType::BF16);
}

TEST_CASE("every malformed file is refused with the reason") {
  const std::string w = "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
  const auto v = [](const std::string& offsets, const std::string& shape = "[1]") {
    return "\"v\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string four = "1234", eight = "12345678";
  const auto refused = [](const std::string& text, const char* reason) {
    CHECK(why_refused(text) == std::string("not a sound safetensors file: ") + reason);
  };
  refused("", "the data end 8 bytes before the end of the length of the header");
  refused("1234", "the data end 4 bytes before the end of the length of the header");
  refused(std::string("\x10\0\0\0\0\0\0\0{}", 10), "the data end 14 bytes before the end of the header");
  refused(std::string(8, '\xff'), "the header claims 18446744073709551615 bytes, more than 100000000");
  refused(file_of("", ""), "the header does not begin with '{'");
  refused(file_of("[]", ""), "the header does not begin with '{'");
  refused(file_of("{" + w + "}", "123"), "the data end 1 bytes before the end of tensor 'w'");
  refused(file_of("{" + w + "}", "12345"), "there are bytes after the last tensor");
  refused(file_of("{" + w + "," + w + "}", four), "the header names 'w' twice");
  refused(file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", ""), "the metadata name 'a' twice");
  refused(file_of("{\"__metadata__\":{\"a\":1}}", ""), "header, column 22: expected '\"'");
  refused(file_of("{" + w + "," + v("[2,6]") + "}", eight),
          "tensor 'v' overlaps the one before: it begins at byte 2, before byte 4");
  refused(file_of("{" + w + "," + v("[0,4]") + "}", eight),
          "tensor 'w' overlaps the one before: it begins at byte 0, before byte 4");
  refused(file_of("{" + w + "," + v("[8,12]") + "}", eight),
          "bytes 4 to 8 belong to no tensor; offsets are out of range");
  refused(file_of("{" + v("[4,0]") + "}", four), "tensor 'v' begins at byte 4 and ends at byte 0");
  refused(file_of("{" + v("[0,8]") + "}", eight), "tensor 'v' has 8 bytes where its shape asks for 4");
  refused(file_of("{" + v("[0,4]", "[4294967296,4294967296]") + "}", four),
          "the shape of tensor 'v' is beyond 64 bits");
  refused(file_of("{" + v("[0,18446744073709551616]") + "}", four), "header, column 51: the integer is too large");
  refused(file_of("{" + v("[0]") + "}", four), "tensor 'v' has 1 offsets, not 2");
  refused(file_of("{" + v("[-1,3]") + "}", four), "header, column 49: expected an integer that is not negative");
  refused(file_of("{\"v\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", four),
          "tensor 'v' has the unknown dtype 'F31'");
  refused(file_of("{\"v\":{\"shape\":[],\"data_offsets\":[0,4]}}", four), "tensor 'v' has no dtype");
  refused(file_of("{\"v\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", four), "tensor 'v' gives 'dtype' twice");
  refused(file_of("{\"v\":{\"strides\":[1]}}", four), "tensor 'v' has the unknown key 'strides'");
  refused(file_of("{" + w + "}}", four), "header, column 55: expected the end of the record");
  refused(file_of("{\"w", ""), "header, column 4: expected the end of a string, but the text ends");
  refused(file_of("{\"\\x\":", ""), "header, column 5: unknown escape");
  refused(file_of("{\"\\ud800\":", ""), "header, column 9: expected the second half of a surrogate pair");
}

TEST_CASE("a string of a header may hold escapes, but no control character as it is") {
  constexpr const char* rest = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  CHECK(read(file_of(std::string("{\"a\\n\":") + rest, "")).tensors[0].name == "a\n");
  CHECK(why_refused(file_of(std::string("{\"a\n\":") + rest, "")) ==
        "not a sound safetensors file: a string of the header holds a control character");
}

TEST_CASE("no prefix of a file passes for the file") {
  const std::string text = written({Tensor::of<float>("w", {1, 2, 3})}, {{"a", "b"}});
  for (std::size_t length = 0; length < text.size(); ++length)
    CHECK(why_refused(text.substr(0, length)).substr(0, 12) == "not a sound ");
}

TEST_CASE("what cannot be a file is not written") {
  const Tensor w = Tensor::of<float>("w", {1});
  CHECK_THROWS_WITH_AS(written({w, w}), "data::write_safetensors: the name 'w' is taken; give each tensor its own",
                       std::invalid_argument);
  CHECK_THROWS_AS(written({Tensor::of<float>("__metadata__", {1})}), std::invalid_argument);
  CHECK_THROWS_AS(written({Tensor{"w", TensorType::F32, {2}, {}}}), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)Tensor::of<float>("w", {2, 2}, std::vector<float>{1, 2, 3}),
                       "data::Tensor 'w': 3 values for a shape of 4", std::invalid_argument);
  constexpr std::size_t half = std::size_t{1} << 32;  // of the bits of a product: two of them wrap around to 0
  CHECK_THROWS_WITH_AS((void)Tensor::of<float>("w", {half, half}, std::vector<float>{}),
                       doctest::Contains("data::Tensor 'w' of shape [4294967296, 4294967296] has more than 2^53"),
                       std::invalid_argument);
  std::ostringstream broken;
  broken.setstate(std::ios::badbit);
  CHECK_THROWS_AS(data::write_safetensors(broken, std::vector<Tensor>{w}), std::runtime_error);
}
