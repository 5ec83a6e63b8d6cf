// The body of a request whose route declares that its handler reads it, on a connection's socket.
//
// Bounded by the route's limit. The client has `read_timeout` for each piece, not for the whole; while the handler asks
// for none, nothing is read. Loop thread only.
#pragma once

#include "connection.hpp"

namespace weir::net {

class Connection::Upload final : public BodyReader {
 public:
  explicit Upload(Connection& of) : of_(of) {}
  boost::asio::awaitable<Result<std::string>> read_some() override;

 private:
  Error problem() const;

  Connection& of_;
};

}  // namespace weir::net
