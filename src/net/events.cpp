#include "events.hpp"

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr Duration kKeepAlive = 15s;

std::string_view next_line(std::string_view& text) {
  size_t end = text.find_first_of("\r\n");
  std::string_view line = text.substr(0, end);
  if (end == std::string_view::npos) {
    text = {};
    return line;
  }
  size_t length = text.substr(end, 2) == "\r\n" ? 2 : 1;
  text.remove_prefix(end + length);
  return line;
}

// A name or an id is one line, whatever it holds.
void append_field(std::string& to, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  to += name;
  for (char c : value)
    if (c != '\r' && c != '\n' && c != '\0') to += c;
  to += '\n';
}

}  // namespace

std::string event_text(std::string_view id, std::string_view event, std::string_view data) {
  std::string out;
  out.reserve(data.size() + id.size() + event.size() + 32);
  append_field(out, "id: ", id);
  append_field(out, "event: ", event);
  bool ends_in_break = !data.empty() && (data.back() == '\n' || data.back() == '\r');
  do {
    out += "data: ";
    out += next_line(data);
    out += '\n';
  } while (!data.empty());
  if (ends_in_break) out += "data: \n";
  out += '\n';
  return out;
}

namespace {
Error gone_error() { return Error{Errc::unavailable, "client_gone", "the client of the event stream has gone"}; }
}  // namespace

Connection::Events::Events(SealedSocket& socket, Clock& clock, Duration write_timeout, bool chunked)
    : socket_(socket), clock_(clock), write_timeout_(write_timeout), chunked_(chunked), written_(clock.now()) {}

// False where TLS has ended, after which nothing can be told any more.
bool Connection::Events::append(std::string_view text) {
  size_t begin = unsent_.size();
  if (chunked_) fmt::format_to(std::back_inserter(unsent_), "{:x}\r\n", text.size());
  unsent_ += text;
  if (chunked_) unsent_ += "\r\n";
  return socket_.seal(unsent_, begin);
}

asio::awaitable<Status> Connection::Events::send_text(std::string_view events) {
  if (gone_) co_return gone_error();
  if (sending_) co_return Error{Errc::internal, "send_overlaps", "an event is still being sent on this stream"};
  sending_ = true;
  deadline_ = clock_.now() + write_timeout_;
  error_code failed = asio::error::connection_reset;
  if (append(events)) co_await write_all(socket_.raw(), unsent_, {}, failed);
  sending_ = false;
  if (failed) {
    // Part of the event may be out, so nothing can follow it.
    cut_off();
    co_return gone_error();
  }
  unsent_.clear();
  written_ = deadline_ - write_timeout_;
  deadline_ = Instant::max();
  co_return ok();
}

void Connection::Events::tend(Instant now) {
  if (gone_) return;
  if (now >= deadline_) return cut_off();
  if (sending_) return;
  if (unsent_.empty() && now - written_ >= kKeepAlive && !append(": keep\n\n")) return cut_off();
  if (!unsent_.empty()) write_now(now);
}

// What the kernel does not take now is tried again at the next sweep, or goes out before the next event.
void Connection::Events::write_now(Instant now) {
  error_code failed;
  size_t put = socket_.raw().write_some(asio::buffer(unsent_), failed);
  unsent_.erase(0, put);
  bool full = failed == asio::error::would_block || failed == asio::error::try_again;
  if (failed && !full) return cut_off();
  if (put > 0) written_ = now;
  if (unsent_.empty())
    deadline_ = Instant::max();
  else if (deadline_ == Instant::max())
    deadline_ = now + write_timeout_;
}

void Connection::Events::cut_off() {
  gone_ = true;
  socket_.close();
}

asio::awaitable<void> Connection::Events::finish() {
  if (gone_) co_return;
  size_t begin = unsent_.size();
  if (chunked_) unsent_ += "0\r\n\r\n";
  error_code failed;
  if (socket_.seal(unsent_, begin)) co_await write_all(socket_.raw(), unsent_, {}, failed);
}

}  // namespace weir::net
