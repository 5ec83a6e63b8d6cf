#include "keeper_talk.hpp"

#include "launch.hpp"

#include "weir/base/json.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>
#include <sys/un.h>

namespace weir::posix {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

namespace {

constexpr Duration kPatience = 1s;
constexpr size_t kLineMax = 4096;

Error silent(const std::string& socket, std::string_view why) {
  return {Errc::unavailable, "kept_silent", fmt::format("nobody answers at {}: {}", socket, why)};
}

// The other side's words are kept: it may be another program than this one's version knows.
Result<Leased> read_answer(const std::string& socket, std::string_view line) {
  auto parsed = json::parse_text(line);
  if (!parsed || !parsed->is_object()) return silent(socket, "the answer is not a JSON object");
  const json::object& said = parsed->get_object();
  auto text = [](const json::object& from, std::string_view name) {
    const json::value* found = from.if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
  };
  if (const json::value* error = said.if_contains("error"); error != nullptr && error->is_object())
    return Error{Errc::conflict, text(error->get_object(), "code"), text(error->get_object(), "message")};
  const json::value* version = said.if_contains("version");
  const json::value* until = said.if_contains("valid_until_us");
  if (version == nullptr || until == nullptr || !version->is_int64() || !until->is_int64())
    return silent(socket, "the answer says neither version nor deadline");
  Instant valid_until{Duration(until->get_int64())};
  const json::value* keep = said.if_contains("keep_until_us");
  bool two = keep != nullptr && keep->is_int64();
  return Leased{version->get_int64(), {valid_until, two ? Instant(Duration(keep->get_int64())) : valid_until},
                text(said, "control")};
}

Descriptor connected(const std::string& socket) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (!fits_socket(socket)) return Descriptor();
  socket.copy(at.sun_path, sizeof at.sun_path - 1);
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  bool there = fd.get() >= 0 && ::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  return there ? std::move(fd) : Descriptor();
}

}  // namespace

bool fits_socket(const std::string& path) { return path.size() < sizeof(sockaddr_un::sun_path); }

asio::awaitable<Result<Leased>> extend_at(asio::io_context& io, std::string socket, Leased wanted) {
  if (!fits_socket(socket)) co_return silent(socket, "the path is too long for a socket");
  // Both outlive this coroutine's end, because the timer's handler may run after it.
  auto peer = std::make_shared<Local::socket>(io);
  asio::steady_timer late(io, kPatience);
  late.async_wait([peer](boost::system::error_code cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) peer->close(ignored);
  });
  boost::system::error_code failed;
  co_await peer->async_connect(Local::endpoint(socket), asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return silent(socket, failed.message());
  std::string line = fmt::format("{{\"version\":{},\"valid_until_us\":{},\"keep_until_us\":{}}}\n", wanted.version,
                                 wanted.term.valid_until.time_since_epoch().count(),
                                 wanted.term.keep_until.time_since_epoch().count());
  co_await asio::async_write(*peer, asio::buffer(line), asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return silent(socket, failed.message());
  line.clear();
  size_t size = co_await asio::async_read_until(*peer, asio::dynamic_buffer(line, kLineMax), '\n',
                                                asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return silent(socket, peer->is_open() ? failed.message() : "a second has passed");
  co_return read_answer(socket, std::string_view(line).substr(0, size - 1));
}

// A keeper reads what was written also when the writer is gone.
bool tell(const std::string& socket, std::string_view order) {
  Descriptor peer = connected(socket);
  if (peer.get() < 0) return false;
  std::string line = fmt::format("{{\"order\":\"{}\"}}\n", order);
  return ::send(peer.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

int listener_of(const std::string& socket) {
  Descriptor peer = connected(socket);
  ucred who{};
  socklen_t size = sizeof who;
  bool known = peer.get() >= 0 && ::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  return known ? who.pid : 0;
}

}  // namespace weir::posix
