#include "weir_process.hpp"

#include "run.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/net/token.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace weir::test {

std::string Reply::code() const {
  const auto* object = body.if_object();
  const auto* error = object != nullptr ? object->if_contains("error") : nullptr;
  const auto* code = error != nullptr && error->is_object() ? error->get_object().if_contains("code") : nullptr;
  return code != nullptr && code->is_string() ? std::string(code->get_string()) : std::string();
}

std::string Reply::field(std::string_view name) const {
  const auto* object = body.if_object();
  const auto* found = object != nullptr ? object->if_contains(name) : nullptr;
  if (found == nullptr) return {};
  return found->is_string() ? std::string(found->get_string()) : json::to_text(*found);
}

WeirProcess::WeirProcess(std::string folder, std::string database, std::vector<std::string> more)
    : folder_(std::move(folder)), database_(std::move(database)), more_(std::move(more)), port_(free_port()) {
  start();
}

WeirProcess::~WeirProcess() { kill_hard(); }

void WeirProcess::start() {
  ASSERT_LT(pid_, 0) << "still running";
  std::vector<std::string> words = {WEIR_BINARY, "control-plane", "--db", database_, "--listen",
                                    "127.0.0.1:" + std::to_string(port_), "--auth-secret-file", folder_ + "/auth.secret",
                                    "--state-dir", folder_};
  words.insert(words.end(), more_.begin(), more_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string log_path = fmt::format("{}/weir-{}.log", folder_, port_);
  // The first line says where the control plane listens; an end of file instead says that it could not start.
  auto launch = [&] {
    int out[2];
    WEIR_ASSERT(::pipe2(out, O_CLOEXEC) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(log, 2);
      ::dup2(out[1], 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    std::string line;
    char c = 0;
    while (::read(out[0], &c, 1) == 1 && c != '\n') line += c;
    ::close(out[0]);
    return line.find("listening on") != std::string::npos;
  };
  // A connection of another program may have the port that is kept over a restart, for a moment.
  bool listens = eventually(10s, [&] {
    size_t before = log().size();
    if (launch()) return true;
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    return log().find("address in use", before) == std::string::npos;
  });
  ASSERT_TRUE(listens && pid_ > 0) << log();
}

void WeirProcess::kill_hard() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int WeirProcess::terminate(Duration limit) {
  if (pid_ < 0) return -1;
  ::kill(pid_, SIGTERM);
  int status = 0;
  bool ended = eventually(limit, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
  if (!ended) {
    kill_hard();
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool WeirProcess::running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}
std::string WeirProcess::url() const {
  return fmt::format("{}://127.0.0.1:{}", ca_file().empty() ? "http" : "https", port_);
}

std::string WeirProcess::ca_file() const {
  auto flag = std::ranges::find(more_, "--tls-certificate-file");
  return flag == more_.end() ? "" : (std::filesystem::path(*std::next(flag)).parent_path() / "ca.pem").string();
}

std::string WeirProcess::log() const {
  return text_in_file(fmt::format("{}/weir-{}.log", folder_, port_));
}

Secret WeirProcess::token(const std::string& role, const std::string& sub, const std::string& tenant) const {
  auto key = net::TokenKey::load_or_create(folder_ + "/auth.secret");
  WEIR_ASSERT(key);
  net::Claims claims{sub};
  for (const auto& [each, name] : net::kRoleNames)
    if (name == role) claims.role = each;
  claims.tenant = TenantId::trusted(tenant);
  claims.expires = wall_now() + 15min;
  return key->sign(claims);
}

Reply WeirProcess::raw(net::ClientRequest request) const {
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, url(), {.ca_file = ca_file()});
  WEIR_ASSERT(client);
  auto response = run(io, client->send(std::move(request)));
  if (!response) return {0, nullptr, response.error().message, {}};
  Reply reply{response->status, nullptr, response->body, response->headers};
  if (auto parsed = json::parse_text(reply.text)) reply.body = *parsed;
  return reply;
}

Reply WeirProcess::call(net::Method method, const std::string& target, const boost::json::value& body,
                        const Secret& token) const {
  net::ClientRequest request;
  request.method = method;
  request.target = target;
  if (!body.is_null()) request.body = json::to_text(body);
  request.bearer = token;
  return raw(std::move(request));
}

void WeirProcess::furnish(int cameras, const std::string& url) const {
  ASSERT_EQ(post("/v1/tenants", {{"tenant_id", "t1"}}).status, 201);
  ASSERT_EQ(post("/v1/sites", {{"site_id", "s1"}, {"tenant_id", "t1"}}).status, 201);
  for (int n = 1; n <= cameras; ++n) {
    Reply added = post("/v1/cameras", {{"camera_uuid", fmt::format("cam-{}", n)}, {"tenant_id", "t1"}, {"site_id", "s1"}, {"rtsp_url", url}});
    ASSERT_EQ(added.status, 201) << added.text;
  }
}

}  // namespace weir::test
