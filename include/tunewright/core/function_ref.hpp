// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tunewright {

template <class Signature>
class FunctionRef;

/// A non-owning reference to a callable, for parameters of functions that would otherwise be templates, compiled for
/// every lambda. Unlike `std::function` it does not allocate; a call costs one indirect call. It must not outlive the
/// callable.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<Result, F&, Args...>>>
  FunctionRef(F&& f) noexcept  // NOLINT: callers pass lambdas
      // reinterpret_cast, because a plain function is not an object; on all systems with dynamic linking a function
      // pointer converts to one.
      : object_(const_cast<void*>(reinterpret_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          auto& callee = *reinterpret_cast<std::remove_reference_t<F>*>(object);
          if constexpr (std::is_void_v<Result>)
            static_cast<void>(callee(std::forward<Args>(args)...));
          else
            return callee(std::forward<Args>(args)...);
        }) {
    static_assert(!std::is_reference_v<Result> || std::is_reference_v<std::invoke_result_t<F&, Args...>>,
                  "the result would refer to a temporary; let the function return a reference");
  }

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace tunewright
