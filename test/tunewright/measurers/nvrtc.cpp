// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/nvrtc.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "support/fault_of.hpp"
#include "support/gpu_schedules.hpp"
#include "support/refusal.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/nvrtc/device_limits.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;
using loops::LoopNest;
using measurers::Evict;
using measurers::Nvrtc;
using schedule::LoopKind;
using test::fault_of;

static_assert(std::is_aggregate_v<Nvrtc>);
static_assert(StreamingMeasurerFor<Nvrtc, LoopNest>);
static_assert(IdentifiedMeasurer<Nvrtc>);
static_assert(BestAwareMeasurer<Nvrtc>);
static_assert(ConfirmingMeasurerFor<Nvrtc, LoopNest>);

namespace {

/// Describes the machine of the stand-in for the driver as long as it lives; workers see what was true when their
/// measurer was made.
struct Setting {
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Nvrtc on_paper(std::vector<int> devices = {0}) {
  Nvrtc measurer{.devices = std::move(devices), .driver = TUNEWRIGHT_FAKE_LIBCUDA};
  measurer.protocol.repeats_min = 3;
  return measurer;
}

/// y = 2 x for 512 elements, one a thread.
std::shared_ptr<const program::ComputeGraph> doubling() {
  auto graph = std::make_shared<program::ComputeGraph>();
  program::operators::scale(*graph, graph->input("x", {512}), 2.0);
  return graph;
}
Task doubling_task(const std::string& architecture = "") {
  Target target;
  target.kind = DeviceKind::Gpu;
  target.architecture = architecture;
  return program::make_task("doubling", doubling(), target);
}
/// The nest of the task; its name says what the stand-in does.
LoopNest nest(const std::string& name, std::int64_t threads = 128) {
  schedule::ScheduleBuilder builder(doubling());
  const auto parts = builder.split(1, 0, {threads});
  builder.bind(1, parts[0], LoopKind::BlockX);
  builder.bind(1, parts[1], LoopKind::ThreadX);
  LoopNest made = loops::lower(builder.schedule());
  made.name = name;
  return made;
}
std::string detail_of(const Outcome& outcome) { return outcome.failure() == nullptr ? "" : outcome.failure()->detail; }

}  // namespace

TEST_CASE("a batch comes back in order; each kernel's fault is its own") {
  Nvrtc measurer = on_paper();
  measurer.protocol.run_timeout_seconds = 1;
  const std::vector<std::pair<std::string, std::string>> expected = {{"twice", "none"},
                                                                     {"wrong", "wrong_result"},
                                                                     {"lazy", "wrong_result"},
                                                                     {"crash", "run_error"},
                                                                     {"slow", "none"},
                                                                     {"hang", "run_timeout"},
                                                                     {"illegal", "out_of_bounds"},
                                                                     {"failing", "run_error"},
                                                                     {"overrun", "out_of_bounds"},
                                                                     {"greedy", "invalid_schedule"},
                                                                     {"twice", "none"}};
  std::vector<LoopNest> programs;
  for (const auto& [name, fault] : expected) programs.push_back(nest(name));
  std::vector<std::size_t> seen;
  const std::vector<Outcome> outcomes =
      measurer.measure(doubling_task(), programs, [&](std::size_t i, const Outcome&) { seen.push_back(i); });
  REQUIRE(outcomes.size() == expected.size());
  REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i].first);
    CHECK(fault_of(outcomes[i]) == expected[i].second);
    CHECK(outcomes[i].compile_time.count() > 0);
    CHECK(seen[i] == i);
  }
  CHECK(outcomes[0].timing()->median.count() == doctest::Approx(1e-5).epsilon(1e-3));
  CHECK(outcomes[0].timing()->stopped == StopReason::Precise);
  CHECK(outcomes[4].timing()->stopped == StopReason::FarSlower);  // than the first
  CHECK(detail_of(outcomes[2]).find("never written") != std::string::npos);
  CHECK(detail_of(outcomes[6]).find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
  CHECK(detail_of(outcomes[8]) == "wrote 8 bytes after the end of buffer 'scale'");
  // Replaced after the crash, the hang, the two errors that stay and the overrun.
  CHECK(measurer.workers->sandbox(0).statistics().workers_started == 6);
}

TEST_CASE("long calls of kernels that are slower than the best have all their repeats on devices") {
  Nvrtc measurer = on_paper();
  measurer.protocol.partial_call_seconds = 1e-4;
  measurer.note_best(doubling_task(), Seconds(5e-4));
  const std::vector<LoopNest> programs = {nest("slow")};  // 1 ms
  const Outcome outcome = measurer.measure(doubling_task(), programs).front();
  REQUIRE(outcome.valid());
  CHECK(outcome.timing()->stopped == StopReason::Precise);
  CHECK(outcome.timing()->repeats.size() == measurer.protocol.repeats_min);
}

