#include "stream_house.hpp"

#include "fleet.hpp"
#include "run.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/net/token.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace weir::test {

namespace {

// The shipped file, with a place for destinations: the tests forward to the same MediaMTX.
std::string hub_config(MediaMtx::Version version, bool hooks) {
  if (!hooks) return "paths:\n  all_others:\n";
  std::string file = version == MediaMtx::Version::v1_21_0 ? "mediamtx.yml" : "mediamtx-old-hooks.yml";
  return text_in_file(std::string(WEIR_SOURCE_DIR) + "/deploy/mediamtx/" + file) + "\n  all_others:\n";
}

}  // namespace

std::string stream_house_needs(MediaMtx::Version version) { return MediaMtx::missing(version); }

StreamHouse::StreamHouse(StreamHouseOptions options) : options_(std::move(options)), port_(free_port()) {
  std::string beside = std::filesystem::path(WEIR_HOOK).parent_path();
  if (!options_.hook_script.empty()) {
    beside = folder_.path() + "/hook";
    std::filesystem::create_directory(beside);
    write_text(beside + "/weir-hook", options_.hook_script);
    std::filesystem::permissions(beside + "/weir-hook", std::filesystem::perms::owner_all);
  }
  MediaMtx::Options hub{.version = options_.version,
                        .config = hub_config(options_.version, options_.hooks),
                        .environment = {{"WEIR_ORCHESTRATOR_URL", url()},
                                        {"WEIR_HOOK", WEIR_HOOK},
                                        {"PATH", beside + ":" + std::getenv("PATH")}}};
  if (!options_.hook_token_file.empty()) hub.environment["WEIR_HOOK_TOKEN_FILE"] = options_.hook_token_file;
  hub_ = std::make_unique<MediaMtx>(folder_, std::move(hub));
  if (!options_.streams.empty()) write_text(folder_.path() + "/streams.yaml", options_.streams);
  start();
}

StreamHouse::~StreamHouse() {
  orchestrator_.reset();
  for (int pid : children()) ::kill(pid, SIGKILL);
  eventually(5s, [&] { return children().empty(); });
}

std::vector<std::string> StreamHouse::hub_flags() const {
  std::vector<std::string> flags{"--mediamtx-api", hub_->api_url(), "--mediamtx-rtsp-base", hub_->base(),
                                 "--look-interval-s", "1"};
  if (!options_.streams.empty()) flags.insert(flags.end(), {"--streams-file", folder_.path() + "/streams.yaml"});
  return flags;
}

std::vector<std::string> StreamHouse::orchestrator_words() const {
  std::vector<std::string> words{WEIR_BINARY, "orchestrator", "--listen", fmt::format("127.0.0.1:{}", port_),
                                 "--state-dir", state_dir()};
  for (const std::string& flag : hub_flags()) words.push_back(flag);
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  return words;
}

void StreamHouse::start() {
  orchestrator_ = std::make_unique<Program>(folder_.path() + "/orchestrator.log", orchestrator_words());
  ASSERT_TRUE(eventually(20s, [&] { return get("/readyz").status == 200 || !orchestrator_->running(); })) << log();
  ASSERT_TRUE(orchestrator_->running()) << log();
}

void StreamHouse::kill_orchestrator() {
  orchestrator_->signal(SIGKILL);
  orchestrator_->wait();
}

int StreamHouse::stop_orchestrator(int signal) {
  orchestrator_->signal(signal);
  return orchestrator_->wait(30s);
}

Reply StreamHouse::call(net::Method method, const std::string& target, const boost::json::value& body) const {
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, url());
  WEIR_ASSERT(client);
  net::ClientRequest request;
  request.method = method;
  request.target = target;
  request.timeout = 5s;
  if (!body.is_null()) request.body = json::to_text(body);
  if (auto key = net::TokenKey::load_or_create(options_.secret.empty() ? state_dir() + "/auth.secret"
                                                                                 : options_.secret))
    request.bearer = key->sign({.sub = "test", .role = net::Role::admin, .expires = wall_now() + 60s});
  auto response = test::run(io, client->send(std::move(request)));
  if (!response) return {0, nullptr, response.error().message, {}};
  Reply reply{response->status, nullptr, response->body, response->headers};
  if (auto parsed = json::parse_text(reply.text)) reply.body = *parsed;
  return reply;
}

Reply StreamHouse::get(const std::string& target) const { return call(net::Method::get, target, nullptr); }
Reply StreamHouse::post(const std::string& target, const boost::json::value& body) const {
  return call(net::Method::post, target, body);
}

boost::json::object StreamHouse::stream(const std::string& id) const {
  Reply reply = get("/v1/streams/" + id);
  return reply.status == 200 && reply.body.is_object() ? reply.body.as_object() : boost::json::object();
}

std::string StreamHouse::state(const std::string& id) const {
  boost::json::object view = stream(id);
  return view.empty() ? "" : std::string(view.at("state").as_string());
}

std::string StreamHouse::run(const std::string& id) const {
  boost::json::object view = stream(id);
  return view.empty() || !view.at("run_id").is_string() ? "" : std::string(view.at("run_id").as_string());
}

std::vector<int> StreamHouse::children() const {
  std::vector<int> found = processes_with("--folder=" + state_dir() + "/streams");
  // What a keeper keeps has nothing of the folder in its command line; its parent does.
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::string parent;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("PPid:")) parent = line.substr(5);
    int above = std::atoi(parent.c_str());
    if (above > 1 && std::ranges::find(found, above) != found.end()) found.push_back(pid);
  }
  std::erase_if(found, [&](int pid) { return orchestrator_ != nullptr && pid == orchestrator_->pid(); });
  return found;
}

std::string StreamHouse::child_logs() const {
  std::string all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(state_dir() + "/streams", none))
    if (entry.path().extension() == ".log") all += text_in_file(entry.path());
  return all;
}

}  // namespace weir::test
