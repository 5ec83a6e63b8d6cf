// ResponseParser: bytes in, one ClientResponse out. Knows no socket. Bounded. Loop thread only.
#pragma once

#include "weir/net/client.hpp"

namespace weir::net {

class ResponseParser {
 public:
  // `head_request`: the answer has no body, whatever its header says.
  ResponseParser(size_t body_bytes_max, bool head_request);
  ~ResponseParser();

  // Returns how many bytes were used; the rest must be offered again with more behind it.
  size_t feed(std::string_view bytes);
  // The server closed: the end of an answer without a length, or a loss.
  void feed_end();
  bool header_done() const;
  bool done() const;
  bool keep_alive() const;
  // What is wrong with the answer, once it is.
  const std::optional<Error>& problem() const;
  // A stream has no end to wait for: its body is taken from here as it comes.
  ClientResponse& response();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::net