TEST_CASE("finalists are timed in turns, and one that fails does not disturb the others") {
  Nvrtc measurer = on_paper();
  const std::vector<LoopNest> programs = {nest("slow"), nest("illegal"), nest("twice")};
  const std::vector<Outcome> outcomes = measurer.confirm(doubling_task(), programs, 5);
  REQUIRE(outcomes.size() == 3);
  REQUIRE(outcomes[0].valid());
  REQUIRE(outcomes[2].valid());
  CHECK(outcomes[0].timing()->repeats.size() == 5);
  CHECK(outcomes[0].timing()->median.count() == doctest::Approx(1e-3).epsilon(1e-3));
  CHECK(outcomes[2].timing()->median.count() == doctest::Approx(1e-5).epsilon(1e-3));
  CHECK(fault_of(outcomes[1]) == "out_of_bounds");
}

TEST_CASE("several devices share a batch") {
  const Setting count("FAKE_CUDA_DEVICES", "2");
  Nvrtc measurer = on_paper({0, 1});
  const std::vector<LoopNest> programs = {nest("twice"), nest("wrong"), nest("slow"), nest("twice")};
  std::vector<int> seen(programs.size());
  const std::vector<Outcome> outcomes =
      measurer.measure(doubling_task(), programs, [&](std::size_t i, const Outcome&) { ++seen[i]; });
  CHECK(seen == std::vector<int>{1, 1, 1, 1});
  CHECK(fault_of(outcomes[0]) == "none");
  CHECK(fault_of(outcomes[1]) == "wrong_result");
  CHECK(fault_of(outcomes[2]) == "none");
  CHECK(fault_of(outcomes[3]) == "none");
  CHECK(measurer.workers->sandbox(0).statistics().kernels_run + measurer.workers->sandbox(1).statistics().kernels_run ==
        4);

  const Setting mixed("FAKE_CUDA_MIXED", "1");
  CHECK_THROWS_WITH_AS(static_cast<void>(on_paper({0, 1}).target()), doctest::Contains("devices of one kind"),
                       std::invalid_argument);
}

TEST_CASE("without a driver or a device a measurer can be made, and says what is missing") {
  Nvrtc measurer{.driver = "libno-such-driver.so"};
  CHECK_FALSE(measurer.available());
  CHECK_THROWS_WITH_AS(
      static_cast<void>(measurer.measure(doubling_task("sm_90"), std::vector<LoopNest>{nest("twice")})),
      doctest::Contains("no CUDA driver: 'libno-such-driver.so' cannot be loaded (libno-such-driver.so: "),
      measurers::nvrtc::NoDevice);
  CHECK(measurer.identity().find("nvrtc ") == 0);
  CHECK(measurer.identity().find("no device") != std::string::npos);

  Nvrtc lengthy{.driver = std::string(2000, 'x')};
  for (int time = 0; time < 2; ++time)  // not as if the worker had been told
    CHECK_THROWS_WITH_AS(static_cast<void>(lengthy.available()),
                         doctest::Contains("the path of `driver` has 2000 letters; give one of at most 1023"),
                         std::invalid_argument);

  const Setting none("FAKE_CUDA_DEVICES", "0");
  CHECK(on_paper().why_unavailable().find("is a GPU there") != std::string::npos);
}

TEST_CASE("a task for a CPU is refused, with what measures it") {
  Nvrtc measurer = on_paper();
  Task task = doubling_task("sm_90");
  task.target.kind = DeviceKind::Cpu;
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, std::vector<LoopNest>{nest("twice")})),
                       doctest::Contains("take measurers::OrcJit"), std::invalid_argument);
}

TEST_CASE("a driver for an older CUDA than the compiler's is none, and it is said why") {
  using measurers::nvrtc::too_old;
  CHECK(too_old(12080, {13, 0}) ==
        "the driver is for CUDA 12.8 and loads no code of nvrtc 13.0; install a driver for CUDA 13, or build "
        "with a toolkit of CUDA 12");
  CHECK(too_old(12000, {12, 9}).empty());  // within a major version machine code loads
  CHECK(too_old(13000, {12, 9}).empty());
  const Setting old("FAKE_CUDA_DRIVER", "11080");
  CHECK(on_paper().why_unavailable().find("loads no code of nvrtc") != std::string::npos);
}

