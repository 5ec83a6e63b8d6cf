#include "family.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace weir::keeper {

namespace {

// Calls `each` with the number of every child, as the kernel lists them: "17 23 42 ".
template <class F>
void for_each_child(F each) {
  char text[4096];
  std::snprintf(text, sizeof text, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
  int file = ::open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  pid_t pid = 0;
  for (ssize_t got; (got = ::read(file, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < got; ++i) {
      bool digit = text[i] >= '0' && text[i] <= '9';
      if (!digit && pid > 0) each(pid);
      pid = digit ? pid * 10 + (text[i] - '0') : 0;
    }
  ::close(file);
}

}  // namespace

bool Family::start(char** command) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  errno = ::posix_spawn(&child_, command[0], nullptr, &attributes, command, environ);
  posix_spawnattr_destroy(&attributes);
  return errno == 0;
}

bool Family::reap() {
  for (;;) {
    int status = 0;
    pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended == 0) return true;
    if (ended < 0) return errno != ECHILD;
    if (ended == child_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

void Family::terminate_child() const {
  if (child_ > 0 && !code_) ::kill(child_, SIGTERM);
}

void Family::kill_all() const {
  // Once the child is reaped, its group's number may be a stranger's.
  if (child_ > 0 && !code_) ::kill(-child_, SIGKILL);
  for_each_child([](pid_t pid) { ::kill(pid, SIGKILL); });
}

}  // namespace weir::keeper
