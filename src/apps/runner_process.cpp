#include "runner_process.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/net/client.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

constexpr Duration kLookEvery = 500ms;
constexpr Duration kCalm = 60s;  // whoever ran this long is started again at once

}  // namespace

asio::awaitable<Result<std::string>> RunnerProcess::address_of() {
  constexpr std::string_view before = "listening on ";
  for (;;) {
    CO_TRY(line, co_await child_->read_line());
    if (line.starts_with(before)) co_return line.substr(before.size());
  }
}

// Asks while the process lives; its end is noticed by the failing question at the latest.
asio::awaitable<void> RunnerProcess::look() {
  auto address = co_await address_of();
  if (!address) co_return;
  auto client = net::HttpClient::create(io_, *address);
  if (!client) co_return;
  while (child_->running() && !stopping_) {
    net::ClientRequest request{.target = "/state", .timeout = 2s};
    auto answer = co_await client->send(std::move(request));
    auto parsed = answer ? json::parse_text(answer->body) : Result<json::value>(json::value());
    if (parsed) state_ = *std::move(parsed);
    co_await clock_.wait(kLookEvery);
  }
}

asio::awaitable<void> RunnerProcess::run() {
  for (int failures = 0; !stopping_;) {
    Instant started = clock_.now();
    Program program{.path = posix::self_path(), .arguments = arguments_};
    program.arguments.push_back("--lifeline");
    auto child = host_.start(program);
    if (!child) {
      log::error("runner.start_failed", child.error().message);
    } else {
      child_ = *std::move(child);
      co_await look();
      int code = co_await child_->wait();
      state_ = nullptr;
      if (!stopping_) log::warn("runner.restarting", "the runner ended; another one is started").with("exit_code", code);
    }
    if (clock_.now() - started > kCalm) failures = 0;
    if (!stopping_ && failures++ > 0) co_await clock_.wait(Backoff{.first = 500ms, .cap = 10s}.delay(failures, random_unit()));
  }
  ended_ = true;
}

asio::awaitable<void> RunnerProcess::stop(Duration grace) {
  stopping_ = true;
  if (child_) child_->signal(SIGTERM);
  for (Instant until = clock_.now() + grace; !ended_ && clock_.now() < until;) co_await clock_.wait(20ms);
  if (!ended_ && child_) {
    log::warn("runner.killed", "the runner did not stop within its grace");
    child_->signal(SIGKILL);
  }
}

}  // namespace weir::apps
