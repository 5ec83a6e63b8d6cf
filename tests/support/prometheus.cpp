#include "prometheus.hpp"

#include "program.hpp"
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

// The job's lines without their comment signs.
void uncomment(std::string& text, const std::string& job) {
  size_t at = text.find("  # - job_name: " + job);
  ASSERT_NE(at, std::string::npos) << job;
  for (; text.compare(at, 4, "  # ") == 0; at = text.find('\n', at) + 1) text.erase(at + 2, 2);
}

std::string quoted_hosts(const std::vector<std::string>& urls) {
  std::string out;
  for (const std::string& url : urls) out += fmt::format("\"{}\",", host_of(url));
  return out;
}

std::string configuration(const Prometheus::Watched& watched, int port) {
  std::string text = shipped("prometheus.yml");
  auto discovered = [&](const std::vector<std::string>& urls, const std::string& line) {
    std::string found;
    for (const std::string& url : urls)
      found += fmt::format("      - {{url: \"{}/sd/prometheus\", refresh_interval: 1s}}\n", url);
    replace(text, line, found.empty() ? "      []\n" : found);
  };
  replace(text, "scrape_interval: 5s", "scrape_interval: 1s");
  replace(text, "scrape_timeout: 4s", "scrape_timeout: 1s");
  replace(text, "evaluation_interval: 5s", "evaluation_interval: 500ms");
  discovered(watched.runners, "      - {url: \"http://127.0.0.1:9107/sd/prometheus\", refresh_interval: 15s}\n");
  if (!watched.orchestrators.empty()) {
    uncomment(text, "weir-streams");
    discovered(watched.orchestrators, "      - {url: \"http://127.0.0.1:8086/sd/prometheus\", refresh_interval: 15s}\n");
  }
  if (!watched.clusters.empty()) uncomment(text, "weir-cluster");
  replace(text, "\"127.0.0.1:8087\"", quoted_hosts(watched.clusters));
  replace(text, "\"127.0.0.1:8080\"", quoted_hosts(watched.planes));
  if (!watched.ca_file.empty()) {
    replace(text, "# scheme: https", "scheme: https");
    replace(text, "# tls_config: {ca_file: /etc/weir/ca.pem}", "tls_config: {ca_file: " + watched.ca_file + "}");
  }
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

Prometheus::Prometheus(const Watched& watched) : port_(free_port()) {
  const std::string& folder = folder_.path();
  std::ofstream(folder + "/prometheus.yml") << configuration(watched, port_);
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

testing::AssertionResult Prometheus::fires(const std::set<std::string>& wanted, Duration limit,
                                           const std::function<void()>& meanwhile) const {
  std::set<std::string> missing = wanted;
  bool fired = eventually(limit, [&] {
    meanwhile();
    for (const std::string& name : firing()) missing.erase(name);
    between_looks();
    return missing.empty();
  });
  boost::json::array now = alerts();
  if (!fired)
    return testing::AssertionFailure() << "does not fire: " << fmt::format("{}", fmt::join(missing, " ")) << "\n"
                                       << boost::json::serialize(now);
  for (const auto& alert : now)
    for (const auto& [name, value] : alert.at("annotations").as_object()) {
      std::string text(value.as_string());
      for (const char* sign : {"<no value>", "<error", "  "})
        if (text.empty() || text.find(sign) != std::string::npos)
          return testing::AssertionFailure() << name << " is not filled in: " << text;
    }
  return testing::AssertionSuccess();
}

std::set<std::string> Prometheus::rules(const std::set<std::string>& groups) {
  static const std::regex line(R"(- (name: weir-|alert: )(\S+))");
  std::string text = shipped("alerts.yml");
  std::set<std::string> names;
  bool meant = false;
  for (std::sregex_iterator each(text.begin(), text.end(), line), end; each != end; ++each) {
    if ((*each)[1] != "alert: ") meant = groups.contains((*each)[2]);
    else if (meant) names.insert((*each)[2]);
  }
  return names;
}

std::string Prometheus::unknown_on(const std::string& page, const std::string& ca_file) {
  TempDir folder;
  Program check(folder.path() + "/said", {"/usr/bin/env", "SSL_CERT_FILE=" + ca_file, "/usr/bin/python3", "-B",
                                          WEIR_SOURCE_DIR "/tools/dashboards", "--page", page});
  return check.wait() == 0 ? "" : page + ": " + check.log();
}

std::string Prometheus::log() const { return text_in_file(folder_.path() + "/log"); }

}  // namespace weir::test