/// Whether `holds` does in a process of its own, which has no measurer yet.
template <class Holds>
[[nodiscard]] static bool holds_in_a_fresh_process(const Holds& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("a process that uses CUDA can make measurers if it made one before") {
  CHECK(holds_in_a_fresh_process([] {
    const measurers::nvrtc::Driver used(TUNEWRIGHT_FAKE_LIBCUDA);
    return on_paper().why_unavailable().find("used CUDA before it made its first measurer") != std::string::npos;
  }));
  // NVRTC uses CUDA when it compiles, and a second tuner is made after the first has run.
  CHECK(holds_in_a_fresh_process([] {
    {
      const Nvrtc first = on_paper();
    }
    const measurers::nvrtc::Driver used(TUNEWRIGHT_FAKE_LIBCUDA);
    return on_paper().available();
  }));
  // Whoever ended it.
  CHECK(holds_in_a_fresh_process([] {
    const Nvrtc first = on_paper();
    const auto zygote = static_cast<id_t>(first.workers->sandbox(0).statistics().zygote_process);
    ::kill(static_cast<pid_t>(zygote), SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, zygote, &ended, WEXITED | WNOWAIT);
    return on_paper().available();
  }));
}

TEST_CASE("devices that are not there, or were named too late, are refused") {
  CHECK(on_paper({3}).why_unavailable() == "device 3 was asked for, but the CUDA driver sees 1; give 0 to 0");
  Nvrtc measurer = on_paper();
  CHECK(measurer.available());
  measurer.devices = {1};
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.target()), doctest::Contains("give it when making one"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(on_paper({}).target()), doctest::Contains("no devices"),
                       std::invalid_argument);
}

TEST_CASE("the device describes itself as a target") {
  const Nvrtc measurer = on_paper();
  const Target target = measurer.target();
  CHECK(target.kind == DeviceKind::Gpu);
  CHECK(target.name == "Paper GPU");
  CHECK(target.architecture == "sm_90a");
  CHECK(target.multiprocessors == 132);
  CHECK(target.shared_memory_per_block_bytes == 48 * 1024);
  CHECK(target.shared_memory_limit_bytes() == 232448);
  CHECK(target.registers_per_block == 65536);
  CHECK(target.l1_bytes == 256 * 1024);
  // 132 multiprocessors of 128 lanes at 1.98 GHz; 768 bytes twice a cycle of 3.201 GHz.
  CHECK(target.peak_fp32_gflops == doctest::Approx(66908.16));
  CHECK(target.peak_gb_per_s == doctest::Approx(4916.736));
  // 4096 operations a cycle of each of them.
  CHECK(target.peak_tensor_gflops == doctest::Approx(1070530.56));
  CHECK(target.has(TensorUnit::TensorCoreBf16));
  CHECK(target.max_threads_per_block == 1024);
  CHECK(measurer.identity().find("Paper GPU, sm_90a, driver 13.0, 1980/3201 MHz") != std::string::npos);
}

