// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/export.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/c_program.hpp"
#include "support/nest_builder.hpp"
#include "support/refusal.hpp"
#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/exported_names.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;

/// y = exp(A W) with W packed in columns of 4, of which the last is not full, and a workspace for A W.
program::ComputeGraph graph() {
  program::ComputeGraph g;
  const auto a = g.input("A", {3, 2});
  const auto w = g.constant("W", {2, 6});
  const auto product = g.reduce("product", {{"i", 3}, {"j", 6}}, {{"k", 2}}, program::Combiner::Sum,
                                [&](auto i, auto r) { return a(i[0], r[0]) * w(r[0], i[1]); });
  g.compute("y", {{"i", 3}, {"j", 6}}, [&](auto i) {
    return cast(exp(cast(product(i[0], i[1]), program::ScalarType::Float64)), program::ScalarType::Float32);
  });
  return g;
}

codegen::Kernel kernel() {
  loops::LoopNest nest = test::plain_nest(graph(), LoopKind::Vectorized, LoopKind::Parallel);
  nest.buffers[1].packing = {{1, 4, 2}, {0, 1, 2}, {1, 1, 4}};
  Target target;
  target.threads = 2;
  return codegen::compile(nest, target);
}

TEST_CASE("a plain C program links the object file and calls the kernel") {
  const test::CProgram folder;
  const codegen::ExportedKernel files =
      codegen::export_kernel(kernel(), "dense exp", folder.file("kernels"), "dense layer");
  CHECK(files.symbol == "dense_exp");
  CHECK(files.header.filename() == "dense_exp.h");
  folder.write_main(R"(
#include "kernels/dense_exp.h"
#include <math.h>
#include <stdio.h>

static _Alignas(64) float A[3][2] = {{1, 0}, {0, 1}, {1, -1}};
static _Alignas(64) float y[3][6];
static _Alignas(64) char packed[1024], workspace[1024];
static int parts = 0;

static void in_parts(const struct tunewright_runtime* self, int64_t count, void (*body)(void*, int64_t, int64_t), void* context) {
  for (int64_t i = 0; i < count; ++i, ++*(int*)self->state) body(context, i, i + 1);
}

int main(void) {
  const float W[2][6] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}};
  void* buffers[dense_exp_buffer_count] = {0};
  buffers[dense_exp_A] = A;
  buffers[dense_exp_W] = packed;
  buffers[dense_exp_y] = y;
  buffers[dense_exp_product] = workspace;
  if (dense_exp_buffer_bytes[dense_exp_W] != 2 * 2 * 4 * sizeof(float)) return 1;
  dense_exp_pack_W(&W[0][0], (float*)packed);
  const struct tunewright_runtime runtime = {in_parts, &parts};
  const struct tunewright_runtime* runtimes[] = {&tunewright_serial_runtime, &runtime};
  for (int r = 0; r < 2; ++r) {
    dense_exp(buffers, runtimes[r]);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 6; ++j) {
        const double want = exp(A[i][0] * W[0][j] + A[i][1] * W[1][j]);
        if (fabs(y[i][j] - want) > 1e-5 * want) return 2;
        y[i][j] = 0;
      }
    }
  }
  return parts > 0 ? 0 : 3;
}
)");
  REQUIRE(folder.compiles(files.object.string() + " -lm"));
  CHECK(folder.succeeds());
}

