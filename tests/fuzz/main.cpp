// fuzz: feeds changed inputs to one target until the time is up or something is found.
//
//   fuzz --target shard|rtsp|h264|rtmp|destination|hook [--seed N] [--seconds S] [--runs N]   seeds N, N + 1, …
//   fuzz --target h264 --replay FILE                                                     the input of a finding
//
// The runs happen in a child process. However it ends, the input that it was working on is left as a file that
// replays the run. Only leaks are found later, at the end of a few hundred runs; --seed and --runs narrow them down.
// Under WEIR_LONG a run without --seconds takes ten minutes instead of 15 seconds.
#include "black_box.hpp"

#include "stall.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

// What a sanitizer's report needs: a stack for failed assertions too, and an end to pictures of any size.
extern "C" const char* __asan_default_options() { return "handle_abort=1:hard_rss_limit_mb=3000"; }
// FFmpeg's RTP reader loses a timestamp of 104 bytes for each packet that it refuses after a sender report.
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
extern "C" const char* __lsan_default_suppressions() { return "leak:av_packet_add_side_data"; }

namespace weir::fuzz {
namespace {

constexpr Duration kRunMax = 30s;  // far above what any single input takes, on a busy machine too

constexpr std::uint64_t kLeakRuns = 250, kFewRuns = 100;

struct Arguments {
  std::string target, replay;
  std::uint64_t seed = 1, runs = UINT64_MAX;
  Duration time = test::long_run() ? Duration(600s) : Duration(15s);
};

std::unique_ptr<Target> make_target(std::string_view name) {
  if (name == "shard") return make_shard_target();
  if (name == "rtsp") return make_rtsp_target();
  if (name == "h264") return make_h264_target();
  if (name == "rtmp") return make_rtmp_target();
  if (name == "destination") return make_destination_target();
  if (name == "hook") return make_hook_target();
  return nullptr;
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments args;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view flag = argv[i];
    if (flag == "--target") args.target = argv[i + 1];
    else if (flag == "--replay") args.replay = argv[i + 1];
    else if (flag == "--seed") args.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (flag == "--runs") args.runs = std::strtoull(argv[i + 1], nullptr, 10);
    else if (flag == "--seconds") args.time = from_seconds(std::atof(argv[i + 1]));
    else return std::nullopt;
  }
  static constexpr std::string_view kTargets[] = {"shard", "rtsp", "h264", "rtmp", "destination", "hook"};
  bool known = std::ranges::find(kTargets, args.target) != std::end(kTargets);
  return argc % 2 == 1 && known ? std::optional(args) : std::nullopt;
}

bool leaked() {
#ifdef __SANITIZE_ADDRESS__
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

void run_once(Target& target, const Input& input) {
  try {
    target.run(input);
  } catch (const Finding&) {
    throw;
  } catch (const std::exception& e) {
    throw Finding(fmt::format("an exception got out: {}", e.what()));
  }
}

void run_seeds(const Arguments& args, BlackBox& box) {
  std::unique_ptr<Target> target = make_target(args.target);
  Instant start = boot_now(), end = start + args.time;
  std::uint64_t runs = 0;
  for (; runs < args.runs && boot_now() < end; ++runs) {
    Mutator mutate(args.seed + runs);
    Input input = target->draw(mutate);
    box.put(args.seed + runs, input);
    run_once(*target, input);
    if (runs % kLeakRuns == kLeakRuns - 1)
      check(!leaked(), fmt::format("one of the last {} inputs leaked memory", kLeakRuns));
  }
  box.start_waiting();
  fmt::print("NOTE: {} inputs from seed {} in {:.0f} s: {}\n", runs, args.seed, seconds(boot_now() - start),
             target->finish());
  check(runs < kFewRuns || target->conclusive(), "the changes are too many or too few to show anything");
}

void replay(const Arguments& args, BlackBox& box) {
  std::ifstream file(args.replay, std::ios::binary);
  check(file.good(), "cannot read " + args.replay);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Input input = unpacked(bytes);
  for (const std::string& part : input) fmt::print("{} bytes: {:?}\n", part.size(), part.substr(0, 2000));
  std::fflush(stdout);
  box.put(0, input);
  run_once(*make_target(args.target), input);
  fmt::print("nothing found\n");
}

int work(const Arguments& args, BlackBox& box) {
  int found = 0;
  try {
    if (args.replay.empty()) run_seeds(args, box);
    else replay(args, box);
  } catch (const Finding& finding) {
    fmt::print("FINDING: {}\n", finding.what());
    found = 1;
  }
  std::fflush(stdout);  // a leak, which is looked for at the very end, would swallow it
  return found;
}

// Waits for the child, and for each of its runs no longer than a run may take. Whether it ended well.
bool supervise(pid_t child, const BlackBox& box) {
  int status = 0;
  auto ended = [&] { return waitpid(child, &status, WNOHANG) != 0; };
  while (!ended()) {
    test::between_looks();
    if (box.age() < kRunMax) continue;
    fmt::print("FINDING: the run has not ended for {:.0f} s\n", seconds(kRunMax));
    kill(child, SIGABRT);  // shows where it hangs
    if (!test::eventually(10s, ended)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    return false;
  }
  if (WIFSIGNALED(status)) fmt::print("FINDING: the runs were ended by {}\n", strsignal(WTERMSIG(status)));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char** argv) {
  auto args = parse(argc, argv);
  if (!args) {
    fmt::print(stderr, "usage: fuzz --target shard|rtsp|h264|rtmp|destination|hook [--seed N] [--seconds S] [--runs N] "
                       "[--replay FILE]\n");
    return 2;
  }
  BlackBox box;
  box.start_waiting();
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return work(*args, box);
  }
  if (supervise(child, box)) return 0;
  if (!args->replay.empty()) return 1;
  std::string name = fmt::format("fuzz-{}-{}.input", args->target, box.seed());
  std::ofstream(name, std::ios::binary) << box.input();
  fmt::print("seed {} was running; its input: fuzz --target {} --replay {}/{}\n", box.seed(), args->target,
             std::filesystem::current_path().string(), name);
  return 1;
}

}  // namespace
}  // namespace weir::fuzz

int main(int argc, char** argv) { return weir::fuzz::main(argc, argv); }
