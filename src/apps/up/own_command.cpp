#include "own_command.hpp"

#include "screen.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/net/client.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <cmath>
#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

constexpr Duration kLookEvery = 500ms;
constexpr Duration kCalm = 60s;  // a command that ran this long is started again at once

}  // namespace

asio::awaitable<Result<std::string>> OwnCommand::address_of() {
  constexpr std::string_view before = "listening on ";
  for (;;) {
    CO_TRY(line, co_await child_->read_line());
    if (line.starts_with(before)) co_return line.substr(before.size());
  }
}

// Asks while the process lives; its end is noticed by the failing question at the latest.
asio::awaitable<void> OwnCommand::look() {
  auto address = co_await address_of();
  if (!address) co_return;
  auto client = net::HttpClient::create(io_, *address);
  if (!client) co_return;
  while (child_->running() && !stopping_) {
    net::ClientRequest request{.target = spec_.target, .timeout = 2s};
    if (spec_.bearer) request.bearer = spec_.bearer();
    auto answer = co_await client->send(std::move(request));
    if (answer) {
      answered_ = true;
      end_.clear();
    }
    bool told = answer && answer->status == 200;
    auto parsed = told ? json::parse_text(answer->body) : Result<json::value>(json::value());
    if (parsed) state_ = *std::move(parsed);
    for (std::string& line : news_of(state_, heard_)) news_.push_back(std::move(line));
    co_await clock_.wait(kLookEvery);
  }
}

asio::awaitable<void> OwnCommand::run() {
  for (int failures = 0; !stopping_;) {
    Instant started = clock_.now();
    Program program{.path = posix::self_path(), .arguments = spec_.arguments, .document = spec_.document,
                    .unset = spec_.unset};
    program.arguments.push_back("--lifeline");
    auto child = host_.start(program);
    if (!child) {
      log::error(spec_.name + ".start_failed", child.error().message);
      end_ = fmt::format("the {} cannot be started: {}", spec_.name, child.error().message);
    } else {
      child_ = *std::move(child);
      answered_ = false;
      co_await look();
      int code = co_await child_->wait();
      state_ = nullptr;
      end_ = fmt::format("the {} ended with exit code {}", spec_.name, code);
      if (!stopping_) news_.push_back(fmt::format("{} {}: another one is started", to_iso(clock_.wall()).substr(11, 8), end_));
      if (!stopping_)
        log::warn(spec_.name + ".restarting", fmt::format("the {} ended; another one is started", spec_.name))
            .with("exit_code", code);
    }
    if (clock_.now() - started > kCalm) failures = 0;
    if (failures++ == 0) continue;
    again_at_ = clock_.now() + Backoff{.first = 500ms, .cap = 10s}.delay(failures, random_unit());
    while (!stopping_ && clock_.now() < again_at_) co_await clock_.wait(50ms);
  }
  ended_ = true;
}

std::string OwnCommand::absence(std::string_view log) const {
  if (end_.empty()) return fmt::format("the {} {}", spec_.name, answered_ ? "does not answer" : "is starting");
  double wait_s = std::ceil(seconds(again_at_ - clock_.now()));
  std::string when = wait_s > 0 ? fmt::format("in {:.0f} s", wait_s) : "now";
  return fmt::format("{}\nIt is started again {}; the log says why: {}", end_, when, log);
}

asio::awaitable<void> OwnCommand::stop(Duration grace) {
  stopping_ = true;
  if (child_) child_->signal(SIGTERM);
  for (Instant until = clock_.now() + grace; !ended_ && clock_.now() < until;) co_await clock_.wait(20ms);
  if (!ended_ && child_) {
    log::warn(spec_.name + ".killed", fmt::format("the {} did not stop within its grace", spec_.name));
    child_->signal(SIGKILL);
  }
}

}  // namespace weir::apps
