#include "redis_server.hpp"

#include "postgres_server.hpp"
#include "stall.hpp"

#include <fmt/format.h>

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace weir::test {

namespace {

std::string find_program() {
  for (const char* path : {"/usr/bin/redis-server", "/usr/bin/redis-check-rdb"})
    if (::access(path, X_OK) == 0) return path;
  return "";
}

bool answers(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

RedisServer::RedisServer(std::string program, Secret password)
    : program_(std::move(program)), password_(std::move(password)), port_(free_port()) {}

Result<std::unique_ptr<RedisServer>> RedisServer::start(Secret password) {
  std::string program = find_program();
  if (program.empty()) return Error{Errc::unavailable, "no_redis", "Redis's server is not installed", {}};
  std::unique_ptr<RedisServer> server(new RedisServer(program, std::move(password)));
  Status up = server->run();
  if (!up) return up.error();
  return server;
}

Status RedisServer::run() {
  std::string config = folder_.path() + "/redis.conf";
  std::ofstream(config) << "bind 127.0.0.1\nport " << port_ << "\nsave \"\"\nappendonly no\ndir " << folder_.path()
                        << "\nlogfile " << folder_.path() << "/log\n"
                        << (password_.empty() ? "" : "requirepass " + password_.reveal() + "\n");
  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) ::execl(program_.c_str(), "redis-server", config.c_str(), nullptr);
    ::_exit(127);
  }
  if (pid_ > 0 && eventually(20s, [this] { return answers(port_); })) return ok();
  std::string log = text_in_file(folder_.path() + "/log");
  return Error{Errc::unavailable, "redis", "Redis did not start: " + log, {}};
}

RedisServer::~RedisServer() { kill(); }

void RedisServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Status RedisServer::restart_empty() {
  kill();
  return run();
}

void RedisServer::freeze() const { ::kill(pid_, SIGSTOP); }
void RedisServer::thaw() const { ::kill(pid_, SIGCONT); }

}  // namespace weir::test
