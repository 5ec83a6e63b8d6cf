#include "postgres_server.hpp"

#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>

namespace weir::test {

namespace fs = std::filesystem;

namespace {

std::string find_binaries() {
  std::string best;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none))
    if (fs::exists(entry.path() / "bin/initdb")) best = std::max(best, (entry.path() / "bin").string());
  return best;
}

struct Ran {
  int code;
  std::string output;
};
// PostgreSQL refuses to run as root.
std::string as_postgres(const std::string& command) {
  return ::geteuid() == 0 ? "cd /tmp && runuser -u postgres -- " + command : command;
}
Ran run(const std::string& command) {
  FILE* pipe = ::popen((as_postgres(command) + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), got);
  int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

Status checked(const Ran& ran, const std::string& what) {
  if (ran.code == 0) return ok();
  return Error{Errc::unavailable, "postgres", fmt::format("{} failed: {}", what, ran.output)};
}

}  // namespace

PostgresServer::PostgresServer() {
  if (::geteuid() == 0) (void)!std::system(fmt::format("chown postgres {}", folder_.path()).c_str());
}

Result<PostgresServer*> PostgresServer::shared() {
  static auto the = start();
  if (!the) return the.error();
  return the->get();
}

// A process that is not a child of this test stops the server when its input ends, which happens when the test ends,
// however it ends: a test that takes too long is killed with all its children. A server that is just starting cannot
// be stopped yet, so the script tries again.
void PostgresServer::guard() {
  if (guard_ != nullptr) return;
  std::string script = fmt::format("cat; for try in 1 2 3 4 5; do [ -d {0}/data ] || break; ({1}) && break; sleep 1; done;"
                                   " rm -rf {0}",
                                   folder_.path(), as_postgres(stop_command()));
  guard_ = ::popen(fmt::format("exec setsid --fork sh -c '{}' >/dev/null 2>&1", script).c_str(), "we");
}

std::string PostgresServer::stop_command() const {
  return fmt::format("{}/pg_ctl -D {}/data -m immediate -w stop", bin_, folder_.path());
}

// Nothing here has to outlast a power cut: what was written survives the kill of a process without being synced.
Status PostgresServer::run_server() {
  guard();
  return checked(run(fmt::format("{0}/pg_ctl -D {1}/data -w -t 30 -l {1}/log -o '-c listen_addresses=127.0.0.1 -p {2} -k {1}"
                                 " -c max_connections=100 -c shared_buffers=64MB -c wal_level=replica"
                                 " -c max_wal_senders=4 -c hot_standby=on -c fsync=off' start",
                                 bin_, folder_.path(), port_)),
                 "pg_ctl start");
}

Result<std::unique_ptr<PostgresServer>> PostgresServer::start() {
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->bin_ = find_binaries();
  if (server->bin_.empty()) return Error{Errc::unavailable, "no_postgres", "PostgreSQL's server is not installed"};
  server->port_ = free_port();
  TRY(made, checked(run(fmt::format("{}/initdb -D {}/data -A trust --no-sync -U weir --locale=C.UTF-8 -E UTF8", server->bin_,
                                    server->folder_.path())),
                    "initdb"));
  TRY(started, server->run_server());
  return server;
}

Result<std::unique_ptr<PostgresServer>> PostgresServer::start_replica(PostgresServer& primary) {
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->bin_ = primary.bin_;
  server->port_ = free_port();
  TRY(copied, checked(run(fmt::format("{}/pg_basebackup -h 127.0.0.1 -p {} -U weir -D {}/data -R -X stream -c fast",
                                      server->bin_, primary.port_, server->folder_.path())),
                      "pg_basebackup"));
  TRY(started, server->run_server());
  return server;
}

PostgresServer::~PostgresServer() {
  run(stop_command());
  if (guard_ != nullptr) ::pclose(guard_);
}

std::string PostgresServer::url(const std::string& database) const {
  return fmt::format("postgres://weir@127.0.0.1:{}/{}", port_, database);
}

Result<std::string> PostgresServer::sql(const std::string& database, const std::string& statement) {
  static std::atomic<int> count{0};  // threads of a test may ask at the same time
  std::string file = fmt::format("{}/statement-{}.sql", folder_.path(), ++count);
  std::ofstream(file) << statement;
  ::chmod(file.c_str(), 0644);
  Ran ran = run(fmt::format("{}/psql -h 127.0.0.1 -p {} -U weir -d {} -v ON_ERROR_STOP=1 -qtA -f {}", bin_, port_,
                            database, file));
  TRY(done, checked(ran, "psql"));
  return ran.output.substr(0, ran.output.find('\n'));
}

Result<std::string> PostgresServer::new_database() {
  static std::atomic<int> count{0};
  std::string name = fmt::format("weir_{}_{}", ::getpid(), ++count);
  TRY(made, sql("postgres", fmt::format("CREATE DATABASE {}", name)));
  return url(name);
}

Result<PostgresServer::Roles> PostgresServer::new_database_with_roles() {
  TRY(url, new_database());
  std::string name = url.substr(url.rfind('/') + 1);
  TRY(made, sql(name, text_in_file(WEIR_SOURCE_DIR "/deploy/postgres/roles.sql")));
  auto as = [&](std::string_view role) { return fmt::format("postgres://{}@127.0.0.1:{}/{}", role, port_, name); };
  return Roles{as("weir_owner"), as("weir_plane"), as("weir_backup")};
}

int PostgresServer::pid() const {
  int pid = 0;
  std::ifstream(folder_.path() + "/data/postmaster.pid") >> pid;
  return pid;
}

void PostgresServer::kill_hard() {
  int postmaster = pid();
  if (postmaster <= 0) return;
  // The backends die with their postmaster only at their next look; the kernel's parentage names them.
  std::vector<int> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), ::isdigit)) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string line;
    std::getline(stat, line);
    if (auto end = line.rfind(')'); end != std::string::npos) {
      int parent = 0;
      if (std::sscanf(line.c_str() + end + 1, " %*c %d", &parent) == 1 && parent == postmaster)
        children.push_back(std::stoi(name));
    }
  }
  ::kill(postmaster, SIGKILL);
  for (int child : children) ::kill(child, SIGKILL);
  eventually(10s, [&] { return ::kill(postmaster, 0) != 0; });
}

Status PostgresServer::start_again() {
  Status last = ok();
  // The shared memory of the killed server may take a moment to be let go.
  eventually(20s, [&] {
    last = run_server();
    return static_cast<bool>(last);
  });
  return last;
}

Status PostgresServer::promote() {
  return checked(run(fmt::format("{}/pg_ctl -D {}/data -w promote", bin_, folder_.path())), "promote");
}

}  // namespace weir::test
