// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/messages.hpp"
#include "tunewright/measurers/sandbox.hpp"
#include "tunewright/measurers/sandbox/worker_parts.hpp"

namespace tunewright::measurers::remote {

struct ServeOptions {
  std::vector<int> processors{};  ///< that run kernels; empty: one per core of those that this process may use
  std::size_t task_limit_bytes = std::size_t{1} << 30;    ///< larger data of tasks are refused
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks
};

/// The parts of a worker that needs neither LLVM nor a compiler: `codegen::ObjectCode` links object files, and parallel
/// loops run on pinned threads.
[[nodiscard]] WorkerParts worker_parts();

/// A worker: measures for a host at the other end of a carrier. Construct it before the process has threads, because it
/// forks the process that runs kernels.
class Worker {
 public:
  Worker();
  /// Answers requests until the other end closes between two messages, even if an answer is due: nobody is left to be
  /// told. A kernel that cannot be measured, such as where the system has no process or memory for it, is `Unknown`
  /// with the reason. Throws `ProtocolError` for messages that violate the protocol, `Disconnected` if the connection
  /// ends within a message, and `std::runtime_error` if the process that forks those for kernels is gone.
  void serve(FrameCarrier& carrier, const ServeOptions& options = {});

 private:
  Device device_;
  Sandbox sandbox_;
};

/// Reads requests from `in` and answers on `out` until the other end closes: what `tunewright-worker` does with its
/// standard input and output. Call it before the process has threads: it forks the process that runs kernels. That has
/// the standard streams of this process; so that nothing of a kernel is part of the conversation, if `in` or `out` is
/// standard input or output, this process from then on reads nothing from the one and writes to standard error instead
/// of to the other. The calling process stays confined (`sandbox::confine_worker`).
///
/// Returns 0 if the other end closes between two messages. Throws as `Worker::serve` does, and `std::system_error` if
/// standard input or output is to be replaced, and one of the three streams is closed.
int serve(int in, int out, const ServeOptions& options = {});

}  // namespace tunewright::measurers::remote

#if TUNEWRIGHT_DEFINES(remote)

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <span>
#include <string>

#include "tunewright/codegen/object_loader.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/sandbox/pinned_runtime.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"

namespace tunewright::measurers::remote {

TUNEWRIGHT_INLINE WorkerParts worker_parts() {
  WorkerParts parts;
  parts.load = [](std::span<const char> object, const std::string& symbol) -> LoadedObject {
    auto code = std::make_shared<const codegen::ObjectCode>(object, symbol);
    return {code->entry(), code};
  };
  parts.runtime = pinned_runtime;
  return parts;
}

namespace serving {

class Answers {
 public:
  Answers(FrameCarrier& carrier, Sandbox& sandbox, const Device& device, const ServeOptions& options)
      : carrier_(carrier), sandbox_(sandbox), device_(device), options_(options) {
    if (options_.processors.empty()) options_.processors = host_processors();
    device_.target.threads = std::min(device_.target.threads, static_cast<unsigned>(options_.processors.size()));
  }

  void run() {
    send(FrameKind::Hello, to_bytes(Hello{.device = device_}));
    for (;;) {
      const Frame frame = carrier_.receive(FrameCarrier::for_ever);
      switch (frame.kind) {
        case FrameKind::SetTask: set_task(from_bytes<SetTask>(frame.payload)); break;
        case FrameKind::Measure: measure(from_bytes<MeasureRequest>(frame.payload)); break;
        default: throw unexpected(frame.kind);
      }
    }
  }

 private:
  struct Entry {
    std::uint64_t key;
    std::shared_ptr<const SharedTask> task;
  };

  void send(FrameKind kind, std::span<const char> payload) { carrier_.send(kind, payload, FrameCarrier::for_ever); }
  static ProtocolError unexpected(FrameKind kind) {
    return ProtocolError("a frame of kind " + std::to_string(static_cast<std::uint32_t>(kind)) +
                         " where none is expected");
  }

  void answer(TaskAnswer::Kind kind, const std::string& reason = {}) {
    send(FrameKind::TaskAnswer, to_bytes(TaskAnswer{kind, reason}));
  }

