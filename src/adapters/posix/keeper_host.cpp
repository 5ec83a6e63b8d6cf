#include "weir/posix/keeper_host.hpp"

#include "keeper_talk.hpp"
#include "kept_process.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace weir::posix {

namespace asio = boost::asio;

namespace {

constexpr size_t kNonceBytes = 8;
constexpr size_t kNameMax = 80;
constexpr int kWaitingMax = 8;

Error refused(std::string sentence) { return {Errc::invalid, "kept_spec", std::move(sentence)}; }

Status check(const KeptSpec& spec) {
  auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; };
  if (spec.name.empty() || spec.name.size() > kNameMax || !std::ranges::all_of(spec.name, allowed))
    return refused("the name of a kept process has 1 to 80 letters, digits, '_', '.' or '-'");
  if (spec.command.empty()) return refused(fmt::format("{} has no command", spec.name));
  if (::access(spec.command[0].c_str(), X_OK) != 0) return cannot("start", spec.command[0]);
  return ok();
}

// The socket is there before the keeper is, so that whoever asks early is heard as soon as the keeper listens.
Result<Descriptor> listening(const std::string& path) {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Descriptor given = lifted(made);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  // The mode of the socket becomes the file's.
  bool there = given.get() >= 0 && ::fchmod(given.get(), 0600) == 0 &&
               ::bind(given.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 &&
               ::listen(given.get(), kWaitingMax) == 0;
  if (!there) return cannot("listen on", path);
  return given;
}

std::int64_t ms(Duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); }

Program keeper_program(const KeptSpec& spec, const KeeperSettings& settings, const std::string& nonce) {
  Duration backstop = spec.lease_socket.empty() ? 0s : settings.backstop;
  Program program{.path = settings.keeper,
                  .arguments = {spec.name, "--folder=" + settings.folder, "--nonce=" + nonce,
                                fmt::format("--version={}", spec.version),
                                fmt::format("--until-us={}", spec.valid_until.time_since_epoch().count()),
                                fmt::format("--stop-grace-ms={}", ms(settings.stop_grace)),
                                fmt::format("--backstop-ms={}", ms(backstop)), "--"},
                  .document = spec.document,
                  .unset = spec.unset};
  program.arguments.insert(program.arguments.end(), spec.command.begin(), spec.command.end());
  return program;
}

Result<Launched> launch_keeper(const KeptSpec& spec, const KeeperSettings& settings, const KeptFolder& folder,
                               const KeptRecord& record) {
  TRY(lock, NonceLock::make(folder.lock_path(record.nonce)));
  TRY(socket, listening(folder.socket_path(record.nonce)));
  const std::string& output = spec.output.empty() ? "/dev/null" : spec.output;
  Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor out(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (in.get() < 0 || out.get() < 0) return cannot(fmt::format("open {} for", output), spec.command[0]);
  TRY(written, folder.write(record, settings.sync_records ? KeptFolder::Durable::yes : KeptFolder::Durable::no));
  return launch(keeper_program(spec, settings, record.nonce),
                {.in = in.get(),
                 .out = out.get(),
                 .error = out.get(),
                 .more = {lock.get(), socket.get()},
                 .environment = spec.environment},
                Kin::lasting);
}

// Who keeps a process that lives: by its mark first, and where that is not known, because the earlier orchestrator died
// while it wrote it down, by the socket and the lock of the nonce.
std::unique_ptr<ProcessWatch> find_keeper(PosixHost& processes, KeptRecord& record, const KeptFolder& folder,
                                          const NonceLock& lock) {
  if (!record.keeper && lock.held()) {
    int pid = listener_of(folder.socket_path(record.nonce));
    auto mark = pid > 0 && lock.held_by(pid) ? mark_of(pid) : Error{Errc::not_found, "process_gone", ""};
    if (mark) record.keeper = *mark;
  }
  if (!record.keeper) return nullptr;
  auto watch = processes.watch(*record.keeper);
  return watch ? *std::move(watch) : nullptr;
}

Error still_alive(const KeptRecord& earlier, const KeeperSettings& settings) {
  Instant until = earlier.ends_at + (earlier.lease_socket.empty() ? 0s : settings.backstop);
  return {Errc::conflict, "kept_alive",
          fmt::format("the earlier process of {} still runs; unless its deadline is extended, its keeper ends it in {:.1f} s", earlier.name,
                      std::max(0.0, seconds(until - boot_now()))),
          {{"until_us", until.time_since_epoch().count()}}};
}

// Blocks for as long as the disk and the kernel do. The record, with the keeper that was started. (Asio hands values from
// one thread to another that can be made from nothing only.)
asio::awaitable<std::optional<Result<KeptRecord>>> start_keeper(KeptSpec spec, KeeperSettings settings, KeptRecord record) {
  KeptFolder folder(settings.folder);
  auto launched = launch_keeper(spec, settings, folder, record);
  if (!launched) {
    // Where a keeper was there for a moment, its child may be; the record leads to it.
    if (!NonceLock(folder.lock_path(record.nonce)).held()) folder.remove(record.name, record.nonce);
    co_return std::move(launched).error();
  }
  if (auto mark = mark_of(launched->pid)) record.keeper = *mark;
  if (auto written = folder.write(record, KeptFolder::Durable::no); !written)
    log::warn("kept.record", written.error().message).with("name", record.name);  // the nonce still finds it
  co_return record;
}

}  // namespace

