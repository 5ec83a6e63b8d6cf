// Bodies that pass through a client piece by piece: the request's out of its source, the answer's into its sink.
// Loop thread only.
#pragma once

#include "client_link.hpp"

namespace weir::net {

// `own`: the failure is the source's or the sink's and says nothing about the server.
struct Passed {
  Status status = ok();
  bool own = false;
};

struct Uploaded {
  Passed passed;
  bool whole = true;  // false where the server's answer came first: the connection cannot be used again
};
// Writes the body behind a head that was written already; what the server says meanwhile goes to `parser`.
boost::asio::awaitable<Uploaded> upload_body(const ClientRequest& request, ClientLink& link, ResponseParser& parser);
// Hands on what `parser` holds of the body.
boost::asio::awaitable<Passed> pour(const ClientRequest& request, ClientLink& link, ResponseParser& parser);

}  // namespace weir::net
