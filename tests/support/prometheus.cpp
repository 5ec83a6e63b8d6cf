#include "prometheus.hpp"

#include "stall.hpp"
#include "where.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>

namespace weir::test {

namespace {

std::string shipped(const std::string& name) {
  return text_in_file(std::string(WEIR_SOURCE_DIR) + "/deploy/prometheus/" + name);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the shipped file any more: " << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

std::string host_of(const std::string& url) { return url.substr(url.find("//") + 2); }

std::string configuration(const std::vector<std::string>& runners, const std::vector<std::string>& planes, int port) {
  std::string text = shipped("prometheus.yml"), found, targets;
  for (const std::string& url : runners)
    found += fmt::format("      - {{url: \"{}/sd/prometheus\", refresh_interval: 1s}}\n", url);
  for (const std::string& url : planes) targets += fmt::format("\"{}\",", host_of(url));
  replace(text, "scrape_interval: 5s", "scrape_interval: 1s");
  replace(text, "scrape_timeout: 4s", "scrape_timeout: 1s");
  replace(text, "evaluation_interval: 5s", "evaluation_interval: 500ms");
  replace(text, "      - {url: \"http://127.0.0.1:9107/sd/prometheus\", refresh_interval: 15s}\n", found);
  replace(text, "\"127.0.0.1:8080\"", targets);
  replace(text, "\"127.0.0.1:9090\"", fmt::format("\"127.0.0.1:{}\"", port));
  return text;
}

std::string hastened(const std::string& rules) {
  static const std::regex wait(R"(\n( +)for: ([0-9]+)(s|m)(?=\n))");
  std::string out;
  auto rest = rules.begin();
  for (std::sregex_iterator each(rules.begin(), rules.end(), wait), end; each != end; ++each) {
    out.append(rest, (*each)[0].first);
    out += fmt::format("\n{}for: {}ms", (*each)[1].str(), std::stoi((*each)[2]) * 1000 / ((*each)[3] == "m" ? 1 : 60));
    rest = (*each)[0].second;
  }
  return out.append(rest, rules.end());
}

}  // namespace

std::string Prometheus::needs() {
  return part("bin/prometheus").empty() ? "Debian's prometheus could not be fetched" : "";
}

Prometheus::Prometheus(const std::vector<std::string>& runners, const std::vector<std::string>& planes)
    : port_(free_port()) {
  const std::string& folder = folder_.path();
  std::ofstream(folder + "/prometheus.yml") << configuration(runners, planes, port_);
  std::ofstream(folder + "/alerts.yml") << hastened(shipped("alerts.yml"));
  std::string line = fmt::format(
      "exec {} --config.file={}/prometheus.yml --storage.tsdb.path={}/data --web.listen-address=127.0.0.1:{} >{}/log 2>&1",
      part("bin/prometheus"), folder, folder, port_, folder);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(eventually(20s, [&] { return ask("status/buildinfo").is_object(); })) << log();
}

Prometheus::~Prometheus() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

boost::json::value Prometheus::ask(const std::string& target) const {
  Reply reply = get_from(fmt::format("http://127.0.0.1:{}", port_), "/api/v1/" + target);
  return reply.body.is_object() && reply.status == 200 ? reply.body.at("data") : boost::json::value();
}

boost::json::array Prometheus::query(const std::string& text) const {
  boost::json::value answer = ask("query?query=" + text);
  return answer.is_object() ? answer.at("result").as_array() : boost::json::array();
}

boost::json::array Prometheus::alerts() const {
  boost::json::value answer = ask("alerts");
  return answer.is_object() ? answer.at("alerts").as_array() : boost::json::array();
}

std::set<std::string> Prometheus::firing(const std::map<std::string, std::string>& labels) const {
  std::set<std::string> names;
  for (const auto& alert : alerts()) {
    const auto& own = alert.at("labels").as_object();
    bool meant = std::ranges::all_of(labels, [&](const auto& each) {
      const auto* found = own.if_contains(each.first);
      return found != nullptr && found->as_string() == each.second;
    });
    if (meant && alert.at("state") == "firing") names.emplace(own.at("alertname").as_string());
  }
  return names;
}

std::set<std::string> Prometheus::rules() {
  static const std::regex name(R"(- alert: (\w+))");
  std::string text = shipped("alerts.yml");
  std::set<std::string> names;
  for (std::sregex_iterator each(text.begin(), text.end(), name), end; each != end; ++each) names.insert((*each)[1]);
  return names;
}

std::string Prometheus::log() const { return text_in_file(folder_.path() + "/log"); }

}  // namespace weir::test
