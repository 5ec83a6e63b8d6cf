// Result: a value, or the reason why there is none.
//
// Errors are values where the caller can act on them; exceptions never cross a folder. An Error names its class
// (`Errc`, which HTTP maps to a status), a stable machine word (`reason`, e.g. "lease_held"), one sentence for a
// person, and optional details for a program. None of the texts may contain a secret.
// Plain values; not shared between threads.
#pragma once

#include <boost/json/object.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace weir {

enum class Errc {
  invalid,        // the input is wrong; the message names the field
  unauthorized,   // no or bad credentials
  forbidden,      // credentials that do not allow this
  not_found,
  conflict,       // somebody else was first
  too_large,
  unsupported,
  unprocessable,  // well-formed, but the present state refuses it
  too_many,
  unavailable,    // a part that is needed does not answer; asking again may help
  internal,
};

struct Error {
  Errc code = Errc::internal;
  std::string reason;
  std::string message;
  boost::json::object details = {};
};

// An impossible state: stays on in production, says where, and ends the process.
[[noreturn]] inline void panic(const char* what, const char* file, int line) {
  std::fprintf(stderr, "weir: impossible state: %s (%s:%d)\n", what, file, line);
  std::abort();
}
#define WEIR_ASSERT(condition) \
  do {                         \
    if (!(condition)) ::weir::panic(#condition, __FILE__, __LINE__); \
  } while (false)

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& operator*() & { return value(); }
  const T& operator*() const& { return const_cast<Result*>(this)->value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &const_cast<Result*>(this)->value(); }
  const Error& error() const& {
    WEIR_ASSERT(held_.index() == 1);
    return *std::get_if<1>(&held_);
  }
  Error&& error() && {
    WEIR_ASSERT(held_.index() == 1);
    return std::move(*std::get_if<1>(&held_));
  }

 private:
  T& value() {
    WEIR_ASSERT(held_.index() == 0);
    return *std::get_if<0>(&held_);
  }
  std::variant<T, Error> held_;
};

struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};
using Status = Result<Nothing>;
inline Status ok() { return Nothing{}; }

}  // namespace weir

// Declares `var` from a Result, or returns its error. CO_TRY is the same inside a coroutine
// (a statement expression with co_await crashes GCC 12).
#define WEIR_JOIN_(a, b) a##b
#define WEIR_JOIN(a, b) WEIR_JOIN_(a, b)
#define TRY(var, expr) WEIR_TRY_(var, expr, return, WEIR_JOIN(try_result_, __LINE__))
#define CO_TRY(var, expr) WEIR_TRY_(var, expr, co_return, WEIR_JOIN(try_result_, __LINE__))
#define WEIR_TRY_(var, expr, leave, tmp)     \
  auto tmp = (expr);                         \
  if (!tmp) leave std::move(tmp).error();    \
  [[maybe_unused]] auto&& var = *std::move(tmp)