TEST_CASE("the header of a kernel with tile registers says who asks for them, and others do not") {
  const test::CProgram folder;
  const auto header = [&](bool tiles) {
    codegen::Kernel compiled = kernel();
    CHECK_FALSE(compiled.uses_tile_registers);
    compiled.uses_tile_registers = tiles;
    std::ifstream file(codegen::export_kernel(compiled, "tiles", folder.path()).header);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(header(false).find("tile_registers") == std::string::npos);
  CHECK(header(true).find("call tunewright_permit_tile_registers()") != std::string::npos);
  // The answer is that of the system: the same as to this process.
  folder.write_main(
      "#include \"tiles.h\"\nint main(void) { return "
      "tunewright_permit_tile_registers() == 0 ? 0 : 1; }\n");
  REQUIRE(folder.compiles());
  CHECK(folder.succeeds() == host::permit_tile_registers());
}

TEST_CASE("a C program runs a kernel with tile registers where the processor has them") {
  const Target host = host_target();
  if (!host.has(TensorUnit::AmxInt8)) {
    MESSAGE("skipped: no AMX, or no C compiler");
    return;
  }
  using namespace schedule;
  const Schedule product{program::operators::matmul_graph({.m = 16,
                                                           .n = 16,
                                                           .k = 64,
                                                           .constant_b = true,
                                                           .type = program::ScalarType::UInt8,
                                                           .type_b = program::ScalarType::Int8}),
                         {Split{2, 2, {16, 4}}, Reorder{2, {3, 0, 4, 1, 5}}, Pack{1, 2}, Tensorize{2, 0, "amx_int8"}}};
  const codegen::Kernel compiled = codegen::LlvmCompiler(host).compile(loops::lower(product));
  REQUIRE(compiled.uses_tile_registers);
  const test::CProgram folder;
  codegen::export_kernel(compiled, "tiles", folder.path());
  folder.write_main(R"(
#include "tiles.h"

static _Alignas(64) uint8_t A[16][64];
static _Alignas(64) int8_t B[64][16], packed[64 * 16];
static _Alignas(64) int32_t C[16][16];

int main(void) {
  for (int k = 0; k < 64; ++k) {
    for (int i = 0; i < 16; ++i) {
      A[i][k] = (uint8_t)(31 * i + 7 * k);
      B[k][i] = (int8_t)(17 * k - 29 * i);
    }
  }
  if (tunewright_permit_tile_registers() != 0) return 1;
  void* buffers[tiles_buffer_count] = {A, packed, C};
  tiles_pack_B(&B[0][0], packed);
  tiles(buffers, &tunewright_serial_runtime);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int32_t sum = 0;
      for (int k = 0; k < 64; ++k) sum += A[i][k] * B[k][j];
      if (C[i][j] != sum) return 2;
    }
  }
  return 0;
}
)");
  REQUIRE(folder.compiles("tiles.o"));
  CHECK(folder.succeeds());
}

TEST_CASE("the header of a kernel for another family does not compile here, and says why") {
  if (host_family != CpuFamily::X86_64) return;
  const test::CProgram folder;
  const codegen::Kernel foreign = codegen::compile(test::plain_nest(graph()), arm_target("Raspberry Pi 4"));
  CHECK(codegen::family_of_object(*foreign.object) == CpuFamily::Aarch64);
  codegen::export_kernel(foreign, "dense", folder.path());
  folder.write_main("#include \"dense.h\"\nint main(void) { return dense_threads != 4; }\n");
  CHECK_FALSE(folder.compiles("dense.o -lm"));
  std::ifstream header(folder.file("dense.h"));
  CHECK(std::string(std::istreambuf_iterator<char>(header), {})
            .find("The code is for aarch64, for a processor that has all instructions of 'cortex-a72'") !=
        std::string::npos);
  CHECK(folder.said().find("dense.o is machine code for aarch64: compile for that processor, or export for this one") !=
        std::string::npos);
}

TEST_CASE("buffers that share a name are numbered, as are those that are called what the header calls other things") {
  codegen::Kernel compiled = kernel();
  const std::vector<codegen::KernelBuffer> buffers = compiled.buffers;
  REQUIRE(buffers.size() == 4);
  compiled.buffers[0].layout.name = "pack_W";
  compiled.buffers[2].layout.name = "W";
  compiled.buffers[3].layout.name = "threads";
  CHECK(codegen::detail::c_buffer_names(compiled.buffers) ==
        std::vector<std::string>{"pack_W", "W_2", "W_3", "threads_2"});
  const test::CProgram folder;
  codegen::export_kernel(compiled, "dense", folder.path());
  folder.write_main(
      "#include \"dense.h\"\nint main(void) { float p[16], w[12] = {0}; dense_pack_W_2(w, p); return dense_W_3 != 2; "
      "}\n");
  REQUIRE(folder.compiles());
  CHECK(folder.succeeds());
}

TEST_CASE("names that C or C++ use otherwise, and that of the runtime, get another end") {
  const test::CProgram folder;
  CHECK(codegen::export_kernel(kernel(), "double", folder.path()).symbol == "double_");
  CHECK(codegen::export_kernel(kernel(), "tunewright runtime", folder.path()).header.filename() ==
        "tunewright_runtime_.h");
  CHECK(codegen::export_kernel(kernel(), "doubles", folder.path()).symbol == "doubles");
  // Also headers, and what begins the name of a type or of a function: size_t, int8_t, atomic_load.
  for (const char* name :
       {"pow",  "powf",  "roundl", "abs",      "select", "linux",  "stdint",  "size", "int8",  "atomic",
        "sync", "error", "clone",  "truncate", "nice",   "daemon", "encrypt", "conj", "faddl", "rsqrtf"})
    CHECK(codegen::export_kernel(kernel(), name, folder.path()).symbol == std::string(name) + "_");
  folder.write_main("#include \"double_.h\"\nint main(void) { return double__threads != 2; }\n");
  REQUIRE(folder.compiles());
  CHECK(folder.succeeds());
}

