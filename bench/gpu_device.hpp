// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared_library.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/nvrtc/primary_context.hpp"
#include "tunewright/stats/robust.hpp"

/// A GPU as this process uses it, beside the workers of a measurer, and how long work takes there.
namespace tunewright::bench {

/// Device 0 with a stream. Make it after every measurer: what forks must not have used CUDA. Errors throw.
class GpuDevice {
 public:
  explicit GpuDevice(const std::string& library = measurers::nvrtc::Driver::system_library)
      : driver_(library), extra_(library) {
    CUdevice device = 0;
    check(driver_->device_get(&device, 0), "opening the device");
    context_.emplace(driver_, device);
    extra_.find(create_stream_, "cuStreamCreate");
    extra_.find(begin_capture_, "cuStreamBeginCapture_v2");
    extra_.find(end_capture_, "cuStreamEndCapture");
    extra_.find(instantiate_, "cuGraphInstantiateWithFlags");
    extra_.find(launch_graph_, "cuGraphLaunch");
    extra_.find(destroy_graph_, "cuGraphDestroy");
    extra_.find(destroy_executable_, "cuGraphExecDestroy");
    check(create_stream_(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
    for (CUevent* event : {&start_, &stop_}) check(driver_->create_event(event, CU_EVENT_DEFAULT), "making an event");
  }
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  [[nodiscard]] const measurers::nvrtc::Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] CUstream stream() const noexcept { return stream_; }

  /// Seconds between two events around `work`, which enqueues on the stream.
  [[nodiscard]] double seconds_of(const std::function<void()>& work) const {
    check(driver_->record_event(start_, stream_), "recording the start");
    work();
    check(driver_->record_event(stop_, stream_), "recording the end");
    check(driver_->wait_for_event(stop_), "running");
    float milliseconds = 0;
    check(driver_->elapsed_milliseconds(&milliseconds, start_, stop_), "reading the time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

  /// `runs` runs of `work`, recorded once; the result starts them all and keeps `work`, which owns the memory that they
  /// use. What a start costs the processor, several microseconds in a library, is then in no time. Throws for work that
  /// cannot be recorded.
  [[nodiscard]] std::function<void()> recorded(const std::function<void()>& work, unsigned runs) const {
    check(begin_capture_(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "recording");
    CUgraph graph = nullptr;
    try {
      for (unsigned run = 0; run < runs; ++run) work();
    } catch (...) {
      static_cast<void>(end_capture_(stream_, &graph));
      if (graph != nullptr) static_cast<void>(destroy_graph_(graph));
      throw;
    }
    check(end_capture_(stream_, &graph), "ending the recording");
    CUgraphExec executable = nullptr;
    const CUresult made = instantiate_(&executable, graph, 0);
    static_cast<void>(destroy_graph_(graph));
    check(made, "preparing the recording");
    const std::shared_ptr<CUgraphExec_st> kept(
        executable,
        [destroy = destroy_executable_](CUgraphExec_st* made_before) { static_cast<void>(destroy(made_before)); });
    return [this, kept, work] { check(launch_graph_(kept.get(), stream_), "starting what was recorded"); };
  }

 private:
  void check(CUresult result, const char* what) const { driver_.check(result, what); }

  measurers::nvrtc::Driver driver_;
  SharedLibrary extra_;
  std::optional<measurers::nvrtc::PrimaryContext> context_;
  CUresult (*create_stream_)(CUstream*, unsigned) = nullptr;
  CUresult (*begin_capture_)(CUstream, CUstreamCaptureMode) = nullptr;
  CUresult (*end_capture_)(CUstream, CUgraph*) = nullptr;
  CUresult (*instantiate_)(CUgraphExec*, CUgraph, unsigned long long) = nullptr;
  CUresult (*launch_graph_)(CUgraphExec, CUstream) = nullptr;
  CUresult (*destroy_graph_)(CUgraph) = nullptr;
  CUresult (*destroy_executable_)(CUgraphExec) = nullptr;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
};

/// Work of a library with all that it needs; `enqueue` starts one run of it on the device's stream.
struct GpuWork {
  std::string name;
  std::function<void()> enqueue;
};

/// Work as it is timed: so many runs at a time.
struct TimedWork {
  std::string name;
  std::function<void()> start;  ///< starts `runs` runs
  unsigned runs = 1;

  /// Median over `repeats` timings of at least 10 ms each: seconds a run.
  [[nodiscard]] double median_seconds(const GpuDevice& device, unsigned repeats) const {
    const double once = std::max(device.seconds_of(start), 1e-7);
    const auto starts = static_cast<unsigned>(std::clamp(0.01 / once, 1.0, 1e5));
    std::vector<double> seconds;
    for (unsigned repeat = 0; repeat < repeats; ++repeat) {
      seconds.push_back(device.seconds_of([&] {
        for (unsigned i = 0; i < starts; ++i) start();
      }) / starts / runs);
    }
    return stats::median(std::move(seconds));
  }
};

/// Times several ways that a library offers, each started run by run and recorded, and returns the fastest here. Leaves
/// out ways that fail; throws `std::runtime_error`, with why the last failed, where all do.
[[nodiscard]] inline TimedWork fastest_way(const GpuDevice& device, const std::vector<GpuWork>& ways) {
  constexpr unsigned recorded_runs = 16;
  TimedWork best;
  double best_s = 0;
  std::string failure = "it offers none";
  const auto consider = [&](TimedWork way) {
    const double s = way.median_seconds(device, 3);
    if (best_s != 0 && s >= best_s) return;
    best_s = s;
    best = std::move(way);
  };
  for (const GpuWork& way : ways) {
    try {
      static_cast<void>(device.seconds_of(way.enqueue));  // loads what it needs
      consider({way.name, way.enqueue, 1});
      consider({way.name + ", recorded", device.recorded(way.enqueue, recorded_runs), recorded_runs});
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  if (best_s == 0) throw std::runtime_error("no way to run it: " + failure);
  return best;
}

}  // namespace tunewright::bench
