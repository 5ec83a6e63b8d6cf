// `weir-worker`: the helper that links the media libraries; `weir worker …` finds it beside itself.
#include "common/command_line.hpp"
#include "common/print.hpp"
#include "worker/detector.hpp"
#include "worker/labels.hpp"
#include "worker/measure.hpp"
#include "worker/probe.hpp"
#include "worker/shard.hpp"
#include "worker/stream.hpp"

#include "weir/base/secret.hpp"

#include <malloc.h>

#include <cstdlib>
#include <exception>

namespace weir::apps {
namespace {

// The exit code of a shard, a stream or a detection worker tells its parent what to do; the other commands are for people.
int fail(const Error& error, std::string_view command) {
  if (command == "stream") return refuse_stream(error);
  complain(error.message);
  return command == "shard" || command == "detector" ? shard_exit_code(error) : exit_code(error);
}

int run(int argc, char** argv) {
  const std::vector<Command> commands{shard_command(), probe_command(), labels_command(), measure_command(),
                                      stream_command(), detector_command()};
  std::vector<std::string> words(argv + 1, argv + argc);
  auto parsed = parse_command_line(commands, words, "weir worker");
  if (!parsed) return fail(parsed.error(), words.empty() ? "" : words.front());
  if (parsed->command == nullptr) {
    print(parsed->help);
    return 0;
  }
  auto code = parsed->command->run(parsed->arguments);
  return code ? *code : fail(code.error(), parsed->command->path);
}

}  // namespace
}  // namespace weir::apps

int main(int argc, char** argv) {
  // Pictures get pages of their own, which go back to the system with them. Left to itself, the allocator takes to
  // keeping them in the heap, where they leave holes: months of reconnects would be paid for in memory.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  // A camera is dialled where its address says, whatever proxy a shell has set.
  for (const char* proxy : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    ::unsetenv(proxy);
  // Libraries do what they are loaded for and nothing else. ONNX Runtime, since 1.29, tells its makers about the machine
  // and its models, and keeps a file for that in the home folder; OpenCV opens the drivers of graphics cards, unused.
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 1);
  ::setenv("OPENCV_OPENCL_RUNTIME", "disabled", 1);
  try {
    return weir::apps::run(argc, argv);
  } catch (const std::exception& failed) {
    weir::apps::complain(weir::redact_url(failed.what()));
    return weir::apps::kExitInternal;
  }
}
