#include "sender.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace weir::rabbitmq {

namespace {

constexpr Backoff kPause = {.first = 100ms, .cap = 2s, .factor = 2.0, .jitter = 0.5};
constexpr int kBurst = 32;  // events that are written before the broker's answers are read
const Error kTooLate{Errc::unavailable, "deadline_passed", "the right to publish ended before the event was written"};
const Error kBlocked{Errc::unavailable, "broker_blocked", "RabbitMQ takes no events: it is short of memory or disk"};

}  // namespace

Sender::Sender(const Config& config) : config_(config) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  WEIR_ASSERT(wake_fd_ >= 0);
  thread_ = std::thread([this] { run(); });
}

Sender::~Sender() {
  stop_ = true;
  ::eventfd_write(wake_fd_, 1);
  {
    std::lock_guard guard(gate_);
    if (open_fd_ >= 0 && publications_ > 0) reset(open_fd_);  // it may be blocked in a write
  }
  thread_.join();
  ::close(wake_fd_);
}

void Sender::submit(PublicationPtr publication) {
  {
    std::lock_guard guard(gate_);
    if (publications_ < config_.publications_max) {
      ++publications_;
      publication->answer = [this, answer = std::move(publication->answer)](Result<std::vector<Confirmation>> said) {
        {
          std::lock_guard again(gate_);
          --publications_;
        }
        answer(std::move(said));
      };
      fresh_.push_back(std::move(publication));
    }
  }
  if (publication)
    publication->answer(unavailable(fmt::format("{} publications wait already", config_.publications_max)));
  else ::eventfd_write(wake_fd_, 1);
}

void Sender::give_up(Publication& publication) {
  {
    std::lock_guard guard(gate_);
    publication.given_up = true;
    if (publication.begun && open_fd_ >= 0) reset(open_fd_);
  }
  ::eventfd_write(wake_fd_, 1);
}

void Sender::run() {
  ::pthread_setname_np(::pthread_self(), "rabbitmq");
  sigset_t signals;  // the library writes to sockets whose other end may be gone
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  while (!stop_) {
    connect();
    take_new();
    Status going = connection_ ? write() : ok();
    if (going && connection_) going = read();
    if (!going) drop(going.error());
    wait();
  }
  if (connection_ && outbox_.empty() && !blocked_) connection_->say_goodbye();
  take_new();
  drop(unavailable("the bus is shut down"));
}

void Sender::connect() {
  if (connection_ || boot_now() < retry_at_) return;
  auto opened = Connection::open(config_);
  Status ready = opened ? (*opened)->declare_events() : opened.error();
  if (ready) ready = (*opened)->begin_confirms();
  if (!ready) return drop(ready.error());
  connection_ = *std::move(opened);
  outbox_.begin_again();
  blocked_ = false;
  resume_at_ = {};
  // A descriptor of its own: the library closes its one whenever it finds an error, and the number may be another's
  // then.
  std::lock_guard guard(gate_);
  open_fd_ = ::fcntl(connection_->fd(), F_DUPFD_CLOEXEC, 0);
}

void Sender::drop(const Error& why) {
  connection_.reset();
  {
    std::lock_guard guard(gate_);
    if (open_fd_ >= 0) ::close(std::exchange(open_fd_, -1));
  }
  outbox_.fail_all(why);
  outbox_.begin_again();
  if (stop_) return;
  if (failures_ == 0 && !alarmed_) log::warn("rabbitmq.lost", why.message).with("broker", shown(config_.address));
  retry_at_ = boot_now() + kPause.delay(failures_++, random_unit());
  down_ = why;
}

// Without a connection nobody has to wait for one: what is asked then fails at once.
void Sender::take_new() {
  std::deque<PublicationPtr> fresh;
  {
    std::lock_guard guard(gate_);
    fresh.swap(fresh_);
  }
  for (PublicationPtr& each : fresh) {
    if (!connection_) each->answer(stop_ ? unavailable("the bus is shut down") : down_);
    else if (blocked_) each->answer(kBlocked);
    else outbox_.add(std::move(each));
  }
}

// Nothing that can block stands between the look at the clock and the bytes.
bool Sender::may_begin(Publication& publication) {
  std::lock_guard guard(gate_);
  if (publication.given_up || (publication.deadline && boot_now() >= *publication.deadline)) return false;
  publication.begun = true;
  return true;
}

Status Sender::write() {
  for (int n = 0; n < kBurst && may_write() && outbox_.unconfirmed() < config_.unconfirmed_max; ++n) {
    const Outbox::Item* item = outbox_.next();
    if (item == nullptr || !connection_->takes_more()) break;
    PublicationPtr publication = item->publication;
    if (!may_begin(*publication)) {
      outbox_.fail(*publication, kTooLate);
      // What the kernel holds of it must not be sent either.
      if (publication->begun) return unavailable("a right to publish ended among the events of a batch");
      continue;
    }
    TRY(sent, connection_->publish(item->event()));
    outbox_.written();
  }
  return ok();
}

Status Sender::read() {
  for (;;) {
    TRY(word, connection_->read());
    if (!word) return ok();
    TRY(taken, take(*word));
  }
}

void Sender::show_alarm(bool now, const std::string& why) {
  if (std::exchange(alarmed_, now) == now) return;
  if (now) log::warn("rabbitmq.blocked", "the broker takes no events").with("why", why);
  else log::info("rabbitmq.unblocked", "the broker takes events again");
}

Status Sender::take(const Word& word) {
  if (const auto* blocked = std::get_if<Blocked>(&word)) {
    blocked_ = blocked->blocked;
    show_alarm(blocked_, blocked->why);
    // What is under way is taken back: its callers keep it, and nothing of it may arrive when they have stopped
    // waiting.
    if (blocked_ && !outbox_.empty()) return kBlocked;
    return ok();
  }
  // The stream takes everything: somebody has removed it, or its binding. A new connection declares both again.
  if (const auto* back = std::get_if<Returned>(&word))
    return unavailable(fmt::format("no queue takes the event {}", back->event_id));
  const auto& answer = std::get<Answered>(word);
  if (answer.accepted) {
    show_alarm(false, {});
    if (std::exchange(failures_, 0) > 0)
      log::info("rabbitmq.back", "the broker confirms events again").with("broker", shown(config_.address));
    outbox_.confirmed(answer.number, answer.all_up_to);
    return ok();
  }
  int refusals = outbox_.refused(answer.number, answer.all_up_to);
  if (refusals == 0) return ok();
  resume_at_ = boot_now() + kPause.delay(refusals - 1, random_unit());
  return ok();
}

void Sender::wait() {
  std::array<pollfd, 2> fds{pollfd{wake_fd_, POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  Instant now = boot_now(), until = now + config_.heartbeat / 4;
  if (connection_) {
    fds[1].fd = connection_->fd();
    bool more = outbox_.next() != nullptr && outbox_.unconfirmed() < config_.unconfirmed_max;
    if (more && may_write()) fds[1].events |= POLLOUT;
    else if (more && !blocked_) until = std::min(until, resume_at_);
  } else {
    until = std::min(until, retry_at_);
  }
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(ms, 0)));
  eventfd_t count = 0;
  if (fds[0].revents != 0) ::eventfd_read(wake_fd_, &count);
}

}  // namespace weir::rabbitmq
