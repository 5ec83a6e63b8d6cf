#include "weir/keeper/keeping.hpp"

#include "door.hpp"
#include "exit_record.hpp"
#include "family.hpp"
#include "leash.hpp"
#include "line.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace weir::keeper {

namespace {

using namespace std::chrono_literals;

// The descriptors that a keeper is given.
constexpr int kDocument = 3, kLock = 4, kListener = 5;
constexpr int kExitUsage = 2;
constexpr int kExitNotStarted = 127;  // as a shell says of a command that cannot be run
constexpr int kRoundMs = 100;         // between two rounds of killing where no child's end begins the next one

Micros boot_now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::duration_cast<Micros>(std::chrono::nanoseconds(t.tv_nsec));
}

void complain(const Task& task, const char* what) {
  std::fprintf(stderr, "weir-keeper: cannot %s %s: %s\n", what, task.command[0], std::strerror(errno));
}

class Keeping final : public Answers {
 public:
  explicit Keeping(const Task& task) : task_(task), leash_(task), door_(kListener) {}
  bool begin();
  void run();

 private:
  size_t answer(std::string_view line, char* reply, size_t reply_bytes_max) override;
  size_t state(char* reply, size_t reply_bytes_max) const;
  void take_ends();
  void record(int code);
  bool is_over();
  void set_alarm();
  void hear_news(int wait_ms);

  const Task task_;
  const bool has_document_ = ::fcntl(kDocument, F_GETFD) >= 0;
  Leash leash_;
  Door door_;
  Family family_;
  bool recorded_ = false;
  int ends_ = -1;   // signalfd: a child has ended
  int alarm_ = -1;  // timerfd: the leash is at its end
};

// What a terminal, a service manager or an operator sends to the orchestrator and its neighbours does not end a keeper.
bool Keeping::begin() {
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  ends_ = ::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  alarm_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  ::setsid();  // fails where whoever started this process has seen to it
  // From now on the kernel names this process, no longer its parent, to those who connect and ask who is there.
  bool listens = ::listen(kListener, static_cast<int>(Door::kConnectionsMax)) == 0;
  ::fcntl(kListener, F_SETFD, FD_CLOEXEC);
  bool ready = ends_ >= 0 && alarm_ >= 0 && listens && ::fcntl(kLock, F_GETFD) >= 0 &&
               ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  if (!ready) complain(task_, "make ready to keep");
  return ready;
}

void Keeping::run() {
  if (!family_.start(task_.command)) {
    complain(task_, "start");
    return record(kExitNotStarted);
  }
  if (has_document_) ::close(kDocument);
  for (bool killing = false;;) {
    killing = killing || is_over();
    bool somebody = family_.reap();
    take_ends();
    if (!somebody) return;
    if (killing)
      family_.kill_all();
    else
      set_alarm();
    hear_news(killing ? kRoundMs : -1);
  }
}

// Reads the time first and hears afterwards what was said: an extension counts also where this process was stopped, at
// whatever point, when it came.
bool Keeping::is_over() {
  Micros now = boot_now();
  if (now < leash_.kill_at()) return false;
  hear_news(0);
  return leash_.over(now);
}

void Keeping::take_ends() {
  if (recorded_ || !family_.child_code()) return;
  leash_.child_ended(boot_now());
  record(*family_.child_code());
}

void Keeping::record(int code) {
  recorded_ = true;
  if (!write_exit_record(task_, code, boot_now())) complain(task_, "record the end of");
}

void Keeping::set_alarm() {
  auto at = leash_.kill_at();
  auto whole = std::chrono::duration_cast<std::chrono::seconds>(at);
  itimerspec alarm{};
  alarm.it_value = {.tv_sec = whole.count(), .tv_nsec = std::chrono::nanoseconds(at - whole).count()};
  ::timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &alarm, nullptr);
}

// Waits until somebody has ended or speaks, the alarm goes off or the time is over; serves those who speak.
void Keeping::hear_news(int wait_ms) {
  pollfd polled[2 + Door::kPollsMax] = {{.fd = ends_, .events = POLLIN, .revents = 0},
                                        {.fd = alarm_, .events = POLLIN, .revents = 0}};
  size_t count = 2 + door_.polls(polled + 2);
  while (::poll(polled, count, wait_ms) < 0 && errno == EINTR) {
  }
  signalfd_siginfo ended;
  while (::read(ends_, &ended, sizeof ended) > 0) {
  }
  std::uint64_t expired;
  while (::read(alarm_, &expired, sizeof expired) > 0) {
  }
  door_.serve(polled + 2, *this);
}

size_t Keeping::state(char* reply, size_t reply_bytes_max) const {
  return static_cast<size_t>(std::snprintf(reply, reply_bytes_max, "{\"version\":%lld,\"valid_until_us\":%lld}\n",
                                           static_cast<long long>(leash_.version()),
                                           static_cast<long long>(leash_.valid_until().count())));
}

size_t Keeping::answer(std::string_view line, char* reply, size_t reply_bytes_max) {
  auto refuse = [&](const char* code, const char* message) {
    const char* form = "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}\n";
    return static_cast<size_t>(std::snprintf(reply, reply_bytes_max, form, code, message));
  };
  Ask ask = read_ask(line);
  Micros now = boot_now();
  switch (ask.what) {
    case Ask::What::nonsense:
      return refuse("bad_request", "a line is one JSON object: version and valid_until_us, whole numbers, or an order");
    case Ask::What::stop:
      family_.terminate_child();
      leash_.stop(now);
      break;
    case Ask::What::kill:
      leash_.kill(now);
      break;
    case Ask::What::extend: {
      Extended extended = leash_.extend(ask.version, ask.valid_until);
      if (extended == Extended::stale_version)
        return refuse("stale_version", "a supervisor with a higher version has this keeper");
      if (extended == Extended::too_late) return refuse("ended", "the child has ended, or is being ended");
      break;
    }
    case Ask::What::state:
      break;
  }
  return state(reply, reply_bytes_max);
}

}  // namespace

int keep(int argc, char** argv) {
  auto task = read_task(argc, argv);
  if (!task) {
    std::fputs("weir-keeper: the orchestrator starts it; docs/architecture.md says what it is\n", stderr);
    return kExitUsage;
  }
  Keeping keeping(*task);
  if (!keeping.begin()) return 1;
  keeping.run();
  return 0;
}

}  // namespace weir::keeper
