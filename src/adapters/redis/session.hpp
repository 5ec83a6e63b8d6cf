// Session: one connection with Redis that never blocks once it is open. Private to this folder.
//
// Words go out and replies come in; the order of the replies is the order of the commands. The first error ends a
// session: it is thrown away and another one opened. The client's thread only.
#pragma once

#include "weir/redis/coordination.hpp"

#include <hiredis/hiredis.h>

#include <functional>

namespace weir::redis {

struct Reply {
  enum class Kind { nothing, text, number, list, error };
  Kind kind = Kind::nothing;
  std::string text = {};  // of an error too
  std::int64_t number = 0;
  std::vector<Reply> list = {};
};

Error unavailable(std::string_view why);

class Session {
 public:
  // Blocks for at most `connect_within`, for the connection and for the password.
  static Result<std::unique_ptr<Session>> open(const Config& config);

  int fd() const { return context_->fd; }
  bool wants_to_write() const { return unsent_; }
  // The words wait in the session until `flush` writes them.
  Status send(const std::vector<std::string>& words);
  Status flush();
  // Reads what is there, and calls `each` for every complete reply.
  Status read(const std::function<void(Reply)>& each);

 private:
  explicit Session(redisContext* context) : context_(context, redisFree) {}
  Status failed() const;

  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
  bool unsent_ = false;
};

}  // namespace weir::redis
