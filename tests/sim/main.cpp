// sim: runs seeds until one fails or the time is up; a failing seed prints the one line that replays it.
//
//   sim --seeds 5000 --seconds 240        seeds 1 … 5000
//   sim --seed 4711 --trace               one seed, with everything that happens in it
//   sim --streams --seeds 1000            worlds that all have published streams, as some have otherwise
//   sim --clusters --seeds 1000           the same with a detector cluster
//   sim --planted                         every planted fault must be caught
//   sim --replay-check 50                 the same seed gives the same world twice
#include "world.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace weir::sim {

namespace {

struct Arguments {
  std::uint64_t first = 1, seeds = 1000;
  double seconds = 240;
  int threads = 1, replay_check = 0;
  bool planted_all = false;
  Options options = {.seed = 0};  // of each seed; 0: of many

  Options of(std::uint64_t seed) const {
    Options out = options;
    out.seed = seed;
    return out;
  }
};

std::string replay_line(const Options& options) {
  std::string line = fmt::format("sim --seed {}", options.seed);
  if (options.sqlite) line += " --store sqlite";
  if (options.streams) line += " --streams";
  if (options.clusters) line += " --clusters";
  for (const auto& [fault, name] : kPlanted)
    if (fault == options.planted) line += fmt::format(" --plant {}", name);
  return line + " --trace";
}

void report(const Options& options, const Violation& violation) {
  fmt::print("VIOLATION at {:.6f} s: {}\nreplay: {}\n", static_cast<double>(violation.at) / 1e6, violation.what,
             replay_line(options));
}

int run_seeds(const Arguments& args) {
  Instant start = boot_now(), deadline = start + from_seconds(args.seconds);
  std::atomic<std::uint64_t> next{args.first}, done{0}, events{0};
  std::atomic<bool> failed{false};
  double longest = 0;
  std::mutex output;
  auto work = [&] {
    for (;;) {
      std::uint64_t seed = next++;
      if (seed >= args.first + args.seeds || failed || boot_now() > deadline) return;
      Options options = args.of(seed);
      Outcome outcome = run(options);
      ++done;
      events += outcome.events;
      std::lock_guard lock(output);
      longest = std::max(longest, outcome.rest);
      if (outcome.violation) {
        failed = true;
        report(options, *outcome.violation);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < args.threads; ++t) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  double took = seconds(boot_now() - start);
  fmt::print("NOTE: {} seeds, {} events in {:.1f} s: {:.0f} seeds/s; at rest after {:.0f} s at most\n", done.load(),
             events.load(), took, static_cast<double>(done) / took, longest);
  if (!failed && done < args.seeds) fmt::print("the time was up before seed {}\n", args.first + args.seeds - 1);
  return failed || done < args.seeds ? 1 : 0;
}

int check_planted(const Arguments& args) {
  Instant deadline = boot_now() + from_seconds(args.seconds);
  int missed = 0;
  for (const auto& [fault, name] : kPlanted) {
    std::optional<Violation> caught;
    std::uint64_t seed = 0;
    while (!caught && boot_now() < deadline && seed < 20'000) caught = run({++seed, fault}).violation;
    if (caught) fmt::print("caught {:24} at seed {:5}: {}\n", name, seed, caught->what);
    else fmt::print("MISSED {:24} in {} seeds\n", name, seed);
    missed += !caught;
  }
  return missed == 0 ? 0 : 1;
}

int check_replay(const Arguments& args) {
  for (int seed = 1; seed <= args.replay_check; ++seed) {
    Options options = args.of(static_cast<std::uint64_t>(seed));
    options.clusters |= seed % 5 == 0;  // few seeds have one by themselves
    Outcome one = run(options), two = run(options);
    if (one.hash != two.hash || one.events != two.events) {
      fmt::print("seed {} went differently the second time: {:x} and {:x}\n", seed, one.hash, two.hash);
      return 1;
    }
  }
  fmt::print("{} seeds went the same way twice\n", args.replay_check);
  return 0;
}

[[noreturn]] void usage() {
  fmt::print(stderr, "usage: sim [--seed N] [--first N] [--seeds N] [--seconds S] [--threads N] [--trace] [--plant NAME]\n"
                     "           [--planted] [--replay-check N] [--store fake|sqlite] [--streams] [--clusters]\n");
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments args;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    auto value = [&]() -> const char* {
      if (++i >= argc) usage();
      return argv[i];
    };
    if (flag == "--seed") args.options.seed = std::strtoull(value(), nullptr, 10);
    else if (flag == "--first") args.first = std::strtoull(value(), nullptr, 10);
    else if (flag == "--seeds") args.seeds = std::strtoull(value(), nullptr, 10);
    else if (flag == "--seconds") args.seconds = std::atof(value());
    else if (flag == "--threads") args.threads = std::atoi(value());
    else if (flag == "--replay-check") args.replay_check = std::atoi(value());
    else if (flag == "--trace") args.options.trace = true;
    else if (flag == "--streams") args.options.streams = true;
    else if (flag == "--clusters") args.options.clusters = true;
    else if (flag == "--planted") args.planted_all = true;
    else if (flag == "--store") args.options.sqlite = std::string_view(value()) == "sqlite";
    else if (flag == "--plant") {
      std::string_view wanted = value();
      for (const auto& [fault, name] : kPlanted)
        if (name == wanted) args.options.planted = fault;
      if (args.options.planted == Planted::none) usage();
    } else usage();
  }
  return args;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args = parse(argc, argv);
  log::set_level(log::Level::off);
  if (args.planted_all) return check_planted(args);
  if (args.replay_check > 0) return check_replay(args);
  if (args.options.seed == 0) return run_seeds(args);
  Outcome outcome = run(args.options);
  if (outcome.violation) report(args.options, *outcome.violation);
  fmt::print("seed {}: {} events, hash {:x}, at rest after {:.1f} s\n", args.options.seed, outcome.events, outcome.hash,
             outcome.rest);
  return outcome.violation ? 1 : 0;
}

}  // namespace weir::sim

int main(int argc, char** argv) { return weir::sim::main(argc, argv); }
