// SPDX-License-Identifier: Apache-2.0
// Products by tensor instructions of GPUs: their device form, what it computes, and what is refused.
#include "tunewright/loops/device/fragments.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/tensor_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/simt.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;
using program::ScalarType;
using schedule::ScheduleBuilder;
using schedule::Scope;

std::shared_ptr<const program::ComputeGraph> product(std::int64_t m, std::int64_t n, std::int64_t k, ScalarType type,
                                                     bool transpose_a = false, bool transpose_b = false) {
  return program::operators::matmul_graph(
      {.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b, .type = type});
}
LoopNest device(const ScheduleBuilder& s) { return loops::to_device(loops::lower(s.schedule())); }

/// Outputs for small integers, so that sums are exact in any order.
template <class Run>
std::vector<double> outputs(const LoopNest& nest, const Run& run) {
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    arguments.emplace_back(static_cast<std::size_t>(nest.buffers[id].elements()));
    int next = 1;
    for (double& value : arguments.back()) value = (next = (next * 5 + 3) % 17) - 8;
  }
  run(nest, arguments);
  return arguments.back();
}
const auto simt = [](const LoopNest& nest, auto& arguments) { loops::run_simt(nest, arguments); };
const auto plain = [](const LoopNest& nest, auto& arguments) { loops::interpret(nest, arguments); };

/// Marked loops of a kernel, by what their statement does.
std::vector<loops::Statement::Kind> marked(const LoopNest& nest) {
  std::vector<loops::Statement::Kind> kinds;
  loops::device::visit_nodes<loops::Loop>(nest.body, [&](const loops::Loop& loop) {
    if (loop.intrinsic != nullptr) kinds.push_back(loops::device::fragment_work(nest, loop).statement->kind);
  });
  return kinds;
}
std::string refusal(const ScheduleBuilder& s) {
  try {
    (void)device(s);
  } catch (const loops::DeviceFormError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("descriptors as PTX has them: 16 x 16 x 16, of bytes by mma 32 terms, and since when") {
  struct Known {
    const char* name;
    TensorUnit unit;
    const char *first, *last_without;  // devices
    std::int64_t terms = 16;
  };
  for (const Known& known : {Known{"wmma_fp16", TensorUnit::TensorCoreFp16, "V100", "K80"},
                             Known{"wmma_int8", TensorUnit::TensorCoreInt8, "T4", "Titan V"},
                             Known{"wmma_bf16", TensorUnit::TensorCoreBf16, "A100", "RTX 2080 Ti"},
                             Known{"mma_fp16", TensorUnit::TensorCoreFp16, "T4", "V100"},
                             Known{"mma_int8", TensorUnit::TensorCoreInt8, "T4", "Titan V", 32},
                             Known{"mma_bf16", TensorUnit::TensorCoreBf16, "A100", "RTX 2080 Ti"}}) {
    const schedule::TensorIntrinsic* intrinsic = schedule::find_intrinsic(known.name);
    REQUIRE(intrinsic != nullptr);
    CHECK(intrinsic->m == 16);
    CHECK(intrinsic->n == 16);
    CHECK(intrinsic->k == known.terms);
    CHECK(intrinsic->unit == known.unit);
    CHECK(intrinsic->accumulator == Scope::Accumulator);
    const LoopNest nest =
        loops::lower(test::tensorized_matmul(product(64, 64, 64,
                                                     known.unit == TensorUnit::TensorCoreInt8   ? ScalarType::Int8
                                                     : known.unit == TensorUnit::TensorCoreBf16 ? ScalarType::BFloat16
                                                                                                : ScalarType::Float16),
                                             known.name, {})
                         .schedule());
    CHECK(loops::exceeded_limit(nest, gpu_target(known.first)).empty());
    CHECK(loops::exceeded_limit(nest, gpu_target(known.last_without)) == "tensor instruction the device lacks");
  }
  CHECK(!gpu_target("GTX 1650").has(TensorUnit::TensorCoreFp16));  // 7.5, but without the units
}

TEST_CASE("warps do what touches fragments, once, and each fragment is 256 elements of one buffer") {
  const LoopNest nest =
      device(test::tensorized_matmul(product(64, 64, 64, ScalarType::Float16), "wmma_fp16", {{2, 1}, {1, 2}, 2}));
  using Kind = loops::Statement::Kind;
  CHECK(marked(nest) == std::vector<Kind>{Kind::Initialise, Kind::Update, Kind::Assign});
  const loops::DeviceKernel kernel = loops::device_kernels(nest).at(0);
  CHECK(kernel.block == std::array<std::int64_t, 3>{32, 2, 1});
  CHECK(kernel.blocks() == 4);
  CHECK(kernel.staging_bytes == 2 * 1024);  // one fragment of floats a warp
  CHECK(kernel.local_bytes == 2 * 8 * 4);   // two fragments, of which a thread has 8 sums each
  // Two operands of 32 x 32 numbers of two bytes, whose rows are 48 apart.
  CHECK(kernel.shared_bytes == 2 * 32 * 48 * 2);
}

TEST_CASE("products of odd shapes, stored by rows and by columns, compute what plain loops do") {
  for (const auto& [a, b] : std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}}) {
    const auto graph = product(40, 35, 37, ScalarType::Float16, a, b);
    const auto expected = outputs(loops::lower(schedule::Schedule{graph, {}}), plain);
    for (const test::WarpTiles& tiles : {test::WarpTiles{{1, 1}, {1, 1}, 1}, test::WarpTiles{{2, 1}, {1, 2}, 2},
                                         test::WarpTiles{{1, 3}, {3, 1}, 3}, test::WarpTiles{{2, 2}, {2, 2}, 2}}) {
      CHECK(outputs(device(test::tensorized_matmul(graph, "wmma_fp16", tiles)), simt) == expected);
    }
  }
  const auto few = product(13, 20, 17, ScalarType::Int8);  // fewer rows than a fragment has
  for (const char* instruction : {"wmma_int8", "mma_int8"}) {
    CHECK(outputs(device(test::tensorized_matmul(few, instruction, {{1, 1}, {1, 2}, 2})), simt) ==
          outputs(loops::lower(schedule::Schedule{few, {}}), plain));
  }
  const auto pairs = product(40, 35, 37, ScalarType::BFloat16, true);
  CHECK(outputs(device(test::tensorized_matmul(pairs, "mma_bf16", {{2, 1}, {1, 2}, 2})), simt) ==
        outputs(loops::lower(schedule::Schedule{pairs, {}}), plain));
}