Result<std::unique_ptr<KeeperHost>> KeeperHost::create(boost::asio::io_context& io, KeeperSettings settings) {
  std::error_code failed;
  if (std::filesystem::create_directories(settings.folder, failed))
    std::filesystem::permissions(settings.folder, std::filesystem::perms::owner_all, failed);
  if (failed)
    return Error{Errc::unavailable, "kept_folder",
                 fmt::format("cannot make {}: {}", settings.folder, failed.message())};
  if (!fits_socket(KeptFolder(settings.folder).socket_path(std::string(2 * kNonceBytes, '0'))))
    return refused(fmt::format("the path {} is too long: no socket below it can be opened", settings.folder));
  return std::unique_ptr<KeeperHost>(new KeeperHost(io, std::move(settings)));
}

asio::awaitable<Result<std::unique_ptr<Kept>>> KeeperHost::start(KeptSpec spec) {
  CO_TRY(sound, check(spec));
  KeptFolder folder(settings_.folder);
  if (auto earlier = folder.find(spec.name)) {
    NonceLock lock(folder.lock_path(earlier->nonce));
    auto keeper = find_keeper(processes_, *earlier, folder, lock);
    if ((keeper && keeper->running()) || lock.held()) co_return still_alive(*earlier, settings_);
  }
  KeptRecord fresh{.name = spec.name, .nonce = random_hex(kNonceBytes), .boot = settings_.boot, .note = spec.note,
                   .lease_socket = spec.lease_socket, .version = spec.version, .ends_at = spec.valid_until};
  auto work = start_keeper(std::move(spec), settings_, fresh);
  auto started = co_await asio::co_spawn(starting_, std::move(work), asio::use_awaitable);
  if (!*started) co_return std::move(*started).error();
  KeptRecord record = **std::move(started);
  NonceLock lock(folder.lock_path(record.nonce));
  auto keeper = find_keeper(processes_, record, folder, lock);
  co_return std::unique_ptr<Kept>(std::make_unique<KeptProcess>(
      std::make_shared<KeptState>(KeptState{io_, settings_, folder, record, lock, std::move(keeper)})));
}

std::vector<std::unique_ptr<Kept>> KeeperHost::adopt() {
  KeptFolder folder(settings_.folder);
  std::vector<std::unique_ptr<Kept>> found;
  for (KeptRecord& record : folder.all()) {
    NonceLock lock(folder.lock_path(record.nonce));
    if (record.boot != settings_.boot) {
      if (!lock.held()) folder.remove(record.name, record.nonce);
      continue;
    }
    auto keeper = find_keeper(processes_, record, folder, lock);
    found.push_back(std::make_unique<KeptProcess>(
        std::make_shared<KeptState>(KeptState{io_, settings_, folder, record, lock, std::move(keeper)})));
  }
  folder.sweep();
  return found;
}

}  // namespace weir::posix
