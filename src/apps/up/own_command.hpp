// RunnerProcess: the runner of `weir up`: a `weir runner` of this machine that is started again when it ends.
//
// `run` lasts until `stop` has completed; `state` is what the runner last reported about its cameras. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/ports/process_host.hpp"

#include <boost/asio/io_context.hpp>

#include <string>
#include <utility>
#include <vector>

namespace weir::apps {

class RunnerProcess {
 public:
  RunnerProcess(boost::asio::io_context& io, Clock& clock, ProcessHost& host, std::vector<std::string> arguments)
      : io_(io), clock_(clock), host_(host), arguments_(std::move(arguments)) {}

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> stop(Duration grace);
  // Null while no runner answers; `absence` tells a person why, and names `log`, where more stands.
  const json::value& state() const { return state_; }
  std::string absence(std::string_view log) const;
  // What happened since this was asked last, a line each.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  boost::asio::awaitable<Result<std::string>> address_of();
  boost::asio::awaitable<void> look();

  boost::asio::io_context& io_;
  Clock& clock_;
  ProcessHost& host_;
  const std::vector<std::string> arguments_;
  std::unique_ptr<Child> child_;
  json::value state_ = nullptr;
  std::string end_;     // of the runner before this one, until this one answers
  Instant again_at_{};  // when the next one is started
  std::vector<std::string> news_;
  std::string heard_;   // the time of the last thing that the runner told of
  bool answered_ = false, stopping_ = false, ended_ = false;
};

}  // namespace weir::apps
