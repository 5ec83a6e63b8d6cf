// `weir-hook ready|not-ready`: MediaMTX starts it when a stream is there or gone; it tells the orchestrator and ends.
//
// It lives two seconds at most. Every step has what is left of that time as its limit, and an alarm ends it where a
// step has none (a name server, a token file on a dead disk). MediaMTX interrupts a hook whose stream has ended; the
// interrupt is ignored, because the orchestrator would miss the event.
//
// It is linked statically, because MediaMTX's image has no C library. What glibc 2.36's getaddrinfo can do then, tried
// in a folder that held nothing but this program: numeric addresses always work. A name in /etc/hosts, and one that a
// name server of /etc/resolv.conf knows, work too: the services `files` and `dns` are part of the library since glibc
// 2.34. Every other service that /etc/nsswitch.conf names (`mdns4_minimal`, `resolve`) is a shared library of exactly
// this glibc; where that is missing, the service is passed over. One thread.
#include "weir/hook/post.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir::hook {
namespace {

using Time = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLife = 1800ms;         // for all steps together
constexpr timeval kAlarm{1, 950'000};  // for a step that does not end by itself
constexpr char kUsage[] =
    "usage: weir-hook ready|not-ready\n\n"
    "MediaMTX starts this as a hook: runOnReady and runOnNotReady, since 1.19.3 runOnAvailable and runOnUnavailable.\n"
    "It reads MTX_PATH, MTX_QUERY, MTX_SOURCE_TYPE and MTX_SOURCE_ID, tells Weir's orchestrator, and ends in 2 s.\n\n"
    "  WEIR_ORCHESTRATOR_URL  where the orchestrator listens, http:// only (http://127.0.0.1:8086)\n"
    "  WEIR_HOOK_TOKEN_FILE   a file with the token that the orchestrator expects; without it none is sent\n\n"
    "Exit code: 0 the orchestrator accepted the event, 1 it did not, 2 wrong usage.\n";

// `why` says what happened, and what to do.
[[noreturn]] void fail(int code, const std::string& why) {
  std::fprintf(stderr, "weir-hook: %s\n", why.c_str());
  std::exit(code);
}

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string read_token(const std::string& path) {
  if (path.empty()) return {};
  char text[4096];
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text);
  if (got < 0)
    fail(1, "cannot read the token in " + path + " (" + std::strerror(errno) +
                "): correct WEIR_HOOK_TOKEN_FILE or the file's rights");
  std::string_view token(text, static_cast<size_t>(got));
  token.remove_prefix(std::min(token.find_first_not_of(" \t\r\n"), token.size()));
  token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
  if (!is_token(token)) fail(1, path + " holds no token: write one line into it, the token itself");
  return std::string(token);
}

// Whatever is done with the socket next ends by then.
void bound(int fd, Time::duration left) {
  auto us = std::max<long>(1000, std::chrono::duration_cast<std::chrono::microseconds>(left).count());
  timeval limit{us / 1'000'000, us % 1'000'000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

std::string reason() {
  bool late = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;
  return late ? "no answer in time" : std::strerror(errno);
}

// The first of the host's addresses that accepts; each gets its share of the time.
int connect_to(const Address& to, Time::time_point end) {
  ::setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);  // a name server has a second, not glibc's ten
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int failed = ::getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found); failed != 0)
    fail(1, "cannot find the host " + to.host + " (" + ::gai_strerror(failed) +
                "): correct WEIR_ORCHESTRATOR_URL, or name the host by its address");
  int left = 0;
  for (addrinfo* each = found; each != nullptr; each = each->ai_next) ++left;
  for (addrinfo* each = found; each != nullptr; each = each->ai_next, --left) {
    int fd = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    bound(fd, (end - Time::now()) / left);
    if (::connect(fd, each->ai_addr, each->ai_addrlen) == 0) return fd;
  }
  fail(1, "cannot connect to " + to.authority + " (" + reason() +
              "): start `weir orchestrator` there, or correct WEIR_ORCHESTRATOR_URL");
}

int ask(int fd, std::string_view request, const Address& to, Time::time_point end) {
  std::string answer;
  char some[1024];
  ssize_t moved = 1;
  while (!request.empty() && moved > 0 && Time::now() < end) {
    bound(fd, end - Time::now());
    moved = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (moved > 0) request.remove_prefix(static_cast<size_t>(moved));
  }
  while (request.empty() && status_of(answer) == 0 && answer.size() < sizeof some && moved > 0 && Time::now() < end) {
    bound(fd, end - Time::now());
    moved = ::recv(fd, some, sizeof some, 0);
    if (moved > 0) answer.append(some, static_cast<size_t>(moved));
  }
  if (int status = status_of(answer); status != 0) return status;
  std::string why = moved < 0 ? reason() : answer.empty() ? "it closed the connection" : "it said something else";
  fail(1, to.authority + " gave no HTTP answer (" + why + "): see whether the orchestrator runs there, and its log");
}

std::string advice(int status) {
  if (status == 401 || status == 403) return "WEIR_HOOK_TOKEN_FILE must name a file with the token that it expects";
  if (status == 404) return "WEIR_ORCHESTRATOR_URL must name the orchestrator, not another server";
  return status < 500 ? "its log names what is wrong with the event" : "its log says why";
}

void tell(const std::string& what) {
  std::string path = variable("MTX_PATH");
  if (path.empty()) fail(2, "MTX_PATH is not set: let MediaMTX start this as a hook");
  auto to = split_url(variable("WEIR_ORCHESTRATOR_URL", "http://127.0.0.1:8086"));
  if (!to) fail(2, "WEIR_ORCHESTRATOR_URL must be http://HOST:PORT, with [ ] around an IPv6 address");
  std::string query = variable("MTX_QUERY"), type = variable("MTX_SOURCE_TYPE"), id = variable("MTX_SOURCE_ID");
  std::string token = read_token(variable("WEIR_HOOK_TOKEN_FILE"));
  auto end = Time::now() + kLife;
  int fd = connect_to(*to, end);
  int status = ask(fd, request_text(*to, what, {path, query, type, id}, token), *to, end);
  std::string event = what + " of " + json_string(path);
  if (status < 200 || status > 299)
    fail(1, to->authority + " refused " + event + " with status " + std::to_string(status) + ": " + advice(status));
  std::fprintf(stderr, "weir-hook: %s accepted %s\n", to->authority.c_str(), event.c_str());
}

void give_up(int) {
  constexpr std::string_view kWhy =
      "weir-hook: 2 s have passed without an answer: see whether name server and orchestrator can be reached\n";
  (void)!::write(STDERR_FILENO, kWhy.data(), kWhy.size());
  ::_exit(1);
}

}  // namespace
}  // namespace weir::hook

int main(int argc, char** argv) {
  using namespace weir::hook;
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGALRM, give_up);
  itimerval once{{0, 0}, kAlarm};
  ::setitimer(ITIMER_REAL, &once, nullptr);
  std::string what = argc == 2 ? argv[1] : "";
  if (what == "--help" || what == "-h") return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  if (what != "ready" && what != "not-ready") {
    std::fputs(kUsage, stderr);
    return 2;
  }
  tell(what);
  return 0;
}
