// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/host_target.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace tunewright;

namespace {

using Files = std::map<std::string, std::string>;

SystemFiles from(const Files& files) {
  return [files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

/// Four processors on two cores, as a server shows them.
Files server() {
  Files files;
  files["/proc/cpuinfo"] =
      "processor\t: 0\nmodel name\t: Some Processor @ 2.50GHz\ncache size\t: 36608 KB\n"
      "flags\t\t: fpu sse4_1 sse4_2 movbe f16c abm bmi1 bmi2 fma avx avx2 avx512f avx512dq avx512bw avx512vl\n\n"
      "processor\t: 1\nmodel name\t: Some Processor @ 2.50GHz\nflags\t\t: fpu\n";
  const std::string cpu = "/sys/devices/system/cpu/cpu";
  for (int p = 0; p < 4; ++p) {
    files[cpu + std::to_string(p) + "/topology/thread_siblings_list"] = p % 2 == 0 ? "0,2\n" : "1,3\n";
  }
  const auto cache = [&](int index, const char* level, const char* type, const char* size) {
    const std::string folder = cpu + "0/cache/index" + std::to_string(index) + "/";
    files[folder + "level"] = level;
    files[folder + "type"] = type;
    files[folder + "size"] = size;
    files[folder + "coherency_line_size"] = "64\n";
  };
  cache(0, "1\n", "Data\n", "48K\n");
  cache(1, "1\n", "Instruction\n", "32K\n");
  cache(2, "2\n", "Unified\n", "2M\n");
  cache(3, "3\n", "Unified\n", "36608K\n");
  return files;
}

}  // namespace

TEST_CASE("a server is described by its files") {
  const Target target = describe_host(from(server()), {0, 1, 2, 3});
  CHECK(target.name == "Some Processor @ 2.50GHz");
  CHECK(target.kind == DeviceKind::Cpu);
  CHECK(target.isa == Isa::Avx512);
  CHECK(target.threads == 2);  // cores, not hardware threads
  CHECK(target.cache_line_bytes == 64);
  CHECK(target.l1_bytes == 48 * 1024);
  CHECK(target.l2_bytes == 2 * 1024 * 1024);
  CHECK(target.l3_bytes == 36608ULL * 1024);
}

TEST_CASE("threads follow what the process may use") {
  Files files = server();
  CHECK(describe_host(from(files), {3}).threads == 1);
  CHECK(describe_host(from(files), {1, 2}).threads == 2);
  files["/sys/fs/cgroup/cpu.max"] = "max 100000\n";
  CHECK(describe_host(from(files), {0, 1}).threads == 2);
  files["/sys/fs/cgroup/cpu.max"] = "150000 100000\n";
  CHECK(describe_host(from(files), {0, 1}).threads == 1);
  files["/sys/fs/cgroup/cpu.max"] = "50000 100000\n";
  CHECK(describe_host(from(files), {0, 1}).threads == 1);
}

TEST_CASE("a 64-bit ARM machine is described by its files") {
  Files files;
  const std::string cores =
      "processor\t: 0\nBogoMIPS\t: 243.75\n"
      "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp "
      "sve\n"
      "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n";
  files["/proc/cpuinfo"] = cores;
  const auto cache = [&](int index, const char* level, const char* type, const char* size) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    files[folder + "level"] = level;
    files[folder + "type"] = type;
    files[folder + "size"] = size;
    files[folder + "coherency_line_size"] = "64\n";
  };
  cache(0, "1\n", "Data\n", "64K\n");
  cache(1, "1\n", "Instruction\n", "64K\n");
  cache(2, "2\n", "Unified\n", "1024K\n");
  cache(3, "3\n", "Unified\n", "32768K\n");
  const Target target = describe_host(from(files), {0, 1, 2, 3});
  CHECK(target.name == "Neoverse N1");
  CHECK(target.isa == Isa::Neon);  // scalable vectors do not count
  CHECK(target.vector_bytes() == 16);
  CHECK(target.architecture.empty());
  CHECK(target.tensor_units == 0);
  CHECK(target.threads == 4);
  CHECK(target.l1_bytes == 64 * 1024);
  CHECK(target.l2_bytes == 1024 * 1024);
  CHECK(target.l3_bytes == 32768 * 1024);

  CHECK(host::arm_processor_name("CPU implementer : 0x48\nCPU part : 0xd01\n") == "ARM processor 0x48:0xd01");
  files["/proc/cpuinfo"] = "Features : fp asimd\n";
  CHECK(describe_host(from(files), {0}).name == "unnamed processor");
  files["/proc/cpuinfo"] = "Features : half thumb vfp neon vfpv4\n";  // 32 bits
  CHECK_THROWS_WITH_AS(static_cast<void>(describe_host(from(files), {0})), doctest::Contains("Advanced SIMD"),
                       std::runtime_error);
}

TEST_CASE("instruction sets need all of their parts") {
  const std::string avx2 = "sse4_2 movbe f16c abm bmi1 bmi2 avx2 fma";
  CHECK(host::isa_of_flags(avx2 + " avx512f avx512bw avx512dq avx512vl") == Isa::Avx512);
  CHECK(host::isa_of_flags(avx2 + " avx512f avx512bw avx512dq") == Isa::Avx2);
  CHECK(host::isa_of_flags(avx2 + "4") == Isa::Sse42);
  CHECK(host::isa_of_flags("sse4_2 avx2 fma avx512f avx512bw avx512dq avx512vl") == Isa::Sse42);
  CHECK(host::isa_of_flags("sse4_2") == Isa::Sse42);
  CHECK(!host::isa_of_flags("sse4_1"));
  CHECK(!host::isa_of_flags(""));
  CHECK_THROWS_WITH_AS(static_cast<void>(describe_host(from({}), {0})), doctest::Contains("SSE4.2"),
                       std::runtime_error);
}

TEST_CASE("processors whose units are narrower than their registers are known by family and model") {
  const auto width = [](const char* vendor, int family, int model) {
    return host::vector_datapath_bytes("vendor_id\t: " + std::string(vendor) + "\ncpu family\t: " +
                                       std::to_string(family) + "\nmodel\t\t: " + std::to_string(model) + "\n");
  };
  CHECK(width("AuthenticAMD", 23, 1) == 16);  // Zen
  CHECK(width("AuthenticAMD", 23, 47) == 16);
  CHECK(width("AuthenticAMD", 23, 48) == 0);   // Zen 2
  CHECK(width("AuthenticAMD", 25, 17) == 32);  // Zen 4
  CHECK(width("AuthenticAMD", 26, 2) == 0);    // Zen 5 of servers
  CHECK(width("AuthenticAMD", 26, 36) == 32);  // of notebooks
  CHECK(width("AuthenticAMD", 26, 96) == 32);
  CHECK(width("AuthenticAMD", 26, 112) == 0);
  CHECK(width("HygonGenuine", 24, 0) == 16);
  CHECK(width("GenuineIntel", 6, 143) == 0);
  CHECK(host::vector_datapath_bytes("") == 0);

  Target target;
  target.isa = Isa::Avx512;
  CHECK(target.vector_datapath_share() == 1);
  const Target whole = target;
  target.vector_datapath_bytes = 32;
  CHECK(target.vector_datapath_share() == 0.5);
  CHECK(target.with_isa(Isa::Avx2).vector_datapath_share() == 1);
  CHECK(target.with_isa(Isa::Sse42).vector_datapath_share() == 1);
  CHECK(stable_hash(target) != stable_hash(whole));
  CHECK(stable_hash(target.with_isa(Isa::Avx2)) == stable_hash(whole.with_isa(Isa::Avx2)));

  Files files = server();
  CHECK(describe_host(from(files), {0}).vector_datapath_bytes == 0);
  files["/proc/cpuinfo"].insert(0, "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\n");
  CHECK(describe_host(from(files), {0}).vector_datapath_share() == 0.5);
}

TEST_CASE("tensor units are what the flags name, and go with the instruction set they belong to") {
  const auto bit = [](TensorUnit unit) { return static_cast<std::uint32_t>(unit); };
  CHECK(host::tensor_units_of_flags("avx512f avx512_vnni avx512_bf16 avx_vnni") ==
        (bit(TensorUnit::Avx512Vnni) | bit(TensorUnit::Avx512Bf16)));
  CHECK(host::tensor_units_of_flags("amx_bf16 amx_tile amx_int8") ==
        (bit(TensorUnit::AmxInt8) | bit(TensorUnit::AmxBf16)));
  CHECK(host::tensor_units_of_flags("avx512_vnni2 amx_int") == 0);
  Target target;
  target.isa = Isa::Avx512;
  const Target extended = target.with_tensor_unit(TensorUnit::Avx512Vnni);
  CHECK(extended.has(TensorUnit::Avx512Vnni));
  CHECK_FALSE(extended.has(TensorUnit::Avx512Bf16));
  CHECK_FALSE(extended.with_isa(Isa::Avx2).has(TensorUnit::Avx512Vnni));
  CHECK(extended.with_isa(Isa::Avx2).has(TensorUnit::Avx2));
  CHECK_FALSE(extended.has(TensorUnit::Avx2));
  CHECK(stable_hash(extended) != stable_hash(target));
  CHECK(stable_hash(extended.with_isa(Isa::Avx2)) == stable_hash(target.with_isa(Isa::Avx2)));
}

TEST_CASE("a machine without cache files keeps plain defaults") {
  Files files;
  files["/proc/cpuinfo"] = "flags : sse4_2\n";
  const Target target = describe_host(from(files), {0});
  CHECK(target.name == "unnamed processor");
  CHECK(target.l1_bytes == 32 * 1024);
  CHECK(target.l3_bytes == 0);
  CHECK(target.threads == 1);
}

TEST_CASE("lists and sizes") {
  CHECK(host::processor_list("0-2,8\n") == std::vector<int>{0, 1, 2, 8});
  CHECK(host::processor_list("5") == std::vector<int>{5});
  CHECK(host::processor_list("").empty());
  CHECK(host::processor_list("1,x,2") == std::vector<int>{1});
  CHECK(host::processor_list("0-2x,8").empty());
  CHECK(host::whole_processor_list("0-2,8") == std::vector<int>{0, 1, 2, 8});
  for (const char* wrong : {"", "1,x,2", "1,", "2-1", "1-2-3", "-1", "0-1024", "1 ", "0x1"})
    CHECK_MESSAGE(host::whole_processor_list(wrong).empty(), wrong);
  CHECK(host::whole_number("12") == 12U);
  CHECK_FALSE(host::whole_number("12x"));
  CHECK_FALSE(host::whole_number(""));
  CHECK(host::size_in_bytes("32K") == 32768);
  CHECK(host::size_in_bytes("2M\n") == 2097152);
  CHECK(host::size_in_bytes("512") == 512);
  CHECK(host::size_in_bytes("4G") == 4294967296);
  for (const char* wrong : {"none", "", "K", "32 KB", "32KB", "-1K", "1.5M"})
    CHECK_MESSAGE(host::size_in_bytes(wrong) == 0, wrong);
}

TEST_CASE("a thread keeps to the processors that it may use, and goes on where it was refused others") {
  const std::vector<int> allowed = host::allowed_processors();
  std::thread([&] {
    host::keep_to(std::vector<int>{});
    CHECK(host::allowed_processors() == allowed);
    host::keep_to(std::span(allowed).first(1));
    CHECK(host::allowed_processors() == std::vector<int>{allowed.front()});
    host::keep_to(std::vector<int>{CPU_SETSIZE});
    CHECK(host::allowed_processors() == std::vector<int>{allowed.front()});
  }).join();
  CHECK(host::allowed_processors() == allowed);
}

TEST_CASE("this machine") {
  const Target target = host_target();
  CHECK(target.threads >= 1);
  CHECK(target.threads <= host::allowed_processors().size());
  CHECK(target.l1_bytes >= 8 * 1024);
  CHECK(!host_processors().empty());
  CHECK(target.with_threads(1).threads == 1);
  if (host_family == CpuFamily::X86_64) CHECK(target.with_isa(Isa::Sse42).vector_bytes() == 16);
}