TEST_CASE("caches are overwritten before each call where the protocol says so") {
  Nvrtc measurer = on_paper();
  const std::string warm = measurer.identity();
  const std::vector<LoopNest> nests{nest("cached")};
  const auto latency = [&] {
    const Outcome outcome = measurer.measure(doubling_task(), nests).front();
    REQUIRE(outcome.valid());
    return outcome.timing()->median.count();
  };
  CHECK(latency() == doctest::Approx(1e-5).epsilon(1e-3));
  measurer.protocol.evict = Evict::Constants;
  CHECK_THROWS_WITH_AS(static_cast<void>(latency()), doctest::Contains("evict is Constants"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(measurer.confirm(doubling_task(), nests, 3)), std::invalid_argument);
  measurer.protocol.evict = Evict::Everything;
  CHECK(measurer.identity() == warm + ", cold buffers");
  Nvrtc other = measurer;
  other.code.max_register_statements = 64;
  CHECK(other.identity().find(warm + ", options ") == 0);
  CHECK(latency() == doctest::Approx(5e-5).epsilon(1e-3));
}

TEST_CASE("what a device cannot run is not run") {
  Nvrtc measurer = on_paper();
  const Outcome another = measurer.measure(doubling_task("sm_80"), std::vector<LoopNest>{nest("twice")}).front();
  CHECK(fault_of(another) == "device_compile_error");
  CHECK(detail_of(another) == "code for sm_80 does not run on 'Paper GPU'; compile for sm_90a");

  Task small = doubling_task("sm_90");
  small.target.max_threads_per_block = 64;
  const Outcome wide = measurer.measure(small, std::vector<LoopNest>{nest("twice")}).front();
  CHECK(fault_of(wide) == "invalid_schedule");
  CHECK(detail_of(wide) == "kernel 'twice_0_scale' has threads a block: 128; the device has at most 64");
  // Registers are known once it is compiled: even the fewest are too many here.
  Task tight = doubling_task("sm_90");
  tight.target.registers_per_block = 256;
  CHECK(detail_of(measurer.measure(tight, std::vector<LoopNest>{nest("twice")}).front())
            .find("needs registers a block: ") != std::string::npos);
  CHECK(measurer.workers->sandbox(0).statistics().kernels_run == 1);

  CHECK_THROWS_WITH_AS(
      static_cast<void>(measurer.measure(doubling_task("sm_20"), std::vector<LoopNest>{nest("twice")})),
      doctest::Contains("give one of sm_"), std::invalid_argument);
}

TEST_CASE("shared memory beyond what every kernel gets is asked for") {
  Nvrtc measurer = on_paper();
  auto compiled = measurer.compile_program(doubling_task(), nest("twice"));
  auto& code = std::get<codegen::DeviceCode>(compiled);
  for (const std::int64_t bytes : {48 * 1024, 48 * 1024 + 16, 227 * 1024}) {
    code.program.launches[0].dynamic_shared_bytes = bytes;
    const Outcome outcome = measurer.measure_code(doubling_task(), code);
    CAPTURE(detail_of(outcome));
    CHECK(outcome.valid());
  }
  code.program.launches[0].dynamic_shared_bytes = 227 * 1024 + 16;
  CHECK(fault_of(measurer.measure_code(doubling_task(), code)) == "invalid_schedule");
  // What the code does not have is found when it is loaded.
  code.program.launches[0].dynamic_shared_bytes = 0;
  code.program.launches[0].symbol = "no_such_kernel";
  CHECK(fault_of(measurer.measure_code(doubling_task(), code)) == "device_compile_error");
}

TEST_CASE("programs that do not compile, and cubins that are none, are faults") {
  Nvrtc measurer = on_paper();
  measurer.compile_flags = {"-Dextern=1"};
  const Outcome refused = measurer.measure(doubling_task(), std::vector<LoopNest>{nest("twice")}).front();
  CHECK(fault_of(refused) == "device_compile_error");
  CHECK(detail_of(refused).find("error") != std::string::npos);

  LoopNest on_processors = nest("twice");
  std::get<loops::Loop>(on_processors.body.front().content).kind = LoopKind::Parallel;
  measurer.compile_flags.clear();
  CHECK(fault_of(measurer.measure(doubling_task(), std::vector<LoopNest>{on_processors}).front()) == "compile_error");

  auto compiled = measurer.compile_program(doubling_task(), nest("twice"));
  auto& code = std::get<codegen::DeviceCode>(compiled);
  CHECK(measurer.measure_code(doubling_task(), code).valid());
  code.image = std::make_shared<const std::vector<char>>(256, 'x');
  CHECK(fault_of(measurer.measure_code(doubling_task(), code)) == "device_compile_error");
}

/// `nest` with memory of its own for so many numbers.
[[nodiscard]] static LoopNest with_workspace(LoopNest nest, std::int64_t elements) {
  loops::Buffer workspace = nest.buffers[0];
  workspace.role = loops::BufferRole::Temporary;
  workspace.name = "workspace";
  workspace.shape = {elements};
  nest.buffers.push_back(workspace);
  nest.body.insert(nest.body.begin(), loops::Allocate{static_cast<loops::BufferId>(nest.buffers.size() - 1)});
  return nest;
}

TEST_CASE("a candidate for which memory is lacking fails alone") {
  const Setting memory("FAKE_CUDA_MEMORY",
                       "32000");  // x, its original and y take 10240 bytes each, with their red zones
  Nvrtc measurer = on_paper();
  const std::vector<Outcome> outcomes =
      measurer.measure(doubling_task(), std::vector<LoopNest>{with_workspace(nest("twice"), 4096), nest("twice")});
  CHECK(fault_of(outcomes[0]) == "run_error");
  CHECK(detail_of(outcomes[0]).find("out of memory") != std::string::npos);
  CHECK(outcomes[1].valid());
}

TEST_CASE("originals of inputs, which only save time, make room for what a candidate needs") {
  const Setting memory("FAKE_CUDA_MEMORY", "32000");
  Nvrtc measurer = on_paper();
  // 10240 bytes more, and 1280 are left.
  const std::vector<Outcome> outcomes =
      measurer.measure(doubling_task(), std::vector<LoopNest>{with_workspace(nest("twice"), 512), nest("twice")});
  CHECK(outcomes[0].valid());
  CHECK(outcomes[1].valid());
  CHECK(measurer.workers->sandbox(0).statistics().workers_started == 1);

  const Setting less("FAKE_CUDA_MEMORY", "24000");  // no room from the beginning
  Nvrtc tight = on_paper();
  CHECK(tight.measure(doubling_task(), std::vector<LoopNest>{nest("twice")}).front().valid());
}

TEST_CASE("a kernel that overwrites the originals of inputs does not make others wrong") {
  Nvrtc measurer = on_paper();
  const std::vector<Outcome> outcomes =
      measurer.measure(doubling_task(), std::vector<LoopNest>{nest("stray"), nest("twice"), nest("wrong")});
  CHECK(outcomes[1].valid());
  CHECK(fault_of(outcomes[2]) == "wrong_result");
}

TEST_CASE("code runs on its own architecture and those that include it") {
  using codegen::DeviceFormat;
  using measurers::nvrtc::runs_on;
  CHECK(runs_on("sm_80", DeviceFormat::Cubin, 8, 6));
  CHECK_FALSE(runs_on("sm_86", DeviceFormat::Cubin, 8, 0));
  CHECK_FALSE(runs_on("sm_80", DeviceFormat::Cubin, 9, 0));
  CHECK(runs_on("sm_80", DeviceFormat::Ptx, 9, 0));
  CHECK(runs_on("sm_90a", DeviceFormat::Cubin, 9, 0));
  CHECK_FALSE(runs_on("sm_90a", DeviceFormat::Ptx, 10, 0));
  CHECK_FALSE(runs_on("fermi", DeviceFormat::Cubin, 9, 0));
  // 33 registers are allocated as 40 a thread: 1280 a warp, four warps.
  CHECK(measurers::nvrtc::registers_of_block(33, 128) == 5120);
}

/// The program of the task with a kernel of its own body.
[[nodiscard]] static codegen::DeviceCode with_body(const Nvrtc& measurer, const std::string& body) {
  codegen::DeviceProgram program = codegen::to_cuda(nest("hand"));
  program.source = "extern \"C\" __global__ void " + program.launches[0].symbol +
                   "(const float* x, float* y) {\n  const int i = blockIdx.x * 128 + threadIdx.x;\n" + body + "}\n";
  return std::get<codegen::DeviceCode>(
      codegen::compile_cuda(std::move(program), {.architecture = measurer.target().architecture}));
}

TEST_SUITE("gpu") {
  TEST_CASE("kernels are right and timed on a device") {
    Nvrtc measurer;
    if (!measurer.available()) {
      MESSAGE("skipped: no device: " << measurer.why_unavailable());
      return;
    }
    const auto graph = program::operators::matmul_graph({.m = 256, .n = 250, .k = 128});
    const Task task = program::make_task("matmul", graph, measurer.target());
    schedule::ScheduleBuilder b(graph);
    const auto local = test::register_tiles_of_threads(b, "matmul", 16);
    b.reorder(local, {2, 0, 1});
    const std::vector<LoopNest> programs(2, loops::lower(b.schedule()));
    for (const Outcome& outcome : measurer.measure(task, programs)) {
      CAPTURE(detail_of(outcome));
      REQUIRE(outcome.valid());
      CHECK(outcome.timing()->median.count() > 1e-7);
      CHECK(outcome.timing()->median.count() < 1e-2);
    }
  }

  TEST_CASE("illegal addresses, traps, hangs and stray writes cost one candidate each") {
    Nvrtc measurer;
    if (!measurer.available()) {
      MESSAGE("skipped: no device: " << measurer.why_unavailable());
      return;
    }
    measurer.protocol.run_timeout_seconds = 5;
    const Task task = doubling_task();
    const codegen::DeviceCode right = with_body(measurer, "  y[i] = 2 * x[i];\n");
    const auto expect = [&](const std::string& body, const std::string& fault) {
      CAPTURE(body);
      const Outcome outcome = measurer.measure_code(task, with_body(measurer, body));
      CAPTURE(detail_of(outcome));
      CHECK(fault_of(outcome) == fault);
      CHECK(fault_of(measurer.measure_code(task, right)) == "none");
    };
    expect("  *(volatile int*)16 = i;\n", "out_of_bounds");
    expect("  asm volatile(\"trap;\");\n", "run_error");
    expect("  while (*(volatile const float*)x != 1e30f) {}\n  y[i] = 2 * x[i];\n", "run_timeout");
    expect("  y[i] = 2 * x[i];\n  if (i == 0) y[512] = 0;\n", "out_of_bounds");
    expect("  if (i != 7) y[i] = 2 * x[i];\n", "wrong_result");
  }
}
