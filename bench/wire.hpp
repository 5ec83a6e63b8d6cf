// Wire: one kept HTTP/1.1 connection, as cheap as a client can be.
//
// The load generator shares its cores with what it measures, so a Wire sends texts that were made before and looks into
// an answer no deeper than status, length and body. One request at a time; a connection that breaks stays broken and
// says why. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::bench {

struct Answer {
  int status = 0;         // 0: the connection broke; `body` says how
  std::string_view body;  // until the next request
};

class Wire {
 public:
  explicit Wire(std::uint16_t port);
  ~Wire();
  Wire(const Wire&) = delete;

  int fd() const { return fd_; }
  bool broken() const { return !trouble_.empty(); }
  bool waiting() const { return waiting_; }
  void send(std::string_view request);
  // Takes what has arrived; the answer once it is complete.
  std::optional<Answer> receive();

 private:
  std::optional<Answer> fail(std::string_view what);
  std::optional<Answer> complete();

  int fd_ = -1;
  bool waiting_ = false;
  std::string trouble_;
  std::string in_;
  size_t filled_ = 0;
  size_t body_at_ = 0;  // 0: the head is not complete
  size_t end_ = 0;
};

// A request of the lease API with a JSON body.
std::string post_text(std::string_view path, std::string_view token, std::string_view body);

}  // namespace weir::bench