TEST_CASE("names of the headers' headers and of the runtime get another end, so that all of it compiles") {
  const test::CProgram folder;
  std::string includes, uses;
  for (const char* name : {"std", "NULL", "offsetof", "size_t", "int8_t", "tunewright", "tunewright_team",
                           "tunewright serial runtime", "tunewright_kernel", "TUNEWRIGHT_RUNTIME"}) {
    codegen::Kernel made = kernel();
    made.buffers[0].layout.name = "serial_runtime";  // which the runtime has, too
    const codegen::ExportedKernel files = codegen::export_kernel(made, name, folder.path());
    CHECK(files.symbol == codegen::detail::c_identifier(name) + "_");
    includes += "#include \"" + files.header.filename().string() + "\"\n";
    uses += " + " + files.symbol + "_threads";
  }
  codegen::export_runtime(folder.path());
  folder.write_main("#include \"tunewright_runtime.h\"\n" + includes +
                    "#ifdef __cplusplus\n#include <cstdlib>\n#endif\n" + "int main(void) { return (0" + uses +
                    ") != 20; }\n");
  for (const char* language : {"-std=c99", "-x c++"}) {
    REQUIRE_MESSAGE(folder.compiles("", language), folder.said());
    CHECK(folder.succeeds());
  }
  for (const char* name : {"stds", "my_std", "null", "tunewrights", "tunewrights_team", "my_tunewright", "target"})
    CHECK(codegen::detail::c_symbol(name) == name);
}

TEST_CASE("texts are filled once, and comments neither end early nor seem to begin again") {
  const std::vector<codegen::detail::Fill> fills{{"A", "@B@"}, {"B", "x"}};
  CHECK(codegen::detail::filled("@B@ of @A@: @B@.", fills) == "x of @B@: x.");
  CHECK(codegen::detail::filled("", fills).empty());
  CHECK(codegen::detail::c_comment("a */ b /* c /*/ d\ne") == "a * / b / * c / * / d e");
}

TEST_CASE("headers of names that differ in case go together") {
  const test::CProgram folder;
  codegen::export_kernel(kernel(), "layer", folder.path());
  codegen::export_kernel(kernel(), "Layer", folder.path());
  folder.write_main(
      "#include \"layer.h\"\n#include \"Layer.h\"\n"
      "int main(void) { return (int)layer_buffer_count != (int)Layer_buffer_count; }\n");
  CHECK(folder.compiles());
}

TEST_CASE("kernels of one program whose headers would declare one name are refused, with both named") {
  const auto with_buffer = [](const std::string& name) {
    codegen::Kernel made = kernel();
    made.buffers[0].layout.name = name;
    return made;
  };
  struct Pair {
    std::string first, first_buffer, second, second_buffer, shared;
  };
  // W is packed in each, so that there is a function that packs it.
  for (const Pair& pair :
       {Pair{"dense", "relu", "dense_relu", "A", "dense_relu"},
        Pair{"dense", "relu_A", "dense_relu", "A", "dense_relu_A"},
        Pair{"dense", "A", "dense_threads", "A", "dense_threads"},
        Pair{"dense", "A", "dense_buffer_bytes", "A", "dense_buffer_bytes"},
        Pair{"dense", "A", "dense_pack_W", "A", "dense_pack_W"}, Pair{"dense", "A", "dense_pack", "W", "dense_pack_W"},
        Pair{"double", "_", "double___", "A", "double___"}}) {
    INFO(pair.shared);
    for (const bool turned : {false, true}) {
      const std::string& first = turned ? pair.second : pair.first;
      const std::string& second = turned ? pair.first : pair.second;
      const codegen::Kernel a = with_buffer(turned ? pair.second_buffer : pair.first_buffer);
      const codegen::Kernel b = with_buffer(turned ? pair.first_buffer : pair.second_buffer);
      const test::CProgram folder;
      const codegen::ExportedKernel files = codegen::export_kernel(a, first, folder.file("a"));
      const std::string said = test::refusal([&] { codegen::export_kernel(b, second, folder.file("a")); });
      const auto says = [&](const std::string& part) { return said.find(part) != std::string::npos; };
      CHECK_MESSAGE(says("'" + codegen::detail::c_symbol(second) + "'"), said);
      CHECK_MESSAGE(says("'" + files.symbol + "', which has '" + files.header.string() + "'"), said);
      CHECK_MESSAGE(says("both declare " + pair.shared + "; export one of them under another name"), said);
      // Nothing of it was written, and the first may be written anew.
      CHECK_FALSE(std::filesystem::exists(folder.file("a/" + codegen::detail::c_symbol(second) + ".o")));
      codegen::export_kernel(a, first, folder.file("a"));
      // It is as well that the pair is refused: no compiler takes it.
      const codegen::ExportedKernel apart = codegen::export_kernel(b, second, folder.file("b"));
      folder.write_main("#include \"" + files.header.string() + "\"\n#include \"" + apart.header.string() +
                        "\"\nint main(void) { return 0; }\n");
      CHECK_FALSE(folder.compiles());
      CHECK(folder.said().find(pair.shared) != std::string::npos);
    }
  }
}

