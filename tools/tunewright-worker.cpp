// SPDX-License-Identifier: Apache-2.0
// Measures kernels that a tuner on another machine sends through standard input: see measurers::Remote.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/remote/messages.hpp"
#include "tunewright/measurers/remote/serve.hpp"

namespace {

constexpr const char* usage =
    R"(usage: tunewright-worker [options]

Checks and times kernels that a tuner sends through standard input, and answers on standard output; a tuner starts it
itself, e.g. by measurers::Remote{.command = {"ssh", "board", "tunewright-worker"}}.

  --processors LIST   run kernels on these, e.g. 0-3,6; else one of each core
  --max-task-mib N    refuse tasks whose data are larger (1024)
  --identity          print what this machine is, and the version of the protocol
  --help
)";

int fail(const std::string& message) {
  std::fprintf(stderr, "tunewright-worker: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tunewright;
  measurers::remote::ServeOptions options;
  for (int a = 1; a < argc; ++a) {
    const std::string_view option = argv[a];
    if (option == "--help") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (option == "--identity") {
      std::printf("%s\nprotocol %u\n", measurers::remote::this_device().identity().c_str(),
                  measurers::remote::protocol_version);
      return 0;
    }
    if (option != "--processors" && option != "--max-task-mib")
      return fail("unknown option '" + std::string(option) + "'; see --help");
    if (++a == argc) return fail("'" + std::string(option) + "' wants a value");
    if (option == "--processors") {
      options.processors = host::whole_processor_list(argv[a]);
      if (options.processors.empty())
        return fail("'" + std::string(argv[a]) + "' is no list of processors; give numbers below 1024, e.g. 0-3,6");
    } else {
      const auto mib = host::whole_number(argv[a]);
      if (!mib || *mib == 0 || *mib > 1U << 20)
        return fail("'" + std::string(argv[a]) + "' is no number of MiB; give 1 to 1048576");
      options.task_limit_bytes = static_cast<std::size_t>(*mib) << 20;
    }
  }
  try {
    return measurers::remote::serve(STDIN_FILENO, STDOUT_FILENO, options);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
