// OwnCommand: a `weir` command that `weir up` keeps running beside itself: it is started again when it ends.
//
// `run` lasts until `stop` has completed; `state` is what the command last answered about what it does. Where `weir up`
// is killed, the command notices the end of its standard input and ends, too. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/ports/process_host.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weir::apps {

struct OwnCommandSpec {
  std::string name;                      // "runner": stands in messages, and before the names of log events
  std::vector<std::string> arguments;    // it takes --lifeline as well
  Secret document = {};                  // where not empty, the command reads it at /dev/fd/3
  std::vector<std::string> unset = {};   // of the environment
  std::string target = "/state";         // where it answers its state
  std::function<Secret()> bearer = {};   // the token that it wants to see there
};

class OwnCommand {
 public:
  OwnCommand(boost::asio::io_context& io, Clock& clock, ProcessHost& host, OwnCommandSpec spec)
      : io_(io), clock_(clock), host_(host), spec_(std::move(spec)) {}

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> stop(Duration grace);
  // Null while the command does not answer; `absence` tells a person why, and names `log`, where more stands.
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
  const OwnCommandSpec spec_;
  std::unique_ptr<Child> child_;
  json::value state_ = nullptr;
  std::string end_;     // of the process before this one, until this one answers
  Instant again_at_{};  // when the next one is started
  std::vector<std::string> news_;
  std::string heard_;   // the time of the last thing that the command told of
  bool answered_ = false, stopping_ = false, ended_ = false;
};

}  // namespace weir::apps
