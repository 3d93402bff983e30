// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/zygote.hpp"

/// The process from which the workers of devices are forked.
namespace tunewright::measurers::nvrtc {

/// The first message to a new worker. The attached descriptor holds the environment as strings "NAME=value".
struct Introduction {
  std::int32_t device = 0;
  std::array<char, 1024> library{};
};

/// The strings of this process's environment.
[[nodiscard]] std::vector<std::string> environment();

/// Tells the worker at the other end of `socket` its device, driver and environment. Throws `std::invalid_argument` if
/// the path of the driver is too long.
void introduce(int socket, int device, const std::string& library, const std::vector<std::string>& environment);

/// The worker's side of `introduce`; then answers requests.
void serve_device(int socket);

/// The zygote of all device workers of this process, forked by the first call and kept until the process ends.
///
/// All measurers share it, because a process that has started the driver cannot fork one that uses it: NVRTC starts an
/// installed driver with the first program that it compiles, and measurers may be constructed after others have run.
[[nodiscard]] std::shared_ptr<sandbox::Zygote> device_zygote();

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/measurers/nvrtc/device_child.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

TUNEWRIGHT_INLINE void introduce(int socket, int device, const std::string& library,
                                 const std::vector<std::string>& environment) {
  Introduction introduction;
  introduction.device = device;
  if (library.size() >= introduction.library.size())
    throw std::invalid_argument("measurers::Nvrtc: the path of `driver` has " + std::to_string(library.size()) +
                                " letters; give one of at most 1023");
  library.copy(introduction.library.data(), library.size());
  sandbox::Writer writer;
  writer.put(environment.size());
  for (const std::string& text : environment) writer.put_text(text);
  const sandbox::Descriptor contents = sandbox::share(writer.bytes());
  // If the worker is gone, the first request reports it.
  static_cast<void>(sandbox::send_record(socket, introduction, contents.get()));
}

TUNEWRIGHT_INLINE void serve_device(int socket) {
  Introduction introduction;
  sandbox::Descriptor contents;
  if (sandbox::receive_record(socket, introduction, &contents) != sandbox::Received::Message) return;
  {
    const auto size = ::lseek(contents.get(), 0, SEEK_END);
    const sandbox::Mapping mapping(contents.get(), static_cast<std::size_t>(size));
    sandbox::Reader reader(mapping.bytes());
    ::clearenv();
    for (auto left = reader.get<std::size_t>(); left-- > 0;) {
      const std::string text = reader.get_text();
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) ::setenv(text.substr(0, equals).c_str(), text.substr(equals + 1).c_str(), 1);
    }
  }
  DeviceChild(socket, introduction.library.data(), introduction.device).serve();
}

TUNEWRIGHT_INLINE std::shared_ptr<sandbox::Zygote> device_zygote() {
  struct Kept {
    std::mutex mutex;
    pid_t owner = 0;
    std::shared_ptr<sandbox::Zygote> zygote;
  };
  static Kept kept;
  const std::lock_guard lock(kept.mutex);
  if (kept.owner == ::getpid() && kept.zygote->alive()) return kept.zygote;
  WorkerParts parts;
  parts.serve = serve_device;
  kept.zygote = std::make_shared<sandbox::Zygote>(std::move(parts));
  kept.owner = ::getpid();
  return kept.zygote;
}

}  // namespace tunewright::measurers::nvrtc

#endif