TEST_CASE("where layouts are known rows are any multiple of 16 bytes apart, and fragments begin there") {
  const auto graph = product(40, 35, 37, ScalarType::Float16);
  CHECK(outputs(device(test::tensorized_matmul(graph, "mma_fp16", {{2, 1}, {1, 2}, 2, 8})), simt) ==
        outputs(loops::lower(schedule::Schedule{graph, {}}), plain));
  for (const char* instruction : {"mma_fp16", "wmma_fp16"}) {
    LoopNest nest = device(test::tensorized_matmul(graph, instruction, {{2, 1}, {1, 2}, 2}));
    loops::device::visit_nodes<loops::Statement>(nest.body, [](loops::Statement& s) {
      if (s.kind == loops::Statement::Kind::Update) s.axis_values[2] = s.axis_values[2] + 8;  // terms
    });
    INFO(instruction);
    if (schedule::find_intrinsic(instruction)->layout_is_known) {
      CHECK_NOTHROW((void)marked(nest));
    } else {
      CHECK_THROWS_WITH_AS((void)marked(nest), doctest::Contains("do not begin at every 16th element"),
                           loops::DeviceFormError);
    }
  }
}

TEST_CASE("operands that run ahead of tensor instructions, through registers and asynchronously") {
  // Five steps of the reduction, the last of them partly padding.
  const auto graph = product(40, 35, 75, ScalarType::Float16);
  const auto expected = outputs(loops::lower(schedule::Schedule{graph, {}}), plain);
  for (const schedule::Pipelining how : {schedule::Pipelining{2, false}, {3, true}}) {
    ScheduleBuilder s = test::tensorized_matmul(graph, "wmma_fp16", {{2, 1}, {1, 2}, 1});
    const schedule::TensorId sums = s.stage("matmul.accumulator"), copy = s.stage("A.shared");
    s.pipeline(sums, s.state().stages[copy].location.iter, how);
    const LoopNest nest = device(s);
    std::size_t copies = 0, waits = 0;
    for (const loops::Buffer& buffer : nest.buffers) copies += buffer.stages == how.depth;
    loops::device::visit_nodes<loops::WaitForCopies>(nest.body, [&](const auto&) { ++waits; });
    CHECK(copies >= 2);
    CHECK((waits > 0) == how.asynchronous);
    CHECK(outputs(nest, simt) == expected);
  }
}

