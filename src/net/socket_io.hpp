// Socket operations as coroutines. They are here, as plain functions, so that Asio's templates are compiled once.
// An error comes back in `failed`; a cancelled coroutine gets operation_aborted.
#pragma once

#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <string_view>

namespace weir::net {

using boost::asio::ip::tcp;
using boost::system::error_code;

boost::asio::awaitable<size_t> read_some(tcp::socket& socket, char* to, size_t room, error_code& failed);
// Writes both parts whole, as one packet where they fit. The socket must be in non-blocking mode: what the kernel
// takes at once never leaves the coroutine. From `write_by` on no byte is handed to the kernel: timed_out.
boost::asio::awaitable<void> write_all(tcp::socket& socket, std::string_view head, std::string_view body,
                                       error_code& failed, Instant write_by = Instant::max());
boost::asio::awaitable<void> connect(tcp::socket& socket, const tcp::endpoint& to, error_code& failed);
boost::asio::awaitable<tcp::socket> accept(tcp::acceptor& acceptor, error_code& failed);
// Lets everything run that is ready to run.
boost::asio::awaitable<void> next_turn();
// Returns when the timer ends or is cancelled.
boost::asio::awaitable<void> wait(boost::asio::steady_timer& timer);

// Sockets are closed on exec from their first moment: a child that another thread starts must not inherit them.
void open_private(tcp::socket& socket, const tcp& protocol, error_code& failed);
void open_private(tcp::acceptor& acceptor, const tcp& protocol, error_code& failed);

// An answer or a request goes out when it is written, and a sync write never blocks the loop.
void prepare(tcp::socket& socket);

}  // namespace weir::net