  void set_task(const SetTask& wanted) {
    task_ready_ = false;
    if (wanted.threads == 0 || wanted.threads > options_.processors.size()) {
      return answer(TaskAnswer::Kind::Refused, "the task is for " + std::to_string(wanted.threads) +
                                                   " threads, and the worker has " +
                                                   std::to_string(options_.processors.size()) + " processors");
    }
    if (wanted.bytes > options_.task_limit_bytes) {
      return answer(TaskAnswer::Kind::Refused,
                    "the task's data have " + std::to_string(wanted.bytes) + " bytes, and the worker takes " +
                        std::to_string(options_.task_limit_bytes) + "; start it with a larger --max-task-mib");
    }
    auto known = std::find_if(tasks_.begin(), tasks_.end(), [&](const Entry& e) { return e.key == wanted.key; });
    if (known == tasks_.end()) {
      answer(TaskAnswer::Kind::SendIt);
      std::vector<char> data = receive_task(wanted.bytes);
      try {
        const auto task = from_bytes<TaskData>(data);
        data = {};  // sharing copies the task once more
        tasks_.push_front({wanted.key, std::make_shared<const SharedTask>(task)});
      } catch (const ProtocolError&) {
        throw;
      } catch (const std::exception& error) {  // contradictory sizes, or no memory to share it
        return answer(TaskAnswer::Kind::Refused, error.what());
      }
      known = tasks_.begin();
    }
    tasks_.splice(tasks_.begin(), tasks_, known);
    std::size_t bytes = 0;
    for (const Entry& entry : tasks_) bytes += entry.task->bytes();
    for (; tasks_.size() > 1 && bytes > options_.task_cache_bytes; tasks_.pop_back())
      bytes -= tasks_.back().task->bytes();
    try {
      sandbox_.set_task(tasks_.front().task, wanted.threads,
                        std::span<const int>(options_.processors).first(wanted.threads));
      sandbox_.start();
    } catch (const std::exception& error) {
      return answer(TaskAnswer::Kind::Refused, error.what());
    }
    task_ready_ = true;
    answer(TaskAnswer::Kind::Ready);
  }

  std::vector<char> receive_task(std::uint64_t bytes) {
    std::vector<char> data;
    while (data.size() < bytes) {
      const Frame part = carrier_.receive(FrameCarrier::for_ever);
      if (part.kind != FrameKind::TaskPart) throw unexpected(part.kind);
      if (part.payload.empty() || part.payload.size() > bytes - data.size())
        throw ProtocolError("a part of a task's data of " + std::to_string(part.payload.size()) + " bytes");
      data.insert(data.end(), part.payload.begin(), part.payload.end());
    }
    return data;
  }

  void measure(const MeasureRequest& request) {
    if (!task_ready_) throw ProtocolError("a kernel before its task");
    MeasureResult result{.number = request.number, .outcome = {}};
    try {
      result.outcome = sandbox_.measure(request.kernel, request.protocol, Seconds(request.best_seconds));
    } catch (const std::exception& error) {
      if (!sandbox_.can_start()) throw;
      result.outcome.result = Failure{Fault::Unknown, error.what()};
    }
    send(FrameKind::Result, to_bytes(result));
  }

  FrameCarrier& carrier_;
  Sandbox& sandbox_;
  Device device_;
  ServeOptions options_;
  std::list<Entry> tasks_;  // most recently used first
  bool task_ready_ = false;
};

}  // namespace serving

TUNEWRIGHT_INLINE Worker::Worker()
    : device_(this_device()),  // requests the permission to use tile registers, which forks inherit
      sandbox_(worker_parts()) {}

TUNEWRIGHT_INLINE void Worker::serve(FrameCarrier& carrier, const ServeOptions& options) {
  try {
    serving::Answers(carrier, sandbox_, device_, options).run();
  } catch (const EndOfConversation&) {
  }
}

TUNEWRIGHT_INLINE int serve(int in, int out, const ServeOptions& options) {
  sandbox::Descriptor own_in, own_out;
  if (std::min(in, out) <= STDOUT_FILENO) {
    // Forks keep standard streams alone.
    const auto moved = [](int fd) { return sandbox::Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)); };
    own_in = moved(in);
    own_out = moved(out);
    if (!own_in || !own_out || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      sandbox::throw_system_error("standard input, standard output or standard error");
    const sandbox::Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0) sandbox::throw_system_error("/dev/null");
    in = own_in.get();
    out = own_out.get();
  }
  Worker worker;
  sandbox::confine_worker();  // its input comes from another machine
  FrameStream stream(in, out, request_limit_bytes);
  worker.serve(stream, options);
  return 0;
}

}  // namespace tunewright::measurers::remote

#endif
