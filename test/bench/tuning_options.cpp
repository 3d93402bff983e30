// SPDX-License-Identifier: Apache-2.0
#include "../../bench/tuning_options.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../bench/usage.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using test::refusal;

namespace {

struct Taken {
  bench::TuningOptions options;
  std::vector<std::string> left;
};
constexpr std::array<std::string_view, 8> all_names{"isa",  "threads",       "journal", "trials", "seconds_per_kernel",
                                                    "seed", "random_shapes", "serve"};
Taken take(std::vector<std::string> arguments, std::span<const std::string_view> names = all_names) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  Taken taken{bench::take_tuning_options(count, pointers.data(), names), {}};
  for (int i = 1; i < count; ++i) taken.left.emplace_back(pointers[static_cast<std::size_t>(i)]);
  return taken;
}

}  // namespace

TEST_CASE("our own options are taken, others are left") {
  const Taken none = take({"--benchmark_filter=matmul", "file"});
  CHECK(none.options.trials == 500);
  CHECK(none.options.instructions == bench::InstructionSet::Native);
  CHECK_FALSE(none.options.threads);
  CHECK_FALSE(none.options.random_shapes);
  CHECK_FALSE(none.options.served);
  CHECK_FALSE(none.options.seconds_per_kernel);
  CHECK(none.options.seed == 1);
  CHECK_FALSE(none.options.journal);
  CHECK(none.left == std::vector<std::string>{"--benchmark_filter=matmul", "file"});

  const Taken all = take({"--trials=7", "--isa=avx2", "--v=1", "--threads=3", "--random_shapes=0", "--journal=a=b",
                          "--seconds_per_kernel=1.5", "--seed=0", "--serve=matmul/7x7x7"});
  CHECK(all.options.trials == 7);
  CHECK(all.options.served == "matmul/7x7x7");
  CHECK(all.options.instructions == bench::InstructionSet::Avx2);
  CHECK(all.options.threads == 3);
  CHECK(all.options.random_shapes == 0);
  CHECK(all.options.journal == "a=b");
  CHECK(all.options.seconds_per_kernel == Seconds(1.5));
  CHECK(all.options.seed == 0);
  CHECK(all.left == std::vector<std::string>{"--v=1"});
}

TEST_CASE("an option that the program does not have is left, as are words that only look like one") {
  constexpr std::array<std::string_view, 2> some{"trials", "seed"};
  const Taken taken =
      take({"--threads=3", "--trials=7", "--serve=", "trials=8", "--trials", "--=1", "--", "--seed=2"}, some);
  CHECK(taken.options.trials == 7);
  CHECK(taken.options.seed == 2);
  CHECK_FALSE(taken.options.threads);
  CHECK_FALSE(taken.options.served);
  CHECK(taken.left == std::vector<std::string>{"--threads=3", "--serve=", "trials=8", "--trials", "--=1", "--"});
}

TEST_CASE("the help tells the program's options, one a line") {
  constexpr std::array<std::string_view, 2> some{"seconds_per_kernel", "seed"};
  CHECK(bench::usage_of(some) ==
        "  --seconds_per_kernel=S  of searching for each kernel, at most (no limit)\n"
        "  --seed=N                seed of the searches (1)\n");
  for (const std::string_view name : all_names) {
    const std::string line = bench::usage_of(std::span(&name, 1));
    CHECK(line.starts_with("  --" + std::string(name) + "="));
    CHECK(line[25] == ' ');
    CHECK(line[26] != ' ');
    CHECK(line.find('\n') == line.size() - 1);
  }
  constexpr std::array<std::string_view, 1> none{"trial"};
  CHECK(refusal([&] { (void)bench::usage_of(none); }) == "no option is called 'trial'");
}

TEST_CASE("usage is printed when it is asked for, wherever that is said") {
  const auto printed = [](std::vector<const char*> arguments) {
    return bench::printed_usage(static_cast<int>(arguments.size()), arguments.data(), "");
  };
  CHECK(printed({"program", "--trials=5", "--help"}));
  CHECK_FALSE(printed({"program", "--helpful", "help", "--help=1"}));
  CHECK_FALSE(printed({"--help"}));
  CHECK_FALSE(printed({}));
}

TEST_CASE("values that are none are refused with their name and a remedy") {
  CHECK(refusal([] { take({"--trials=0"}); }) == "'0' was given for trials; give a whole number, at least 1");
  CHECK(refusal([] { take({"--trials="}); }).find("at least 1") != std::string::npos);
  CHECK(refusal([] { take({"--threads=-1"}); }) ==
        "'-1' was given for threads; give a whole number, at least 1, at most 1024");
  CHECK(refusal([] { take({"--threads=1025"}); }).find("'1025'") != std::string::npos);
  CHECK(refusal([] { take({"--random_shapes=now"}); }).find("'now' was given for random_shapes") == 0);
  CHECK(refusal([] { take({"--seconds_per_kernel=0"}); }) ==
        "'0' was given for seconds_per_kernel; give a positive number of seconds");
  for (const char* wrong : {"", "-1", "1s", "inf", "nan"}) {
    CHECK(refusal([&] { take({std::string("--seconds_per_kernel=") + wrong}); }).find("positive number") !=
          std::string::npos);
  }
  CHECK(refusal([] { take({"--seed=-1"}); }).find("'-1' was given for seed") == 0);
  CHECK(refusal([] { take({"--isa=avx3"}); }) ==
        "'avx3' was given for an instruction set; give sse4.2, avx2, avx512, amx or native");
}