TEST_CASE("descriptors of warp groups: 64 rows, 32 bytes of terms, for compute capability 9.0 alone") {
  for (const std::int64_t columns : {64, 128, 256}) {
    for (const auto& [type, name] : std::vector<std::pair<ScalarType, std::string>>{
             {ScalarType::Float16, "fp16"}, {ScalarType::BFloat16, "bf16"}, {ScalarType::UInt8, "int8"}}) {
      const std::string instruction = "wgmma_" + name + "_n" + std::to_string(columns);
      const schedule::TensorIntrinsic* intrinsic = schedule::find_intrinsic(instruction);
      REQUIRE(intrinsic != nullptr);
      CHECK(intrinsic->m == 64);
      CHECK(intrinsic->n == columns);
      CHECK(intrinsic->k * static_cast<std::int64_t>(program::size_in_bytes(type)) == 32);
      CHECK(intrinsic->threads == 128);
      CHECK(intrinsic->sums_of_thread() == columns / 2);
      const LoopNest nest =
          loops::lower(test::tensorized_matmul(product(64, 256, 64, type), instruction, {}).schedule());
      Target hopper = gpu_target("H100");
      CHECK(loops::exceeded_limit(nest, hopper).empty());
      CHECK(schedule::is_on(*intrinsic, hopper));
      hopper.architecture = "sm_90";
      CHECK_FALSE(schedule::is_on(*intrinsic, hopper));
      CHECK(loops::exceeded_limit(nest, hopper) == "tensor instruction the device lacks");
      CHECK(loops::exceeded_limit(nest, gpu_target("A100")) == "tensor instruction the device lacks");
    }
  }
}

TEST_CASE("warp groups hold fragments, and operands lie in matrices of 8 x 16 bytes") {
  const LoopNest nest = device(
      test::tensorized_matmul(product(128, 128, 64, ScalarType::Float16), "wgmma_fp16_n64", {{2, 1}, {1, 2}, 2, 8}));
  const loops::DeviceKernel kernel = loops::device_kernels(nest).at(0);
  CHECK(kernel.block == std::array<std::int64_t, 3>{128, 2, 1});
  CHECK(kernel.staging_bytes == 0);
  CHECK(kernel.local_bytes == 2 * 32 * 4);  // two fragments of 64 x 64, of which a thread has 32 sums each
  // 128 rows of 32 terms are 4 x 129 pieces of 16 bytes, 32 terms of 128 columns 16 x 33: one more piece each time.
  CHECK(kernel.shared_bytes == 16 * (4 * 129 + 16 * 33));
  std::size_t products = 0;
  loops::device::visit_nodes<loops::Loop>(nest.body, [&](const loops::Loop& loop) {
    if (loop.intrinsic == nullptr) return;
    const loops::device::FragmentWork work = loops::device::fragment_work(nest, loop);
    if (work.statement->kind != loops::Statement::Kind::Update) return;
    ++products;
    CHECK_FALSE(work.a.by_columns);
    CHECK(work.a.matrices.terms_are_neighbours);
    CHECK(work.a.matrices.along_lines == 8 * 8);
    CHECK(work.a.matrices.along_terms == 129 * 8);
    CHECK_FALSE(work.b.by_columns);
    CHECK_FALSE(work.b.matrices.terms_are_neighbours);
    CHECK(work.b.matrices.along_lines == 33 * 8);
    CHECK(work.b.matrices.along_terms == 8 * 8);
  });
  CHECK(products == 1);
}

TEST_CASE("products of odd shapes by warp groups compute what plain loops do, copies ahead of them or not") {
  for (const auto& [a, b] :
       std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}, {true, true}}) {
    for (const ScalarType type : {ScalarType::Float16, ScalarType::Int8}) {
      const auto graph = product(70, 75, 77, type, a, b);
      const auto expected = outputs(loops::lower(schedule::Schedule{graph, {}}), plain);
      const char* instruction = type == ScalarType::Int8 ? "wgmma_int8_n64" : "wgmma_fp16_n64";
      ScheduleBuilder s = test::tensorized_matmul(graph, instruction, {{2, 1}, {1, 2}, 1});
      CHECK(outputs(device(s), simt) == expected);
      const schedule::TensorId sums = s.stage("matmul.accumulator"), copy = s.stage("A.shared");
      s.pipeline(sums, s.state().stages[copy].location.iter, {3, true});
      CHECK(outputs(device(s), simt) == expected);
    }
  }
}