TEST_CASE("a header of another kind of export is not replaced, that of a kernel and those of others are") {
  const test::CProgram folder;
  const auto export_it = [&] { codegen::export_kernel(kernel(), "net", folder.path()); };
  for (const auto& [mark, kind] : {std::pair("NETWORK", "a network"), {"LAUNCHER", "a program for GPUs"}}) {
    const std::string text =
        "/* Generated by tunewright */\n#ifndef TUNEWRIGHT_" + std::string(mark) + "_net_H\n#endif\n";
    std::ofstream(folder.file("net.h")) << text;
    CHECK(test::refusal(export_it) == "'" + folder.file("net.h") + "' is the header of " + kind +
                                          " 'net', which the export of a kernel of that name would replace; export one "
                                          "of them under another name, or into another folder");
    std::ifstream file(folder.file("net.h"));
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == text);
    CHECK_FALSE(std::filesystem::exists(folder.file("net.o")));
  }
  // What a comment says, and what is of another name.
  std::ofstream(folder.file("net.h")) << "/* #ifndef TUNEWRIGHT_NETWORK_net_H */\n#ifndef TUNEWRIGHT_NETWORK_net_2_H\n";
  CHECK_NOTHROW(export_it());
  CHECK_NOTHROW(export_it());
}

TEST_CASE("kernels of one program whose names only begin alike go together") {
  const test::CProgram folder;
  // Parameters, comments and files of others declare nothing.
  codegen::export_kernel(kernel(), "row", folder.path(), "row_major, row_relu(row_W_x[])");
  codegen::export_kernel(kernel(), "row_major", folder.path());
  codegen::export_kernel(kernel(), "row relu", folder.path());
  codegen::export_kernel(kernel(), "row_W_x", folder.path());
  codegen::export_kernel(kernel(), "rowing", folder.path());
  std::ofstream(folder.file("row_pack.h")) << "static const int row_pack_W = 1, row_pack_W_x = 2;\n";
  codegen::export_kernel(kernel(), "row_pack_W_x", folder.path());
  folder.write_main(
      "#include \"row.h\"\n#include \"row_major.h\"\n#include \"row_relu.h\"\n#include \"row_W_x.h\"\n"
      "#include \"rowing.h\"\n#include \"row_pack_W_x.h\"\n"
      "int main(void) { return (int)row_threads != (int)row_W_x_threads || (int)row_W != 1; }\n");
  REQUIRE(folder.compiles());
  CHECK(folder.succeeds());
  const codegen::detail::DeclaredNames declared = codegen::detail::declared_names(
      "struct row; struct row_x* row_y(struct row_x* row_z);\n"
      "enum { row_a = 1,\n row_b /* row_c; struct row_d; */ };\nenum row_e { row_f };\nstruct rows; struct a_row;\n",
      "row");
  CHECK(declared.names == std::set<std::string>{"row_a", "row_b", "row_f", "row_y"});
  CHECK(declared.tags == std::set<std::string>{"row", "row_e", "row_x"});
}

TEST_CASE("remarks stay within their comment") {
  const test::CProgram folder;
  codegen::export_kernel(kernel(), "dense", folder.path(), "layer */ 1\nof 2");
  folder.write_main("#include \"dense.h\"\nint main(void) { return 0; }\n");
  CHECK(folder.compiles());
}

TEST_CASE("misuse is named") {
  const test::CProgram folder;
  codegen::Kernel compiled = kernel();
  CHECK_THROWS_WITH_AS(codegen::export_kernel({}, "x", folder.path()),
                       "kernel 'kernel' has no object file; export a compiled one", std::invalid_argument);
  std::ofstream(folder.file("file")) << "not a folder";
  CHECK_THROWS_WITH_AS(codegen::export_kernel(compiled, "x", folder.file("file")),
                       doctest::Contains("file' cannot be made (Not a directory)"), std::runtime_error);
  compiled.symbol = "other";
  CHECK_THROWS_WITH_AS(codegen::export_kernel(compiled, "x", folder.path()),
                       "the object file of kernel 'other' does not define it", std::invalid_argument);
  compiled.object = std::make_shared<const std::vector<char>>(100, 'x');
  CHECK_THROWS_AS(codegen::export_kernel(compiled, "x", folder.path()), std::invalid_argument);
}

}  // namespace
