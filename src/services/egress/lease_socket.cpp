#include "weir/egress/lease_socket.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::egress {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

namespace {
constexpr size_t kLineMax = 4096;
constexpr int kConnectionsMax = 8;

bool may_speak(Local::socket& peer) {
  ucred who{};
  socklen_t size = sizeof who;
  bool known = ::getsockopt(peer.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  return known && (who.uid == ::geteuid() || who.uid == 0);
}

json::object refusal(std::string_view code, std::string_view message) {
  return {{"error", {{"code", code}, {"message", message}}}};
}
}  // namespace

struct LeaseSocket::State : std::enable_shared_from_this<State> {
  State(asio::io_context& io, SendRight& held, std::function<void()> told)
      : acceptor(io), right(held), changed(std::move(told)) {}

  json::object answer(std::string_view line) {
    auto parsed = json::parse_text(line);
    if (!parsed || !parsed->is_object()) return refusal("bad_request", "a line is one JSON object");
    const json::object& asked = parsed->get_object();
    if (!asked.empty()) {
      auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
        const json::value* found = asked.if_contains(name);
        if (found == nullptr || !found->is_int64() || found->get_int64() < 0) return std::nullopt;
        return found->get_int64();
      };
      auto version = number("version"), until = number("valid_until_us"), keep = number("keep_until_us");
      if (!version || !until || (asked.contains("keep_until_us") && !keep))
        return refusal("bad_request", "version, valid_until_us and keep_until_us must be whole numbers");
      SendRight::Ends ends{Instant(Duration(*until)), Instant(Duration(keep.value_or(*until)))};
      Status extended = right.extend(*version, ends);
      if (!extended) return refusal(extended.error().reason, extended.error().message);
      changed();
    }
    json::object now{{"version", right.version()}, {"valid_until_us", nullptr}, {"keep_until_us", nullptr},
                     {"control", control}};
    if (auto ends = right.ends()) {
      now["valid_until_us"] = ends->valid_until.time_since_epoch().count();
      now["keep_until_us"] = ends->keep_until.time_since_epoch().count();
    }
    return now;
  }

  asio::awaitable<void> serve(std::shared_ptr<State> self, Local::socket peer) {
    std::string line;
    boost::system::error_code failed;
    while (!failed) {
      size_t size = co_await asio::async_read_until(peer, asio::dynamic_buffer(line, kLineMax), '\n',
                                                    asio::redirect_error(asio::use_awaitable, failed));
      if (failed) break;
      std::string reply = json::to_text(self->answer(std::string_view(line).substr(0, size - 1))) + "\n";
      line.erase(0, size);
      co_await asio::async_write(peer, asio::buffer(reply), asio::redirect_error(asio::use_awaitable, failed));
    }
    --self->connections;
  }

  asio::awaitable<void> accept(std::shared_ptr<State> self) {
    for (;;) {
      boost::system::error_code failed;
      Local::socket peer = co_await self->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
      if (!self->acceptor.is_open()) co_return;
      if (failed) {  // no descriptors are left, perhaps
        asio::steady_timer pause(self->acceptor.get_executor(), 100ms);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
        continue;
      }
      if (self->connections >= kConnectionsMax || !may_speak(peer)) continue;
      ++self->connections;
      spawn(self->acceptor.get_executor(), serve(self, std::move(peer)), "a connection of the lease socket");
    }
  }

  Local::acceptor acceptor;
  SendRight& right;
  std::function<void()> changed;
  std::string path, control;
  int connections = 0;
};

LeaseSocket::LeaseSocket(asio::io_context& io, SendRight& right, std::function<void()> changed)
    : state_(std::make_shared<State>(io, right, std::move(changed))) {}

LeaseSocket::~LeaseSocket() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  if (!state_->path.empty()) ::unlink(state_->path.c_str());
}

Status LeaseSocket::listen(const std::string& path) {
  auto refused = [&](std::string_view why, std::string reason = "config_invalid") {
    return Error{Errc::conflict, std::move(reason), fmt::format("cannot listen on {}: {}", path, why)};
  };
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return refused("the path is too long for a socket");
  boost::system::error_code failed;
  Local::endpoint at(path);
  Local::socket probe(state_->acceptor.get_executor());
  probe.connect(at, failed);
  if (!failed) return refused("another forwarder answers there", "lease_socket_busy");
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0 && S_ISSOCK(about.st_mode)) ::unlink(path.c_str());
  state_->acceptor.open(at.protocol(), failed);
  mode_t before = ::umask(0177);
  if (!failed) state_->acceptor.bind(at, failed);
  ::umask(before);
  if (!failed) state_->acceptor.listen(Local::acceptor::max_listen_connections, failed);
  if (failed) return refused(failed.message());
  state_->path = path;
  spawn(state_->acceptor.get_executor(), state_->accept(state_), "the lease socket");
  return ok();
}

void LeaseSocket::tell_control(std::string url) { state_->control = std::move(url); }

}  // namespace weir::egress
