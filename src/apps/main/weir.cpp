// `weir`: finds the command, runs it, and turns what it answers into an exit code and at most one sentence.
#include "common/command_line.hpp"
#include "common/print.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>

namespace weir::apps {
namespace {

// The helpers link libraries that the rest must not depend on; they are programs of their own, installed beside this.
int start_helper(std::string_view name, char** argv) {
  std::error_code unknown;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  std::string helper = (self.parent_path() / fmt::format("weir-{}", name)).string();
  ::execv(helper.c_str(), argv + 1);
  complain(errno == ENOENT ? fmt::format("`weir {}` needs the program {}, which is not installed", name, helper)
                           : fmt::format("cannot start {}: {}", helper, std::strerror(errno)));
  return 1;
}

int fail(const Error& error) {
  complain(error.message);
  return exit_code(error);
}

// A command whose answer did not arrive has not succeeded.
int printed(int code) {
  auto lost = code == 0 ? take_print_failure() : std::nullopt;
  return lost ? fail(*lost) : code;
}

// Where the starting process has closed standard input, output or error, the next file that is opened would take its
// number: a socket would get what is printed. So /dev/null takes the place: nothing is read there, and what is
// printed there is lost without being a failure.
void open_what_is_closed() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty()) {
    for (std::string_view helper : {"worker", "egress", "camsim", "hook"})
      if (words[0] == helper) return start_helper(helper, argv);
    if (words[0] == "--version") words[0] = "version";
    if (words[0] == "help") words[0] = "--help";
  }
  auto parsed = parse_command_line(all_commands(), words);
  if (!parsed) return fail(parsed.error());
  if (parsed->command == nullptr) {
    print(parsed->help);
    return printed(0);
  }
  auto code = parsed->command->run(parsed->arguments);
  return code ? printed(*code) : fail(code.error());
}

}  // namespace
}  // namespace weir::apps

int main(int argc, char** argv) {
  try {
    weir::apps::open_what_is_closed();
    return weir::apps::run(argc, argv);
  } catch (const std::exception& failed) {
    // Errors are values here; what arrives as an exception is lack of memory or a mistake in Weir.
    weir::apps::complain(weir::redact_url(failed.what()));
    return 1;
  }
}
