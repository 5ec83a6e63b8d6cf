#include "rabbit_server.hpp"

#include "free_port.hpp"
#include "stall.hpp"
#include "tls_testing.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>

namespace weir::test {

namespace {

// The program itself: what Debian puts in the path changes to another user first.
constexpr const char* kServer = "/usr/lib/rabbitmq/bin/rabbitmq-server";
constexpr const char* kControl = "/usr/lib/rabbitmq/bin/rabbitmqctl";

}  // namespace

RabbitServer::RabbitServer()
    : port_(free_port()), tls_port_(free_port()), names_port_(free_port()), node_port_(free_port()) {
  const std::string& at = folder_.path();
  net::testing::Authority authority;
  authority.write(ca_file());
  auto certificate = authority.issue("DNS:localhost");
  FILE* pem = std::fopen((at + "/server.pem").c_str(), "we");
  WEIR_ASSERT(pem != nullptr && ::PEM_write_X509(pem, certificate->x509) == 1);
  WEIR_ASSERT(::PEM_write_PrivateKey(pem, certificate->key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  std::fclose(pem);
  write_text(at + "/rabbitmq.conf",
             fmt::format("listeners.tcp.1 = 127.0.0.1:{0}\nlisteners.ssl.1 = 127.0.0.1:{1}\n"
                         "ssl_options.certfile = {2}/server.pem\nssl_options.keyfile = {2}/server.pem\n"
                         "ssl_options.cacertfile = {2}/ca.pem\nssl_options.verify = verify_none\n"
                         "default_user = weir\ndefault_pass = {3}\n"
                         "log.console = true\nlog.console.level = warning\nlog.file = false\n",
                         port_, tls_port_, at, kPassword));
  write_text(at + "/advanced.config", "[{kernel,[{inet_dist_use_interface,{127,0,0,1}}]}].\n");
  write_text(at + "/plugins", "[].\n");
}

// RUNNING_UNDER_SYSTEMD makes the script become the broker instead of its parent, so that the signals of a test, and
// the test's end, reach the broker.
std::string RabbitServer::environment() const {
  return fmt::format(
      "HOME={0} ERL_EPMD_PORT={1} ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_NODENAME=weir@localhost "
      "RABBITMQ_DIST_PORT={2} RABBITMQ_MNESIA_BASE={0}/data RABBITMQ_LOG_BASE={0} RABBITMQ_PID_FILE={0}/pid "
      "RABBITMQ_CONFIG_FILE={0}/rabbitmq.conf RABBITMQ_ADVANCED_CONFIG_FILE={0}/advanced.config "
      "RABBITMQ_ENABLED_PLUGINS_FILE={0}/plugins RABBITMQ_CONF_ENV_FILE=/dev/null RUNNING_UNDER_SYSTEMD=1",
      folder_.path(), names_port_, node_port_);
}

Result<RabbitServer*> RabbitServer::shared() {
  static auto the = start();
  if (!the) return the.error();
  return the->get();
}

Result<std::unique_ptr<RabbitServer>> RabbitServer::start() {
  if (::access(kServer, X_OK) != 0)
    return Error{Errc::unavailable, "no_rabbitmq", "RabbitMQ's server is not installed"};
  std::unique_ptr<RabbitServer> server(new RabbitServer);
  // The broker would start a name server that outlives it; one that answers already is used.
  server->names_ = std::make_unique<Program>(
      server->folder_.path() + "/names.log",
      std::vector<std::string>{"epmd", "-address", "127.0.0.1", "-port", fmt::to_string(server->names_port_)});
  if (!eventually(60s, [&] { return accepts(server->names_port_); }))
    return Error{Errc::unavailable, "rabbitmq", "Erlang's name server did not start"};
  TRY(up, server->run());
  return server;
}

Status RabbitServer::run() {
  // Threads that spin while they wait would take the processor from what is tested.
  std::string command =
      fmt::format("exec env {} RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+sbwt none +sbwtdcpu none +sbwtdio none' {}",
                  environment(), kServer);
  node_ = std::make_unique<Program>(folder_.path() + "/node.log", std::vector<std::string>{"/bin/sh", "-c", command});
  if (eventually(120s, [&] { return !node_->running() || (accepts(port_) && accepts(tls_port_)); }) && node_->running())
    return ok();
  return Error{Errc::unavailable, "rabbitmq", "RabbitMQ did not start: " + log()};
}

RabbitServer::~RabbitServer() {
  kill();
  names_.reset();
}

void RabbitServer::kill() {
  if (!node_) return;
  node_->signal(SIGKILL);
  node_->wait();
  node_.reset();
}

std::string RabbitServer::log() const { return text_in_file(folder_.path() + "/node.log"); }

std::string RabbitServer::control(const std::string& words) const {
  FILE* pipe = ::popen(fmt::format("exec env {} {} -q {} 2>&1", environment(), kControl, words).c_str(), "re");
  if (pipe == nullptr) return "popen failed";
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << words << ": " << output;
  return output;
}

std::string RabbitServer::new_url() {
  std::string vhost = fmt::format("v{}", ++vhosts_);
  control(fmt::format(R"(eval 'rabbit_vhost:add(<<"{0}">>, <<"test">>), rabbit_auth_backend_internal:set_permissions()"
                      R"(<<"weir">>, <<"{0}">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).')",
                      vhost));
  return fmt::format("amqp://weir:{}@127.0.0.1:{}/{}", kPassword, port_, vhost);
}

void RabbitServer::set_alarm(bool on) const {
  control(on ? "set_vm_memory_high_watermark 0.00001" : "set_vm_memory_high_watermark 0.4");
}

}  // namespace weir::test
