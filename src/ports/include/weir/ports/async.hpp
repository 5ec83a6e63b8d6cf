// Async<T>: what a port answers when its work is done: a value, or an Error that says why there is none.
//
// The caller awaits it on the loop's thread, and is resumed there whichever thread did the work.
#pragma once

#include "weir/base/result.hpp"

#include <boost/asio/awaitable.hpp>

namespace weir {

template <class T>
using Async = boost::asio::awaitable<Result<T>>;

// What is in it where a function's answer becomes one: T of a Result<T>, and anything else as it is.
template <class R>
struct ValueOfAnswer {
  using type = R;
};
template <class T>
struct ValueOfAnswer<Result<T>> {
  using type = T;
};
template <class R>
using ValueOf = typename ValueOfAnswer<R>::type;

}  // namespace weir
