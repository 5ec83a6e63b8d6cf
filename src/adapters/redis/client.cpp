#include "client.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace weir::redis {

namespace asio = boost::asio;

namespace {

constexpr Backoff kPause = {.first = 100ms, .cap = 2s, .factor = 2.0, .jitter = 0.5};
constexpr Duration kPingEvery = 2s;      // on a connection that only listens and hears nothing
constexpr Duration kSilenceMax = 5s;     // then it is given up
constexpr int kLookMs = 100;             // the thread looks at its time limits at least so often

Error closed() { return unavailable("the client is shut down"); }

}  // namespace

Client::Client(asio::any_io_executor loop, Config config)
    : config_(std::move(config)), ears_(std::move(loop), config_.heard_max) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  WEIR_ASSERT(wake_fd_ >= 0);
  thread_ = std::thread([this] { run(); });
}

Client::~Client() {
  stop_ = true;
  wake();
  thread_.join();
  std::lock_guard guard(mutex_);
  fail_all(waiting_, closed());
  ::close(wake_fd_);
}

void Client::wake() const {
  std::uint64_t one = 1;
  // A counter that is full wakes the thread as well.
  [[maybe_unused]] ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

asio::awaitable<Result<Reply>> Client::ask(std::vector<std::string> words) {
  auto result = std::make_shared<Result<Reply>>(closed());
  auto initiate = [this, &words, result](auto handler) {
    // The executor's outstanding work keeps the loop alive until the answer has come.
    auto executor = asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    Question question;
    question.words = std::move(words);
    question.answer = [result, shared, executor](Result<Reply> answer) {
      *result = std::move(answer);
      asio::post(executor, [shared]() mutable { std::move (*shared)(); });
    };
    submit(std::move(question));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
  co_return std::move(*result);
}

void Client::submit(Question question) {
  if (unanswered_ >= config_.questions_max)
    return question.answer(unavailable(fmt::format("{} requests to Redis wait already", unanswered_)));
  ++unanswered_;
  question.give_up = boot_now() + config_.answer_within;
  {
    std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(question));
  }
  wake();
}

std::unique_ptr<Listening> Client::listen(std::vector<std::string> channels, std::function<void(const Heard&)> each) {
  auto listening = ears_.listen(std::move(channels), std::move(each));
  wake();
  return listening;
}

void Client::fail_all(std::deque<Question>& questions, const Error& why) {
  for (; !questions.empty(); questions.pop_front()) {
    --unanswered_;
    questions.front().answer(why);
  }
}

void Client::run() {
  // hiredis writes to sockets whose other end may be gone.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  while (!stop_) {
    send_questions();
    keep_listening();
    wait_for_something();
    give_up_late_ones();
  }
  fail_all(asked_, closed());
}

void Client::connect(Line& line, std::string_view what) {
  if (line.session || boot_now() < line.retry_at) return;
  auto opened = Session::open(config_);
  if (!opened) return drop(line, opened.error());
  if (line.failures > 0) log::info("coordination.connected", "Redis answers again").with("connection", what);
  line.session = *std::move(opened);
  line.failures = 0;
}

void Client::drop(Line& line, const Error& why) {
  line.session.reset();
  if (line.failures == 0) log::warn("coordination.lost", why.message);
  line.retry_at = boot_now() + kPause.delay(line.failures++, random_unit());
}

void Client::send_questions() {
  std::deque<Question> fresh;
  {
    std::lock_guard guard(mutex_);
    if (waiting_.empty()) return;
  }
  connect(questions_, "questions");
  if (!questions_.session) return;
  {
    std::lock_guard guard(mutex_);
    fresh.swap(waiting_);
  }
  Status sent = ok();
  for (Question& each : fresh) {
    if (sent) sent = questions_.session->send(each.words);
    asked_.push_back(std::move(each));
  }
  if (sent) sent = questions_.session->flush();
  if (sent) return;
  drop(questions_, sent.error());
  fail_all(asked_, sent.error());
}

