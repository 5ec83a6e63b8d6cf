// How this process speaks with a keeper, or with a child that has a lease socket: one JSON object a line over a Unix
// socket, as weir/keeper/keeping.hpp and weir/egress/lease_socket.hpp describe it. Loop thread only.
#pragma once

#include "weir/ports/kept_host.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <string>

namespace weir::posix {

struct Leased {
  std::int64_t version = 0;
  Term term = {};
  std::string control = {};  // where a child said that it serves its metrics
};

// Asks for an extension and hears what counts now: an error with the other side's word where it refuses, and
// `kept_silent` where nobody answers within a second.
boost::asio::awaitable<Result<Leased>> extend_at(boost::asio::io_context& io, std::string socket, Leased wanted);
// Hands over an order ("stop", "kill") without waiting for an answer; false where nobody listens.
bool tell(const std::string& socket, std::string_view order);
// The process that listens there; 0 where there is none.
int listener_of(const std::string& socket);
// Whether a socket's address has room for the path.
bool fits_socket(const std::string& path);

}  // namespace weir::posix