TEST_CASE("a filter takes the summary too") {
  const auto filter = [](const std::string& given) {
    return bench::with_summary({"program", "--benchmark_filter=" + given}).back();
  };
  CHECK(filter("^matmul/") == "--benchmark_filter=(^matmul/)|^summary");
  CHECK(filter("a|b") == "--benchmark_filter=(a|b)|^summary");
  CHECK(filter("all") == "--benchmark_filter=all");
  CHECK(filter("-conv") == "--benchmark_filter=-conv");
  CHECK(bench::with_summary({"program", "--x"}) == std::vector<std::string>{"program", "--x"});
}

TEST_CASE("a target has the instructions and threads that are asked for, as far as the host has them") {
  Target host;
  host.isa = Isa::Avx512;
  host.threads = 4;
  bench::TuningOptions options;
  CHECK(bench::chosen_target(options, host) == host);
  options.instructions = bench::InstructionSet::Avx2;
  options.threads = 2;
  const Target held = bench::chosen_target(options, host);
  CHECK(held.isa == Isa::Avx2);
  CHECK(held.threads == 2);
  options.threads = 5;
  CHECK(refusal([&] { (void)bench::chosen_target(options, host); }) ==
        "5 threads were asked for and there are 4 cores: threads that take turns are not timed");
  CHECK_NOTHROW(bench::check_cores(4, host));
  CHECK(refusal([&] { bench::check_cores(5, host); }).find("5 threads were asked for") == 0);
}

TEST_CASE("instruction sets are read by name and hold a target to them") {
  using enum bench::InstructionSet;
  for (const bench::InstructionSet set : {Sse42, Avx2, Avx512, Amx, Native})
    CHECK(bench::parse_instruction_set(bench::name(set)) == set);

  Target server;
  server.name = "server";
  server.isa = Isa::Avx512;
  server = server.with_tensor_unit(TensorUnit::Avx512Vnni).with_tensor_unit(TensorUnit::AmxBf16);
  CHECK(bench::held_to(server, Native) == server);
  CHECK(bench::held_to(server, Amx) == server);
  CHECK(bench::held_to(server, Avx512).isa == Isa::Avx512);
  CHECK(bench::held_to(server, Avx512).has(TensorUnit::Avx512Vnni));
  CHECK_FALSE(bench::held_to(server, Avx512).has(TensorUnit::AmxBf16));
  CHECK(bench::held_to(server, Avx2).isa == Isa::Avx2);
  CHECK(bench::held_to(server, Avx2).tensor_units == 0);
  CHECK(bench::held_to(server, Sse42).isa == Isa::Sse42);

  Target desktop;
  desktop.name = "desktop";
  desktop.isa = Isa::Avx2;
  CHECK(refusal([&] { static_cast<void>(bench::held_to(desktop, Avx512)); }) ==
        "target 'desktop' has no avx512; ask for at most avx2");
  CHECK(refusal([&] { static_cast<void>(bench::held_to(desktop, Amx)); }) ==
        "target 'desktop' has no amx; ask for at most avx2");
}

TEST_CASE("every library is told, or freed of what somebody else told it") {
  const auto value = [](const std::vector<bench::Variable>& variables, const std::string& name) {
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&](const bench::Variable& variable) { return variable.first == name; });
    return found == variables.end() ? std::string("missing") : found->second;
  };
  const auto avx2 = bench::library_environment(bench::InstructionSet::Avx2, 3, "GenuineIntel");
  CHECK(value(avx2, "ONEDNN_MAX_CPU_ISA") == "AVX2");
  CHECK(value(avx2, "OPENBLAS_CORETYPE") == "Haswell");
  CHECK(value(avx2, "MKL_ENABLE_INSTRUCTIONS") == "AVX2");
  CHECK(value(avx2, "LIBXSMM_TARGET") == "hsw");
  for (const char* threads : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"})
    CHECK(value(avx2, threads) == "3");
  CHECK(value(avx2, "OPENBLAS_THREAD_TIMEOUT") == "24");
  const auto on_zen = bench::library_environment(bench::InstructionSet::Avx2, 3, "AuthenticAMD");
  CHECK(value(on_zen, "OPENBLAS_CORETYPE") == "Zen");
  const auto native = bench::library_environment(bench::InstructionSet::Native, 1, "AuthenticAMD");
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS", "GLIBC_TUNABLES"})
    CHECK(value(native, name) == "");
}
