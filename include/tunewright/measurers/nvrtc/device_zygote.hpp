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

/// The process that workers of devices are forked from.
namespace tunewright::measurers::nvrtc {

/// What a new worker is told first. The descriptor that comes along holds the environment, as texts "NAME=value".
struct Introduction {
  std::int32_t device = 0;
  std::array<char, 1024> library{};
};

/// The texts of this process's environment.
[[nodiscard]] std::vector<std::string> environment();

/// Tells a worker at the other end of `socket` which device and driver it is for, and with which environment. Throws
/// `std::invalid_argument` for a path of the driver that is too long.
void introduce(int socket, int device, const std::string& library, const std::vector<std::string>& environment);

/// The worker's side of `introduce`, and all that follows.
void serve_device(int socket);

/// The zygote of all devices' workers of this process, forked when it is first asked for and kept until the process
/// ends.
///
/// One for all measurers, since a process that has started the driver can fork none that uses it: NVRTC starts it,
/// where there is one, with the first program that it compiles, and measurers are made after others have run.
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
  // Where the worker is gone, the first request says so.
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