TEST_CASE("a missing barrier is found, also within one warp; who read or wrote is named") {
  struct Missing {
    const char* instruction;
    int barrier;  ///< of those before copies are stored and before they are multiplied
    const char* message;
  };
  for (const Missing& missing :
       {Missing{"wmma_fp16", 0, "writes element 0 of 'A.shared' which warp 0 has read"},
        Missing{"wmma_fp16", 1, "reads element 0 of 'A.shared' which thread 0 has written"},
        Missing{"wgmma_fp16_n64", 0, "writes element 0 of 'A.shared' which warp group 0 has read"},
        Missing{"wgmma_fp16_n64", 1, "reads element 0 of 'A.shared' which thread 0 has written"}}) {
    CAPTURE(missing.message);
    LoopNest nest = device(test::tensorized_matmul(product(64, 64, 64, ScalarType::Float16), missing.instruction, {}));
    CHECK_NOTHROW((void)outputs(nest, simt));
    int before = missing.barrier;
    const std::function<void(loops::Body&)> drop = [&](loops::Body& body) {
      for (loops::Node& node : body) {
        if (auto* loop = std::get_if<loops::Loop>(&node.content)) drop(loop->body);
      }
      std::erase_if(body, [&](const loops::Node& node) {
        return std::holds_alternative<loops::Barrier>(node.content) && before-- == 0;
      });
    };
    drop(nest.body);
    CHECK_THROWS_WITH_AS((void)outputs(nest, simt), doctest::Contains(missing.message), loops::InterpretError);
  }
}

TEST_CASE("limits count what a thread holds of fragments, and what they are taken out through") {
  const loops::LoopNest nest = loops::lower(
      test::tensorized_matmul(product(256, 256, 64, ScalarType::Float16), "wmma_fp16", {{2, 2}, {2, 2}, 1}).schedule());
  const auto exceeded = [&](auto member, std::int64_t limit) {
    loops::GpuLimits limits;
    limits.*member = limit;
    return std::string(loops::exceeded_limit(nest, limits));
  };
  CHECK(exceeded(&loops::GpuLimits::max_local_bytes, 4 * 8 * 4).empty());
  CHECK(exceeded(&loops::GpuLimits::max_local_bytes, 4 * 8 * 4 - 1) == "local buffers too large");
  // Rows of 64 x 16 and 16 x 64 numbers with 16 behind each, and a fragment of each of 4 warps.
  constexpr std::int64_t shared = 2 * (64 * 32 + 16 * 80) + 4 * 1024;
  CHECK(exceeded(&loops::GpuLimits::max_shared_bytes, shared).empty());
  CHECK(exceeded(&loops::GpuLimits::max_shared_bytes, shared - 1) == "too much shared memory");
  // From registers nothing is needed to take them out.
  loops::GpuLimits limits;
  limits.max_shared_bytes = shared - 4 * 1024;
  const loops::LoopNest known = loops::lower(
      test::tensorized_matmul(product(256, 256, 64, ScalarType::Float16), "mma_fp16", {{2, 2}, {2, 2}, 1}).schedule());
  CHECK(loops::exceeded_limit(known, limits).empty());
  CHECK(loops::device_kernels(loops::to_device(known)).at(0).staging_bytes == 0);
}

