#include "admin.hpp"
#include "common/print.hpp"
#include "store/store_copy.hpp"
#include "up/up.hpp"

#include "weir/base/clock.hpp"
#include "weir/postgres/copy.hpp"

#include <cstdlib>
#include <filesystem>

namespace weir::apps {

namespace {

bool names_password(std::string_view url) {
  size_t user = url.find("://"), at = url.rfind('@');
  bool in_front = user != url.npos && at != url.npos && url.substr(user + 3, at - user - 3).find(':') != url.npos;
  return in_front || url.find("password=") != url.npos;
}

void warn_of_password(const Secret& url) {
  if (names_password(url.reveal()))
    complain("note: other users of this machine can see a command's arguments; DATABASE_URL in the environment keeps a "
             "password private");
}

// The store that --db, DATABASE_URL or the settings file names, or else that of the state folder.
Result<StorePlace> named_store(const Arguments& arguments, const Settings& settings) {
  Secret url = settings.secret("database_url");
  const char* environment = std::getenv("DATABASE_URL");
  if (!arguments.config_file() && (environment == nullptr || url.reveal() != environment)) warn_of_password(url);
  return StorePlace::read(url.empty() ? embedded_store(settings) : url);
}

json::object counts_of(const StoreContents& contents) {
  json::object counts;
  for (const StoreTable& table : contents.tables) counts[table.name] = table.rows.size();
  return counts;
}

std::string told(const StoreContents& contents) {
  return fmt::format("{} cameras, {} leases, {} sites, {} runners, {} keys", contents.count("cameras"),
                     contents.count("leases"), contents.count("sites"), contents.count("runners"),
                     contents.count("api_keys"));
}

Result<int> store_backup(const Arguments& arguments) {
  std::string file = arguments.text("<file>");
  TRY(settings, arguments.settings());
  TRY(place, named_store(arguments, settings));
  Instant begin = boot_now();
  if (std::filesystem::exists(file))
    return Error{Errc::conflict, "file_exists", fmt::format("{} is there already; name another file", file)};
  TRY(contents, read_copy(place));
  TRY(written, write_copy(file, contents, place.shown));
  double took = seconds(boot_now() - begin);
  auto bytes = std::filesystem::file_size(file);
  return done(arguments,
              json::object{{"file", file}, {"store", place.shown}, {"epoch", contents.state.epoch}, {"bytes", bytes},
                           {"seconds", took}, {"counts", counts_of(contents)}},
              fmt::format("wrote {} ({} bytes, {:.1f} s): {}, epoch {}, of {}. It holds camera passwords: keep it as "
                          "private as the store",
                          file, bytes, took, told(contents), contents.state.epoch, place.shown));
}

Result<Replacement> replacement(const Arguments& arguments, const Settings& settings) {
  TRY(epoch, arguments.number("epoch"));
  if (epoch && (*epoch < 1 || *epoch != static_cast<double>(static_cast<std::int64_t>(*epoch))))
    return usage_error("--epoch must be a whole number above 0");
  Replacement how{.force = arguments.has("force"), .ttl_max = settings.duration("lease_ttl_max_s")};
  if (epoch) how.epoch = static_cast<std::int64_t>(*epoch);
  return how;
}

json::object answer_of(const Replaced& replaced, const StorePlace& place, double took) {
  json::object answer{{"store", place.shown}, {"epoch", replaced.now.state.epoch}, {"seconds", took},
                      {"kept", nullptr}, {"counts", counts_of(replaced.now)}};
  if (!replaced.kept.empty()) answer["kept"] = replaced.kept;
  return answer;
}

std::string kept_sentence(const Replaced& replaced) {
  return replaced.kept.empty() ? "" : fmt::format("; what was there is kept in {}", replaced.kept);
}

Result<int> store_restore(const Arguments& arguments) {
  std::string file = arguments.text("<file>");
  TRY(settings, arguments.settings());
  TRY(place, named_store(arguments, settings));
  TRY(how, replacement(arguments, settings));
  Instant begin = boot_now();
  TRY(replaced, restore_copy(file, place, how));
  if (replaced.unread)
    complain(fmt::format("note: the store that was replaced could not be read; if its epoch was {} or above, restore "
                         "again with a higher --epoch", replaced.now.state.epoch));
  Duration closed = replaced.now.state.closed_until - replaced.now.state.lease_now;
  json::object answer = answer_of(replaced, place, seconds(boot_now() - begin));
  answer["file"] = file;
  answer["closed_s"] = seconds(closed);
  return done(arguments, answer,
              fmt::format("restored {} into {}: {}, epoch {}{}. Start the control plane now; for its first {:.0f} s no "
                          "camera changes hands", file, place.shown, told(replaced.now), replaced.now.state.epoch,
                          kept_sentence(replaced), std::ceil(seconds(closed))));
}

Result<int> store_move(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(from, StorePlace::read(arguments.has("from") ? Secret(arguments.text("from")) : embedded_store(settings)));
  Secret target = arguments.has("to") ? Secret(arguments.text("to")) : settings.secret("database_url");
  if (target.empty()) return usage_error("--to (or DATABASE_URL) must name the PostgreSQL database to move to");
  if (arguments.has("to")) warn_of_password(target);
  TRY(to, StorePlace::read(target));
  if (!from.sqlite() || to.sqlite())
    return usage_error("a move goes from sqlite:PATH to postgres://…; the other ways are a backup and a restore");
  TRY(how, replacement(arguments, settings));
  Instant begin = boot_now();
  auto moved = move_store(from, to, how);
  if (!moved && moved.error().reason == "store_locked")
    return Error{Errc::conflict, "store_locked",
                 moved.error().message + ": stop it first. Runners and workers go on without it meanwhile"};
  if (!moved) return moved.error();
  double took = seconds(boot_now() - begin);
  json::object answer = answer_of(*moved, to, took);
  answer["from"] = from.shown;
  return done(arguments, answer,
              fmt::format("moved {} to {} in {:.1f} s: {}, epoch {}{}. {} is sealed. Start the control plane on "
                          "PostgreSQL now, at the same address and with the same auth secret",
                          from.shown, to.shown, took, told(moved->now), moved->now.state.epoch, kept_sentence(*moved),
                          from.path));
}

Result<int> store_migrate(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(place, named_store(arguments, settings));
  if (place.sqlite())
    return usage_error(
        "only a PostgreSQL database is migrated; the control plane does it for a SQLite store as it starts");
  TRY(steps, postgres::bring_up_to_date(place.url));
  json::object answer{{"store", place.shown}, {"before", steps.before}, {"schema", steps.now}};
  return done(arguments, answer,
              steps.before == steps.now
                  ? fmt::format("{} has schema {} already", place.shown, steps.now)
                  : fmt::format("{} has schema {} now; it had {}", place.shown, steps.now, steps.before));
}

}  // namespace

std::vector<Command> store_commands() {
  const Option json{"json", "", "Print JSON"};
  const Option force{"force", "", "Replace a store that holds something; a copy of it is kept"};
  return {
      {"store backup", "Write a copy of the store to a file, while the control plane runs",
       "weir store backup /var/backups/weir-1.backup\n"
       "weir store backup --db sqlite:/var/lib/weir/weir.db weir.backup\n"
       "DATABASE_URL=postgres://weir@db/weir weir store backup weir.backup", "store",
       {{"<file>", "FILE", "The new file; it appears when it is complete", true}, json}, store_backup},
      {"store restore", "Bring a backup back, under a new epoch; every control plane must be stopped",
       "weir store restore weir.backup --db sqlite:/var/lib/weir/weir.db --force", "store",
       {{"<file>", "FILE", "A backup, or a copy of a SQLite store", true},
        force,
        {"epoch", "N", "The new epoch, where the one that is chosen may have been used already"},
        json},
       store_restore},
      {"store move", "Move a SQLite store to PostgreSQL; the control plane must be stopped, runners go on",
       "weir store move --from sqlite:/var/lib/weir/weir.db --to postgres://weir@db/weir", "store",
       {{"from", "URL", "sqlite:PATH; otherwise the store in the state folder"},
        {"to", "URL", "postgres://…; otherwise DATABASE_URL"},
        force,
        json},
       store_move},
      {"store migrate",
       "Bring a PostgreSQL database up to date, for control planes that may not change its tables",
       "weir store migrate --db postgres://weir_owner@db/weir\n"
       "DATABASE_URL=postgres://weir_owner@db/weir weir store migrate",
       "store",
       {json},
       store_migrate},
  };
}

}  // namespace weir::apps
