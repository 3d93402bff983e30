// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/export.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/c_program.hpp"
#include "support/emulated_program.hpp"
#include "support/file_text.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/compile_kernels.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/layers.hpp"
#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/program/operators/elementwise.hpp"

namespace {

using namespace tunewright;

/// A network with random values and schedules that nobody measured.
struct Example {
  networks::Network network;
  networks::Partition partition;
  std::vector<schedule::Schedule> schedules;
  reference::Tensors values;

  explicit Example(networks::Network of, const Target& target = host_target().with_threads(2))
      : network(std::move(of)),
        partition(networks::partition(network, target)),
        schedules(networks::default_schedules(partition.tasks, {.candidates = 2})),
        values(networks::random_values(network, Rng(1))) {}

  networks::ExportedNetwork export_to(const std::string& folder, const std::string& name = "net") const {
    return networks::export_network(network, partition, networks::compile_kernels(network, partition, schedules),
                                    values, name, folder);
  }
};

networks::Network image_network() { return networks::mobilenet_v2({.image_size = 32, .classes = 10, .width = 0.125}); }
networks::Network text_network() {
  return networks::bert({.batch = 2,
                         .tokens = 5,
                         .shape = {.layers = 1, .hidden = 16, .heads = 2, .feed_forward = 24},
                         .vocabulary = 30,
                         .positions = 8});
}

void write_array(const std::string& path, const reference::Array& array) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(array.data()), static_cast<std::streamsize>(array.size_in_bytes()));
}
bool holds_array(const std::string& path, const reference::Array& array) {
  const std::string text = support::file_text(path);
  return text.size() == array.size_in_bytes() && std::memcmp(text.data(), array.data(), text.size()) == 0;
}

/// Loads weights from net.weights, reads the inputs from the file inputs, and writes what three inferences compute to
/// the file outputs: by the calling thread, by a team, and by a second network with the same weights.
std::string program_for(const std::string& input, const std::string& output) {
  std::string text = R"(
#include <stdio.h>
#include "net.h"
#include "tunewright_runtime.h"

int main(int argc, char** argv) {
  struct net_weights* weights;
  struct net *network, *second;
  FILE* in = fopen("inputs", "rb");
  FILE* out = fopen("outputs", "wb");
  int error = net_load(argc > 1 ? argv[1] : "net.weights", &weights);
  if (error != net_ok) {
    fprintf(stderr, "%s\n", net_error_text(error));
    return 10 + error;
  }
  if (in == NULL || out == NULL || net_create(weights, &network) != 0 || net_create(weights, &second) != 0) return 1;
  if (fread(net_input_INPUT(network), sizeof *net_input_INPUT(network), net_input_INPUT_elements, in) !=
      net_input_INPUT_elements)
    return 2;
  for (int i = 0; i < net_input_INPUT_elements; ++i) net_input_INPUT(second)[i] = net_input_INPUT(network)[i];
  struct tunewright_team* team = tunewright_team_create(net_threads, NULL, 0);
  if (team == NULL) return 3;
  for (int i = 0; i < 3; ++i) {
    struct net* used = i < 2 ? network : second;
    error = net_run(used, i == 0 ? NULL : tunewright_team_runtime(team));
    if (error != net_ok) return 10 + error;
    fwrite(net_output_OUTPUT(used), sizeof(float), net_output_OUTPUT_elements, out);
  }
  tunewright_team_destroy(team);
  net_destroy(network);
  net_destroy(second);
  net_unload(weights);
  fclose(in);
  return fclose(out) == 0 ? 0 : 4;
}
)";
  for (const auto& [word, name] : {std::pair{std::string("INPUT"), input}, {std::string("OUTPUT"), output}}) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.replace(at, word.size(), name);
  }
  return text;
}

reference::Array three_times(const reference::Array& array) {
  reference::Array all(array.type(), {3, static_cast<std::int64_t>(array.size())});
  for (std::size_t i = 0; i < 3 * array.size(); ++i) all.set(i, array.get(i % array.size()));
  return all;
}