void Client::give_up_late_ones() {
  Instant now = boot_now();
  std::deque<Question> late;
  {
    std::lock_guard guard(mutex_);
    for (; !waiting_.empty() && waiting_.front().give_up <= now; waiting_.pop_front())
      late.push_back(std::move(waiting_.front()));
  }
  fail_all(late, unavailable("not connected"));
  if (asked_.empty() || asked_.front().give_up > now) return;
  Error silent = unavailable("no answer in time");
  drop(questions_, silent);
  fail_all(asked_, silent);
}

void Client::keep_listening() {
  std::set<std::string> wanted = ears_.channels();
  if (!listening_.session) {
    if (wanted.empty()) return;
    connect(listening_, "listening");
    if (!listening_.session) return;
    subscribed_.clear();
    heard_at_ = pinged_at_ = boot_now();
  }
  // A channel that nobody listens on any more is left only after Redis has confirmed it, so that the confirmation of a
  // later subscription cannot be taken for an earlier one's.
  std::vector<std::string> left = {"UNSUBSCRIBE"};
  for (const auto& [channel, is_confirmed] : subscribed_)
    if (is_confirmed && !wanted.contains(channel)) left.push_back(channel);
  for (size_t n = 1; n < left.size(); ++n) subscribed_.erase(left[n]);
  std::vector<std::string> words = {"SUBSCRIBE"};
  for (const std::string& channel : wanted)
    if (subscribed_.emplace(channel, false).second) words.push_back(channel);
  Instant now = boot_now();
  Status sent = left.size() > 1 ? listening_.session->send(left) : ok();
  if (sent && words.size() > 1) sent = listening_.session->send(words);
  else if (sent && now - std::max(heard_at_, pinged_at_) >= kPingEvery) {
    sent = listening_.session->send({"PING"});
    pinged_at_ = now;
  }
  if (sent && listening_.session->wants_to_write()) sent = listening_.session->flush();
  if (sent && now - heard_at_ >= kSilenceMax) sent = unavailable("the connection for listening is silent");
  if (!sent) {
    drop(listening_, sent.error());
    ears_.interrupt();
    return;
  }
  std::set<std::string> confirmed;
  for (const auto& [channel, is_confirmed] : subscribed_)
    if (is_confirmed) confirmed.insert(channel);
  ears_.begin(confirmed);
}

void Client::wait_for_something() {
  std::array<pollfd, 3> fds{pollfd{wake_fd_, POLLIN, 0}, pollfd{-1, POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  const std::array<Line*, 2> lines{&questions_, &listening_};
  for (size_t n = 0; n < lines.size(); ++n) {
    if (!lines[n]->session) continue;
    fds[n + 1].fd = lines[n]->session->fd();
    if (lines[n]->session->wants_to_write()) fds[n + 1].events |= POLLOUT;
  }
  if (::poll(fds.data(), fds.size(), kLookMs) <= 0) return;
  std::uint64_t count = 0;
  if ((fds[0].revents & POLLIN) != 0) [[maybe_unused]] ssize_t taken = ::read(wake_fd_, &count, sizeof count);
  if ((fds[1].revents & ~POLLOUT) != 0) read_answers();
  if ((fds[1].revents & POLLOUT) != 0 && questions_.session) {
    Status flushed = questions_.session->flush();
    if (!flushed) {
      drop(questions_, flushed.error());
      fail_all(asked_, flushed.error());
    }
  }
  if ((fds[2].revents & ~POLLOUT) != 0) read_messages();
}

void Client::read_answers() {
  Status read = questions_.session->read([this](Reply reply) {
    if (asked_.empty()) return;  // what a server says unasked ends the connection anyway
    --unanswered_;
    asked_.front().answer(std::move(reply));
    asked_.pop_front();
  });
  if (read) return;
  drop(questions_, read.error());
  fail_all(asked_, read.error());
}

void Client::read_messages() {
  heard_at_ = boot_now();
  Status read = listening_.session->read([this](Reply reply) {
    if (reply.kind != Reply::Kind::list || reply.list.size() != 3) return;
    if (reply.list[0].text == "message") ears_.heard(reply.list[1].text, reply.list[2].text);
    else if (reply.list[0].text == "subscribe") subscribed_[reply.list[1].text] = true;
  });
  if (read) return;
  drop(listening_, read.error());
  ears_.interrupt();
}

}  // namespace weir::redis
