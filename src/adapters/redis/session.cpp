#include "session.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/time.h>

namespace weir::redis {

namespace {

timeval timeval_of(Duration d) {
  auto whole = std::chrono::floor<std::chrono::seconds>(d);
  return {.tv_sec = static_cast<time_t>(whole.count()), .tv_usec = static_cast<suseconds_t>((d - whole).count())};
}

Reply reply_of(const redisReply& from) {
  Reply out;
  switch (from.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: out.kind = Reply::Kind::text; break;
    case REDIS_REPLY_ERROR: out.kind = Reply::Kind::error; break;
    case REDIS_REPLY_INTEGER: out.kind = Reply::Kind::number; break;
    case REDIS_REPLY_ARRAY: out.kind = Reply::Kind::list; break;
    default: return out;
  }
  if (out.kind == Reply::Kind::number) out.number = from.integer;
  else if (out.kind != Reply::Kind::list) out.text.assign(from.str, from.len);
  else
    for (size_t n = 0; n < from.elements; ++n) out.list.push_back(reply_of(*from.element[n]));
  return out;
}

// Frees a reply of the library.
using Held = std::unique_ptr<void, void (*)(void*)>;

// Redis repeats no password in its answer.
Status log_in(redisContext* context, const Secret& password) {
  if (password.empty()) return ok();
  const char* words[] = {"AUTH", password.reveal().c_str()};
  const size_t lengths[] = {4, password.reveal().size()};
  Held reply(redisCommandArgv(context, 2, words, lengths), freeReplyObject);
  if (reply == nullptr) return unavailable(context->errstr);
  const auto* said = static_cast<const redisReply*>(reply.get());
  if (said->type != REDIS_REPLY_ERROR) return ok();
  return unavailable(fmt::format("the password was refused: {}", std::string_view(said->str, said->len)));
}

}  // namespace

Error unavailable(std::string_view why) {
  return {Errc::unavailable, "coordination_unavailable", fmt::format("Redis: {}", why), {}};
}

Result<std::unique_ptr<Session>> Session::open(const Config& config) {
  timeval limit = timeval_of(config.connect_within);
  redisContext* context = redisConnectWithTimeout(config.host.c_str(), config.port, limit);
  if (context == nullptr) return unavailable("out of memory");
  std::unique_ptr<Session> session(new Session(context));
  if (context->err != 0) return unavailable(context->errstr);
  redisSetTimeout(context, limit);
  Status in = log_in(context, config.password);
  if (!in) return in.error();
  int flags = ::fcntl(context->fd, F_GETFL);
  if (flags < 0 || ::fcntl(context->fd, F_SETFL, flags | O_NONBLOCK) != 0) return unavailable("fcntl failed");
  context->flags &= ~REDIS_BLOCK;
  return session;
}

Status Session::failed() const { return unavailable(context_->errstr[0] != '\0' ? context_->errstr : "broken"); }

Status Session::send(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  unsent_ = true;
  int added = redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), lengths.data());
  return added == REDIS_OK ? ok() : failed();
}

Status Session::flush() {
  int done = 0;
  if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return failed();
  unsent_ = done == 0;
  return ok();
}

Status Session::read(const std::function<void(Reply)>& each) {
  if (redisBufferRead(context_.get()) != REDIS_OK) return failed();
  for (;;) {
    void* reply = nullptr;
    if (redisGetReplyFromReader(context_.get(), &reply) != REDIS_OK) return failed();
    if (reply == nullptr) return ok();
    Held held(reply, freeReplyObject);
    each(reply_of(*static_cast<const redisReply*>(reply)));
  }
}

}  // namespace weir::redis