/// Compiles main.c with what was exported beside it.
bool compiles(const test::CProgram& folder, const std::string& compiler = test::c_compiler) {
  const std::string compile = compiler + " -Wall -Wextra -Wpedantic -Werror -O1 -pthread ";
  return test::runs_in(folder.path(), compile + "-std=c11 -c tunewright_runtime.c") &&
         test::runs_in(folder.path(), compile + "-std=c99 -o program main.c net.c tunewright_runtime.o libnet.a -lm");
}
int result_of(const test::CProgram& folder, const std::string& arguments = "", const std::string& emulator = "") {
  const int status =
      std::system(("cd '" + folder.path() + "' && " + emulator + "./program " + arguments + " 2> said").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("an exported network computes in a C program what it computes here, bit by bit") {
  const Example e(image_network());
  const test::CProgram folder;
  const networks::ExportedNetwork files = e.export_to(folder.path());
  CHECK(files.symbol == "net");
  CHECK(files.weights.filename() == "net.weights");
  write_array(folder.file("inputs"), e.values[networks::inputs(e.network)[0]]);
  folder.write_main(program_for("image", "bias_add"));
  REQUIRE(compiles(folder));
  REQUIRE(result_of(folder) == 0);
  networks::CompiledNetwork here(e.network, e.partition, e.schedules, e.values);
  CHECK(holds_array(folder.file("outputs"), three_times(here.run(e.values)[0])));

  SUBCASE("weights that are not this network's are refused, and so are damaged ones") {
    const std::string good = support::file_text(files.weights);
    REQUIRE(good.size() > 1000);
    const auto refused = [&](const std::string& content) {
      std::ofstream(folder.file("bad"), std::ios::binary) << content;
      const int result = result_of(folder, "bad") - 10;
      CHECK(folder.said().size() > 10);
      return result;
    };
    enum { cannot_read = 1, no_weights, other_network, truncated, damaged };
    CHECK(result_of(folder, "missing") - 10 == cannot_read);
    CHECK(result_of(folder, ".") - 10 == cannot_read);  // a folder
    CHECK(refused("") == no_weights);
    CHECK(refused("#include <stdio.h>\n") == no_weights);
    CHECK(refused(std::string(1000, '\0')) == no_weights);
    std::string changed = good;
    changed[8] = 2;  // the version
    CHECK(refused(changed) == no_weights);
    CHECK(refused(good.substr(0, 40)) == truncated);
    CHECK(refused(good.substr(0, 64)) == truncated);
    CHECK(refused(good.substr(0, good.size() - 1)) == truncated);
    for (const std::size_t at : {std::size_t{33}, std::size_t{64}, good.size() / 2, good.size() - 1}) {
      changed = good;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      CHECK(refused(changed) == damaged);
    }
    CHECK(refused(good + "x") == damaged);
    const test::CProgram other;
    CHECK(refused(support::file_text(Example(text_network()).export_to(other.path()).weights)) == other_network);
  }

  SUBCASE("other weights of the same network are taken") {
    Example trained = e;
    trained.values = networks::random_values(e.network, Rng(2));
    const test::CProgram other;
    const std::filesystem::path weights = trained.export_to(other.path(), "other").weights;
    REQUIRE(result_of(folder, weights.string()) == 0);
    trained.values[networks::inputs(e.network)[0]] = e.values[networks::inputs(e.network)[0]];
    networks::CompiledNetwork compiled(e.network, e.partition, e.schedules, trained.values);
    CHECK(holds_array(folder.file("outputs"), three_times(compiled.run(trained.values)[0])));
  }
}

TEST_CASE("exported lookups pick rows and refuse those that there are not") {
  const networks::Network words = [] {
    networks::LayerBuilder layers;
    const auto rows = layers.embedding("words", "ids", 4, 5, 32);
    return layers.finish("words", {layers.dense(rows.rows, "dense", 7, networks::Activation::Relu)});
  }();
  Example e(words);
  const test::CProgram folder;
  e.export_to(folder.path());
  reference::Array& ids = e.values[networks::inputs(words)[0]];
  for (std::size_t i = 0; i < 4; ++i) ids.set(i, static_cast<double>(4 - i));
  write_array(folder.file("inputs"), ids);
  folder.write_main(program_for("ids", "relu"));
  REQUIRE(compiles(folder));
  REQUIRE(result_of(folder) == 0);
  networks::CompiledNetwork here(words, e.partition, e.schedules, e.values);
  CHECK(holds_array(folder.file("outputs"), three_times(here.run(e.values)[0])));
  for (const double row : {5.0, -1.0}) {
    ids.set(2, row);
    write_array(folder.file("inputs"), ids);
    CHECK(result_of(folder) == 10 + 8);
  }
  // The number of rows of a table may be one that no row numbers reach.
  std::string source = support::file_text(folder.file("net.c"));
  const std::size_t rows = source.find(", 5, 128, network->data + ");
  REQUIRE(rows != std::string::npos);
  source.replace(rows + 2, 1, "2147483648");
  std::ofstream(folder.file("net.c")) << source;
  CHECK(compiles(folder));
}

TEST_CASE("a transformer's C compiles without a warning as C and as C++, and has its inputs and outputs") {
  const test::CProgram folder;
  const networks::ExportedNetwork files = Example(text_network()).export_to(folder.path(), "bert tiny");
  CHECK(files.header.filename() == "bert_tiny.h");
  folder.write_main(R"(
#include "bert_tiny.h"
int main(void) {
  struct bert_tiny_weights* weights;
  struct bert_tiny* network;
  if (bert_tiny_load("bert_tiny.weights", &weights) != 0 || bert_tiny_create(weights, &network) != 0) return 1;
  for (int i = 0; i < bert_tiny_input_input_ids_elements; ++i) bert_tiny_input_input_ids(network)[i] = i;
  for (int i = 0; i < bert_tiny_input_token_type_ids_elements; ++i) bert_tiny_input_token_type_ids(network)[i] = 0;
  if (bert_tiny_run(network, &tunewright_serial_runtime) != bert_tiny_ok) return 2;
  float sum = 0;
  for (int i = 0; i < bert_tiny_output_layer_norm_elements; ++i)
    sum += bert_tiny_output_layer_norm(network)[i] * bert_tiny_output_layer_norm(network)[i];
  for (int i = 0; i < bert_tiny_output_tanh_elements; ++i)
    if (!(bert_tiny_output_tanh(network)[i] >= -1 && bert_tiny_output_tanh(network)[i] <= 1)) return 3;
  bert_tiny_destroy(network);
  bert_tiny_unload(weights);
  return sum > 0 ? 0 : 4;
}
)");
  for (const char* language : {"-std=c99", "-x c++"}) {
    CHECK_MESSAGE(folder.compiles("bert_tiny.c -x none libbert_tiny.a -lm", language), folder.said());
    CHECK_MESSAGE(result_of(folder) == 0, folder.said());
  }
}

TEST_CASE("a network for 64-bit ARM computes the same under an emulator") {
  if (!test::can_emulate_aarch64()) {
    MESSAGE(test::why_not_emulated);
    return;
  }
  const Example e(image_network(), arm_target("Raspberry Pi 4"));
  const test::CProgram folder;
  e.export_to(folder.path());
  write_array(folder.file("inputs"), e.values[networks::inputs(e.network)[0]]);
  folder.write_main(program_for("image", "bias_add"));
  REQUIRE(compiles(folder, "aarch64-linux-gnu-gcc -static"));
  REQUIRE(result_of(folder, "", "qemu-aarch64 ") == 0);
  const std::string bytes = support::file_text(folder.file("outputs"));
  const reference::Array expected = networks::evaluate(e.network, e.values)[e.network.outputs[0]];
  REQUIRE(bytes.size() == 3 * expected.size_in_bytes());
  reference::Array last(expected.type(), expected.shape());
  std::memcpy(last.data(), bytes.data() + 2 * expected.size_in_bytes(), expected.size_in_bytes());
  CHECK_MESSAGE(reference::compare(last, expected, {1e-4, 0}).passed,
                reference::compare(last, expected, {1e-4, 0}).text());
}

TEST_CASE("tensors that share a name are numbered, and names that C does not take are changed") {
  networks::LayerBuilder layers;
  const auto a = layers.graph().input("my image", {2, 4});
  const auto b = layers.graph().input("my image_elements", {2, 4});
  const auto c = layers.graph().input("my/image", {2, 4});
  const auto sum = program::operators::add(layers.graph(), program::operators::add(layers.graph(), a, b), c);
  networks::Network network = layers.finish("three */ inputs", {sum, program::operators::relu(layers.graph(), sum)});
  bool named = false;
  SUBCASE("outputs that have no name have that of their operator") {}
  SUBCASE("outputs that have names have these") {
    named = true;
    network.output_names = {"class", "class"};
  }
  const Example e(network);
  const test::CProgram folder;
  e.export_to(folder.path());
  const std::string names =
      named ? "#define net_output_add net_output_class\n#define net_output_relu net_output_class_2\n" : "";
  folder.write_main("#include \"net.h\"\n" + names + R"(
int main(void) {
  struct net_weights* weights;
  struct net* network;
  if (net_load("net.weights", &weights) != 0 || net_create(weights, &network) != 0) return 1;
  for (int i = 0; i < 8; ++i) {
    net_input_my_image(network)[i] = (float)-i;
    net_input_my_image_elements_2(network)[i] = 2;
    net_input_my_image_2(network)[i] = 1;
  }
  if (net_run(network, NULL) != 0) return 2;
  for (int i = 0; i < 8; ++i)
    if (net_output_add(network)[i] != 3 - i || net_output_relu(network)[i] != (i < 3 ? 3 - i : 0)) return 3;
  net_destroy(network);
  net_unload(weights);
  return 0;
}
)");
  REQUIRE_MESSAGE(folder.compiles("net.c libnet.a -lm", "-std=c99"), folder.said());
  CHECK(result_of(folder) == 0);
}

TEST_CASE("tensors of more elements than an int counts are declared as C99 allows it") {
  networks::LayerBuilder layers;
  const auto x = layers.graph().input("x", {65536, 32768}, program::ScalarType::Int8);
  const auto y = layers.graph().input("y", {2}, program::ScalarType::Int8);
  const networks::Network network = layers.finish("large", {program::operators::relu(layers.graph(), x, "large"),
                                                            program::operators::relu(layers.graph(), y, "small")});
  const networks::Partition partition = networks::partition(network, host_target().with_threads(1));
  const std::vector<codegen::Kernel> kernels =
      networks::compile_kernels(network, partition, networks::default_schedules(partition.tasks, {.candidates = 1}));
  const test::CProgram folder;
  networks::export_network(network, partition, kernels, reference::Tensors(network.graph->size()), "net",
                           folder.path());
  folder.write_main(R"(
#include "net.h"
int main(void) {
  int sum = 0;
  for (int i = 0; i < net_output_small_elements; ++i) sum += i;
  return sum != 1 || net_input_x_elements != INT64_C(2147483648) || net_output_large_elements != INT64_C(2147483648);
}
)");
  for (const char* language : {"-std=c99", "-x c++"}) {
    CHECK_MESSAGE(folder.compiles("net.c -x none libnet.a -lm", language), folder.said());
    CHECK(folder.succeeds());
  }
}

TEST_CASE("networks whose names differ only in case are both declared where both are included") {
  networks::LayerBuilder layers;
  const auto x = layers.graph().input("x", {8});
  const Example e(layers.finish("small", {program::operators::relu(layers.graph(), x)}));
  const test::CProgram folder;
  e.export_to(folder.path(), "net");
  e.export_to(folder.path(), "Net");
  folder.write_main(R"(
#include "net.h"
#include "Net.h"
int main(void) { return net_ok != 0 || Net_ok != 0 || net_input_x_elements != 8 || Net_input_x_elements != 8; }
)");
  REQUIRE_MESSAGE(folder.compiles("net.c Net.c libnet.a libNet.a -lm", "-std=c99"), folder.said());
  CHECK(folder.succeeds());
}

TEST_CASE("networks of one program that would declare one struct or enum are refused, with both named") {
  networks::LayerBuilder layers;
  const auto x = layers.graph().input("x", {8});
  const Example e(layers.finish("small", {program::operators::relu(layers.graph(), x)}));
  for (const std::string longer : {"net_error", "net_weights"}) {
    CAPTURE(longer);
    for (const bool turned : {false, true}) {
      const std::string first = turned ? longer : "net", second = turned ? "net" : longer;
      const test::CProgram folder;
      const networks::ExportedNetwork files = e.export_to(folder.path(), first);
      const std::string said = test::refusal([&] { e.export_to(folder.path(), second); });
      CHECK_MESSAGE(said.find("the exports '" + second + "' and '" + first + "', which has '" + files.header.string() +
                              "', would both declare the tag " + longer + "; export one of them under another name") !=
                        std::string::npos,
                    said);
      CHECK_FALSE(std::filesystem::exists(folder.file(second + ".c")));
      CHECK_NOTHROW(e.export_to(folder.path(), first));
    }
  }
  // A function may have the name of a tag, and a tag that of a function.
  const test::CProgram folder;
  e.export_to(folder.path(), "net");
  e.export_to(folder.path(), "net_error_text");
  const codegen::Kernel kernel = networks::compile_kernels(e.network, e.partition, e.schedules).at(0);
  codegen::export_kernel(kernel, "net_weights", folder.path());
  folder.write_main(R"(
#include "net.h"
#include "net_error_text.h"
#include "net_weights.h"
int main(void) {
  struct net_weights* weights = NULL;
  struct net_error_text* network = NULL;
  return weights != NULL || network != NULL || net_weights_buffer_count < 2 || net_error_text(net_ok)[0] != 'n';
}
)");
  for (const char* language : {"-std=c99", "-x c++"}) {
    REQUIRE_MESSAGE(folder.compiles("net.c -x none libnet.a -lm", language), folder.said());
    CHECK(folder.succeeds());
  }
}

TEST_CASE("what cannot be exported is named") {
  Example e(image_network());
  const test::CProgram folder;
  std::vector<codegen::Kernel> kernels = networks::compile_kernels(e.network, e.partition, e.schedules);
  const auto refused = [&] {
    return test::refusal(
        [&] { networks::export_network(e.network, e.partition, kernels, e.values, "net", folder.path()); });
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  const reference::Tensors values = e.values;
  e.values[1] = reference::Array();
  CHECK(contains(refused(), "no array, or one of another type or shape, was given for tensor 1"));
  e.values = values;
  const codegen::Kernel first = kernels[0];
  kernels[0] = kernels[1];
  CHECK(contains(refused(), "kernel 0 of network 'mobilenet_v2' is not one of task"));
  kernels[0] = first;
  kernels[0].object = nullptr;
  CHECK(contains(refused(), "has no object file; give what networks::compile_kernels returns"));
  kernels[0] = first;
  kernels.pop_back();
  CHECK(contains(refused(), "kernels were given for the"));
  kernels.clear();
  CHECK(contains(refused(), "0 kernels were given for the"));
  kernels = networks::compile_kernels(e.network, e.partition, e.schedules);
  // A function of the network, what is no more than a number, and one of its kernels.
  for (const std::string name : {"net_load", "net_no_weights", "net_kernel0"}) {
    const codegen::ExportedKernel files = codegen::export_kernel(kernels[0], name, folder.path());
    CHECK(contains(refused(), "the exports 'net' and '" + name + "', which has '" + files.header.string() +
                                  "', would both declare " + name + "; export one of them under another name"));
    CHECK_FALSE(std::filesystem::exists(folder.file("net.c")));
    std::filesystem::remove(files.header);
  }
  const test::CProgram other;
  networks::export_network(e.network, e.partition, kernels, e.values, "net", other.path());
  CHECK(contains(test::refusal([&] { codegen::export_kernel(kernels[0], "net_kernel0", other.path()); }),
                 "the exports 'net_kernel0' and 'net', which has '" + other.file("net.h") +
                     "', would both declare net_kernel0; export one of them under another name"));
  CHECK_NOTHROW(codegen::export_kernel(kernels[0], "net_kernel", other.path()));
  // Neither replaces the header of the other; of the same kind one may be written anew.
  CHECK(contains(test::refusal([&] { codegen::export_kernel(kernels[0], "net", other.path()); }),
                 "'" + other.file("net.h") +
                     "' is the header of a network 'net', which the export of a kernel of that name would replace; "
                     "export one of them under another name"));
  CHECK_FALSE(std::filesystem::exists(other.file("net.o")));
  CHECK_NOTHROW(networks::export_network(e.network, e.partition, kernels, e.values, "net", other.path()));
  const codegen::ExportedKernel alone = codegen::export_kernel(kernels[0], "net", folder.path());
  CHECK(contains(refused(), "'" + alone.header.string() +
                                "' is the header of a kernel 'net', which the export of a network of that name would "
                                "replace; export one of them under another name"));
  CHECK_FALSE(std::filesystem::exists(folder.file("net.c")));
  CHECK_NOTHROW(codegen::export_kernel(kernels[0], "net", folder.path()));
  e.network = text_network();
  CHECK(contains(refused(), "the partition is not one of network 'bert_base'"));
  std::ofstream(folder.file("file")) << "not a folder";
  const Example whole(image_network());
  CHECK_THROWS_AS(whole.export_to(folder.file("file")), std::runtime_error);
}
