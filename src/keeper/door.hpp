// Door: the connections of those who speak with a keeper.
//
// A listening Unix socket and at most eight connections of the same user or root; a ninth takes the place of the oldest
// one, so that nobody who holds eight open locks the orchestrator out. A line that is too long ends its connection.
// Nothing here waits. One thread.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string_view>

namespace weir::keeper {

// Who answers the lines: writes the answer, which ends with a line feed, to `reply` and returns its length.
class Answers {
 public:
  virtual size_t answer(std::string_view line, char* reply, size_t reply_bytes_max) = 0;

 protected:
  ~Answers() = default;
};

class Door {
 public:
  static constexpr size_t kConnectionsMax = 8;
  static constexpr size_t kPollsMax = kConnectionsMax + 1;

  explicit Door(int listener) : listener_(listener) {}
  // What to poll for; returns how many there are.
  size_t polls(pollfd* out) const;
  // Serves those that `polls` found readable, and those who have come since, with what they have said so far.
  void serve(const pollfd* polled, Answers& answers);

 private:
  static constexpr size_t kLineMax = 512;
  struct Connection {
    int fd = -1;
    unsigned age = 0;
    size_t filled = 0;
    char line[kLineMax];
  };
  void accept(Answers& answers);
  void accept_one(int peer, Answers& answers);
  static void hear(Connection& from, Answers& answers);
  static void close(Connection& connection);

  const int listener_;
  unsigned accepted_ = 0;
  Connection connections_[kConnectionsMax];
};

}  // namespace weir::keeper
