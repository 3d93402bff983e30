// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tunewright::bench {

/// A shared library that is opened when it is needed: programs start, and tune, where it is missing. Its symbols are
/// its own, so that several libraries with functions of one name can be open at once.
class SharedLibrary {
 public:
  /// Throws `std::runtime_error` with what to do where there is none.
  explicit SharedLibrary(std::string name) : name_(std::move(name)) {
    // Never closed: such libraries leave threads and handlers behind.
    library_ = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library_ == nullptr) {
      const char* reason = ::dlerror();
      throw std::runtime_error("'" + name_ + "' cannot be loaded (" + (reason != nullptr ? reason : "no reason given") +
                               "); install it, or name its folder in LD_LIBRARY_PATH");
    }
  }

  template <class Pointer>
  void find(Pointer& function, const char* name) const {
    function = reinterpret_cast<Pointer>(::dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error("'" + name_ + "' has no " + std::string(name));
  }

 private:
  std::string name_;
  void* library_;
};

}  // namespace tunewright::bench