TEST_CASE("bad input") {
  const auto graph = product(32, 32, 32, ScalarType::Float16);
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  // Rows that the device cannot load, since they begin anywhere.
  CHECK(contains(refusal(test::tensorized_matmul(graph, "mma_fp16", {{1, 1}, {1, 1}, 1, 3})),
                 "'A.shared', whose fragments and their rows do not begin at every 8th element"));
  // Rows of 24 numbers of two bytes: every other one begins at no multiple of the 32 that wmma.load asks for.
  CHECK(contains(refusal(test::tensorized_matmul(graph, "wmma_fp16", {{1, 1}, {1, 1}, 1, 8})),
                 "'A.shared', whose fragments and their rows do not begin at every 16th element"));
  // Bytes that are multiplied together, but lie in different rows.
  ScheduleBuilder bytes = test::tensorized_matmul(product(32, 32, 32, ScalarType::Int8), "mma_int8", {});
  schedule::Schedule as_it_is = bytes.schedule();
  for (schedule::Step& step : as_it_is.steps) {
    if (auto* layout = std::get_if<schedule::TransformLayout>(&step)) layout->orders = {{0, 1}};
  }
  CHECK_THROWS_WITH_AS((void)loops::to_device(loops::lower(as_it_is)),
                       doctest::Contains("'B.shared', whose neighbours are not multiplied together"),
                       loops::DeviceFormError);
  // What warp groups read has rows and terms last, terms of bytes as neighbours.
  const auto arranged = [&](ScalarType type, const char* instruction) {
    schedule::Schedule swapped = test::tensorized_matmul(product(64, 64, 64, type), instruction, {}).schedule();
    for (schedule::Step& step : swapped.steps) {
      if (auto* layout = std::get_if<schedule::TransformLayout>(&step)) layout->orders = {{0, 1}};
    }
    return loops::lower(swapped);
  };
  CHECK_NOTHROW((void)loops::to_device(arranged(ScalarType::Float16, "wgmma_fp16_n64")));
  CHECK_THROWS_WITH_AS((void)loops::to_device(arranged(ScalarType::Int8, "wgmma_int8_n64")),
                       doctest::Contains("'B.shared', whose neighbours are not multiplied together"),
                       loops::DeviceFormError);
  LoopNest packed = arranged(ScalarType::Float16, "wgmma_fp16_n64");
  for (loops::Buffer& buffer : packed.buffers) {
    if (buffer.name == "B.shared") buffer.packing.clear();
  }
  CHECK_THROWS_WITH_AS((void)loops::to_device(packed),
                       doctest::Contains("'B.shared', which is not in matrices of 8 x 16 bytes"),
                       loops::DeviceFormError);
  // Fragments of warps and of warp groups in one kernel, and more threads than those that hold them.
  const auto changed = [&](const auto& change) {
    LoopNest nest = loops::lower(test::tensorized_matmul(graph, "mma_fp16", {{1, 1}, {1, 1}, 1}).schedule());
    loops::device::visit_nodes<loops::Loop>(nest.body, [&](loops::Loop& loop) { change(nest, loop); });
    return nest;
  };
  const LoopNest mixed = changed([](LoopNest&, loops::Loop& loop) {
    if (loop.kind == loops::LoopKind::Vectorized) loop.intrinsic = schedule::find_intrinsic("wgmma_fp16_n64");
  });
  CHECK_THROWS_WITH_AS((void)loops::to_device(mixed), doctest::Contains("has instructions of warps and of warp groups"),
                       loops::DeviceFormError);
  const LoopNest wide = changed([](LoopNest& nest, loops::Loop& loop) {
    if (loop.kind == loops::LoopKind::ThreadX) nest.variables[loop.var].extent = 64;
  });
  CHECK_THROWS_WITH_AS((void)loops::to_device(wide),
                       doctest::Contains("more than the 32 threads that hold fragments together"),
                       loops::DeviceFormError);
  // Fragments that nothing computes: no instruction was asked for.
  ScheduleBuilder scalar(graph);
  const schedule::TensorId sums = scalar.cache_write(scalar.stage("matmul"), Scope::Accumulator);
  const auto parts = scalar.split(2, 0, {4});
  scalar.bind(2, parts[0], schedule::LoopKind::BlockX);
  scalar.compute_at(sums, 2, parts[0]);
  CHECK(contains(refusal(scalar), "tensorize their loops"));
  // A loop that is marked but runs over nothing.
  const loops::LoopNest plain_nest = loops::lower(schedule::Schedule{graph, {}});
  loops::Loop unknown;
  unknown.intrinsic = schedule::find_intrinsic("wmma_fp16");
  loops::LoopNest declared = plain_nest;
  declared.variables.push_back({"i", 16});
  unknown.var = static_cast<loops::Var>(declared.variables.size() - 1);
  CHECK_THROWS_AS((void)loops::device::fragment_work(declared, unknown), loops::DeviceFormError);
  // Rows of which instructions would read every other number.
  LoopNest apart = device(test::tensorized_matmul(graph, "wmma_fp16", {}));
  loops::device::visit_nodes<loops::Statement>(apart.body, [](loops::Statement& s) {
    if (s.kind == loops::Statement::Kind::Update) s.axis_values[2] = 2 * s.axis_values[2];  // terms
  });
  CHECK_THROWS_WITH_AS((void)marked(apart), doctest::Contains("'A.shared', whose rows and columns are both apart"),
                       loops::DeviceFormError);
  // A loop that is marked but combines its products otherwise.
  LoopNest largest = device(test::tensorized_matmul(graph, "wmma_fp16", {}));
  loops::device::visit_nodes<loops::Statement>(largest.body, [](loops::Statement& s) {
    auto op = std::make_shared<program::Operator>(*s.op);
    op->combiner = program::Combiner::Max;
    s.op = std::move(op);
  });
  CHECK_THROWS_WITH_AS((void)marked(largest), doctest::Contains("is no sum of products of two tensors"),
                       loops::DeviceFormError);
}
