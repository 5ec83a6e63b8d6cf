// RequestParser: bytes in, one Request out, or the refusal to answer with.
//
// Knows no socket and no clock. Bounded: what exceeds a limit is refused as soon as it shows. `feed` pauses once after
// the header, where `begin_body` says how large a body this request may have; what came of the body is added to
// Request::body, from which it may be taken. Used again for the next request of a connection after `reset`. Loop thread
// only.
#pragma once

#include "weir/net/server.hpp"

namespace weir::net {

// An answer that is given before any handler is asked.
struct Refusal {
  int status;
  std::string_view code;
  std::string_view message;
};

class RequestParser {
 public:
  explicit RequestParser(const ServerLimits& limits);
  ~RequestParser();

  void reset(Request& into);
  // Returns how many bytes were used; the rest must be offered again with more behind it.
  size_t feed(std::string_view bytes);
  // A body that is declared to be larger is refused here; one that turns out to be larger, by `feed`.
  void begin_body(std::uint64_t bytes_max);
  const std::optional<Refusal>& refusal() const;
  bool header_done() const;
  bool done() const;
  // The client waits for "100 Continue" before it sends the body.
  bool waits_for_continue() const;
  bool keep_alive() const;
  bool http11() const;
  std::string_view raw_target() const;

 private:
  class Impl;
  const ServerLimits limits_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::net
