// `weir-egress`: the forwarder as a program; `weir egress …` finds it beside itself.
#include "common/command_line.hpp"
#include "common/print.hpp"
#include "egress/egress.hpp"

#include "weir/base/secret.hpp"

#include <malloc.h>

#include <cstdlib>
#include <exception>

namespace weir::apps {
namespace {

int run(int argc, char** argv) {
  const std::vector<Command> commands{egress_command()};
  std::vector<std::string> words{"egress"};  // as `weir egress` is typed
  words.insert(words.end(), argv + 1, argv + argc);
  auto parsed = parse_command_line(commands, words);
  if (!parsed) return refuse_egress(parsed.error());
  if (parsed->command == nullptr) {
    print(parsed->help);
    return 0;
  }
  auto code = parsed->command->run(parsed->arguments);
  return code ? *code : refuse_egress(code.error());
}

}  // namespace
}  // namespace weir::apps

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 1);  // three threads that mostly wait share one heap
  // A destination is dialled where its address says, whatever proxy a shell has set.
  for (const char* proxy : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    ::unsetenv(proxy);
  try {
    return weir::apps::run(argc, argv);
  } catch (const std::exception& failed) {
    return weir::apps::refuse_egress({weir::Errc::internal, "internal", weir::redact_url(failed.what())});
  }
}
