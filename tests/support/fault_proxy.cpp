#include "fault_proxy.hpp"

#include "weir/base/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <random>
#include <set>
#include <thread>

namespace weir::test {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr size_t kPieceBytes = 16 << 10;

struct Link {
  explicit Link(tcp::socket from) : client(std::move(from)), server(client.get_executor()) {}
  // A socket that is closed with this option sends a reset, and what was not sent is thrown away.
  void reset() {
    boost::system::error_code ignored;
    for (tcp::socket* socket : {&client, &server}) {
      if (!socket->is_open()) continue;
      socket->set_option(asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
  }
  // The kernel throws away what arrives before TCP sees it.
  void be_deaf() {
    sock_filter nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
    sock_fprog program{1, nothing};
    ::setsockopt(client.native_handle(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    lossy = true;
  }
  tcp::socket client, server;
  bool lossy = false;  // bytes of it were thrown away
};
using LinkPtr = std::shared_ptr<Link>;

// A request begins a piece: no client here sends a second one before the first was answered.
bool asks_for(std::string_view piece, std::string_view path) {
  size_t target = piece.find(' ');
  return target != std::string_view::npos && piece.substr(target + 1).starts_with(path);
}

}  // namespace

struct FaultProxy::State {
  State(const std::string& url, int receive_bytes)
      : acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        plane(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)))),
        port(acceptor.local_endpoint().port()) {
    if (receive_bytes > 0) acceptor.set_option(asio::socket_base::receive_buffer_size(receive_bytes));
    asio::co_spawn(io, accept(), asio::detached);
    thread = std::thread([this] { io.run(); });
  }
  ~State() {
    io.stop();
    thread.join();
  }

  asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code failed;
      tcp::socket client = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
      if (failed) continue;
      auto link = std::make_shared<Link>(std::move(client));
      links.insert(link);
      if (fault.deaf) link->be_deaf();
      asio::co_spawn(io, serve(link), asio::detached);
    }
  }

  asio::awaitable<void> serve(LinkPtr link) {
    boost::system::error_code failed;
    if (!fault.cut) co_await link->server.async_connect(plane, asio::redirect_error(asio::use_awaitable, failed));
    if (fault.cut || failed) {
      drop(link);
      co_return;
    }
    asio::co_spawn(io, pump(link, link->client, link->server, true), asio::detached);
    co_await pump(link, link->server, link->client, false);
  }

  // One direction, in order: a delayed piece holds up those behind it.
  asio::awaitable<void> pump(LinkPtr link, tcp::socket& from, tcp::socket& to, bool up) {
    std::array<char, kPieceBytes> piece;
    asio::steady_timer timer(io);
    for (;;) {
      boost::system::error_code failed;
      while (up && fault.freeze && from.is_open()) {
        timer.expires_after(10ms);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      }
      size_t got =
          co_await from.async_read_some(asio::buffer(piece), asio::redirect_error(asio::use_awaitable, failed));
      if (failed) break;
      if (up && !fault.cut_path.empty() && asks_for({piece.data(), got}, fault.cut_path)) break;
      if (Duration pause = draw_delay() + (up ? pause_for(got) : 0us); pause > 0us) {
        timer.expires_after(pause);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      }
      if (up ? fault.lose_up : fault.lose_down) {
        link->lossy = true;
        continue;
      }
      co_await asio::async_write(to, asio::buffer(piece.data(), got),
                                 asio::redirect_error(asio::use_awaitable, failed));
      if (failed) break;
    }
    // An end is an end in both directions here: neither side half-closes. A black hole does not pass it on.
    if (!(up ? fault.lose_up : fault.lose_down)) drop(link);
    else link->lossy = true;
  }

  void drop(const LinkPtr& link) {
    link->reset();
    links.erase(link);
  }

  void apply(const Fault& wanted) {
    fault = wanted;
    std::set<LinkPtr> now = links;
    for (const LinkPtr& link : now)
      if (fault.deaf) link->be_deaf();
    for (const LinkPtr& link : now)
      if (fault.cut || (link->lossy && !fault.lose_up && !fault.lose_down && !fault.deaf)) drop(link);
  }

  Duration pause_for(size_t bytes) const {
    if (fault.bytes_per_s == 0) return 0us;
    return from_seconds(static_cast<double>(bytes) / static_cast<double>(fault.bytes_per_s));
  }
  Duration draw_delay() {
    if (fault.delay == 0us && fault.jitter == 0us) return 0us;
    double share = std::uniform_real_distribution<>(-1, 1)(random);
    return std::max<Duration>(0us, fault.delay + from_seconds(seconds(fault.jitter) * share));
  }

  asio::io_context io{1};
  tcp::acceptor acceptor;
  const tcp::endpoint plane;
  const int port;
  // Of the thread.
  Fault fault;
  std::set<LinkPtr> links;
  std::mt19937 random{4711};
  std::thread thread;
};

FaultProxy::FaultProxy(const std::string& url, int receive_bytes)
    : state_(std::make_unique<State>(url, receive_bytes)) {}
FaultProxy::~FaultProxy() = default;
std::string FaultProxy::url() const { return fmt::format("http://127.0.0.1:{}", state_->port); }

int FaultProxy::port() const { return state_->port; }

void FaultProxy::set(const Fault& fault) {
  std::promise<void> done;
  asio::post(state_->io, [&] {
    state_->apply(fault);
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace weir::test
