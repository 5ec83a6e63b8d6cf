#include "trial.hpp"

#include "weir/ports/model_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace weir::tflite {

namespace {

// In the child: a crash is an answer here; it must reach neither the crash record of the worker nor leave a core file.
// Descriptors that it kept would keep the parent's locks and connections alive after the parent has given them up.
void become_expendable(int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  if (pipe > 3) close_range(3, static_cast<unsigned>(pipe) - 1, 0);
  close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
}

[[noreturn]] void answer(int pipe, const std::function<Status()>& work) {
  become_expendable(pipe);
  Status status = work();
  if (status) _exit(0);
  const std::string& words = status.error().message;
  ssize_t written = write(pipe, words.data(), std::min<size_t>(words.size(), 4096));
  _exit(written >= 0 ? 1 : 2);
}

// Waits for the child's end, and ends it itself when that takes too long.
int wait_status(pid_t child, std::chrono::milliseconds limit) {
  int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ended{pidfd, POLLIN, 0};
  int ready = 0;
  if (pidfd >= 0)
    while ((ready = poll(&ended, 1, static_cast<int>(limit.count()))) < 0 && errno == EINTR) {
    }
  if (pidfd >= 0) close(pidfd);
  if (ready <= 0) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Status try_in_child(const std::string& file, std::chrono::milliseconds limit, const std::function<Status()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return model_failure(fmt::format("{} cannot be tried: {}", file, std::strerror(errno)));
  pid_t child = fork();
  if (child == 0) answer(ends[1], work);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return model_failure(fmt::format("{} cannot be tried: {}", file, std::strerror(errno)));
  }
  int status = wait_status(child, limit);
  char words[4096];
  ssize_t bytes = read(ends[0], words, sizeof words);
  close(ends[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ok();
  if (WIFEXITED(status) && bytes > 0) return model_failure(std::string(words, static_cast<size_t>(bytes)));
  return model_failure(fmt::format("{} is damaged: its library {} when it was tried", file,
                                   WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? "did not answer" : "crashed"));
}

}  // namespace weir::tflite
