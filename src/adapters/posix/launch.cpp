#include "launch.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace weir::posix {

namespace {

Result<Descriptor> document_file(const Secret& document, const std::string& program) {
  Descriptor file(::memfd_create("document", MFD_CLOEXEC));
  const std::string& text = document.reveal();
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return cannot("hand the configuration to", program);
  return file;
}

// This process's environment without the names in `unset`, and with what is added.
std::vector<std::string> environment_of(const std::vector<std::string>& unset,
                                        const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view name(*each);
    name = name.substr(0, name.find('='));
    bool replaced = std::ranges::any_of(added, [&](const auto& pair) { return pair.first == name; });
    if (!replaced && std::ranges::find(unset, name) == unset.end()) all.emplace_back(*each);
  }
  for (const auto& [name, value] : added) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// In the form that posix_spawn takes.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// The descriptors that a program begins with, in the form that posix_spawn takes.
class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  void place(int fd, int number) {
    if (fd >= 0) posix_spawn_file_actions_adddup2(&actions_, fd, number);
  }
  void close(int number) { posix_spawn_file_actions_addclose(&actions_, number); }
  void close_from(int number) { posix_spawn_file_actions_addclosefrom_np(&actions_, number); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Signals as at the start of a program, whatever this one does with them, and a group or session of its own.
class Attributes {
 public:
  explicit Attributes(Kin kin) {
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGALRM}) sigaddset(&defaults, signal);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    int apart = kin == Kin::child ? POSIX_SPAWN_SETPGROUP : POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(apart | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

Error cannot(std::string_view what, const std::string& program) {
  return Error{Errc::unavailable, "child", fmt::format("cannot {} {}: {}", what, program, std::strerror(errno))};
}

Descriptor lifted(const Descriptor& fd) {
  constexpr int kFirstNumber = 10;
  return Descriptor(fd.get() < 0 ? -1 : ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstNumber));
}

Result<Launched> launch(const Program& program, const Beginning& beginning, Kin kin) {
  Actions actions;
  int number = 0;
  for (int fd : {beginning.in, beginning.out, beginning.error}) actions.place(fd, number++);
  Descriptor file;
  if (!program.document.empty()) {
    TRY(made, document_file(program.document, program.path));
    file = std::move(made);
    actions.place(file.get(), number);
  } else if (kin == Kin::lasting) {
    actions.close(number);
  }
  for (int fd : beginning.more) actions.place(fd, ++number);
  if (kin == Kin::lasting) actions.close_from(number + 1);
  Attributes attributes(kin);
  std::vector<std::string> arguments{program.path};
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> environment = environment_of(program.unset, beginning.environment);
  Launched launched;
  errno = ::posix_spawn(&launched.pid, program.path.c_str(), actions.get(), attributes.get(),
                        pointers(arguments).data(), pointers(environment).data());
  if (errno != 0) return cannot("start", program.path);
  if (program.nice > 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(launched.pid), program.nice);
  launched.watch = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, launched.pid, 0)));
  if (launched.watch.get() < 0) {
    Error failed = cannot("watch", program.path);
    ::kill(-launched.pid, SIGKILL);
    ::waitpid(launched.pid, nullptr, 0);
    return failed;
  }
  return launched;
}

}  // namespace weir::posix
