// /metrics as Prometheus reads it: every line is well-formed, the promised names are there, and no label grows with
// what clients send.
#include "api_talk.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <regex>
#include <set>

namespace weir::test {
namespace {

using net::Method;

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Page {
  std::vector<Sample> samples;
  std::map<std::string, std::string> types, helps;  // by family

  double sum(const std::string& name, const std::map<std::string, std::string>& with = {}) const {
    double all = 0;
    for (const Sample& sample : samples) {
      bool matches = sample.name == name;
      for (const auto& [label, value] : with)
        matches = matches && sample.labels.contains(label) && sample.labels.at(label) == value;
      if (matches) all += sample.value;
    }
    return all;
  }
  bool has(const std::string& name) const {
    return std::ranges::any_of(samples, [&](const Sample& sample) { return sample.name == name; });
  }
};

std::map<std::string, std::string> parse_labels(const std::string& text) {
  static const std::regex one(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$))re");
  std::map<std::string, std::string> labels;
  std::string rest = text;
  for (std::smatch match; !rest.empty(); rest = match.suffix()) {
    bool found = std::regex_search(rest, match, one, std::regex_constants::match_continuous);
    EXPECT_TRUE(found) << "labels: " << text;
    if (!found) break;
    EXPECT_TRUE(labels.emplace(match[1], match[2]).second) << "a label twice: " << text;
  }
  return labels;
}

// Fails the test at each line that is not of the text format.
Page parse(const std::string& text) {
  static const std::regex comment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*))");
  static const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)( -?[0-9]+)?)");
  Page page;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.empty()) continue;
    if (std::regex_match(line, match, comment)) {
      auto& kept = match[1] == "TYPE" ? page.types : page.helps;
      EXPECT_TRUE(kept.emplace(match[2], match[3]).second) << "twice: " << line;
      continue;
    }
    bool parsed = std::regex_match(line, match, sample);
    EXPECT_TRUE(parsed) << line;
    if (!parsed) continue;
    EXPECT_TRUE(seen.insert(match[1].str() + "{" + match[2].str() + "}").second) << "a series twice: " << line;
    Sample one{match[1], parse_labels(match[2]), 0};
    std::string number = match[3];
    auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), one.value);
    bool special = number == "+Inf" || number == "-Inf" || number == "NaN" || number == "Nan";
    EXPECT_TRUE(special || (failed == std::errc() && end == number.data() + number.size())) << line;
    page.samples.push_back(std::move(one));
  }
  return page;
}

std::string family_of(const Page& page, const std::string& name) {
  if (page.types.contains(name)) return name;
  for (std::string_view suffix : {"_bucket", "_sum", "_count"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

// Buckets of each series grow towards +Inf, which equals the count.
void check_histograms(const Page& page) {
  std::map<std::string, std::vector<const Sample*>> series;
  for (const Sample& sample : page.samples) {
    if (!sample.name.ends_with("_bucket")) continue;
    std::string key = sample.name;
    for (const auto& [name, value] : sample.labels)
      if (name != "le") key += "," + name + "=" + value;
    series[key].push_back(&sample);
  }
  EXPECT_GT(series.size(), 5u);
  for (const auto& [key, buckets] : series) {
    for (size_t i = 1; i < buckets.size(); ++i) EXPECT_GE(buckets[i]->value, buckets[i - 1]->value) << key;
    ASSERT_EQ(buckets.back()->labels.at("le"), "+Inf") << key;
    std::map<std::string, std::string> labels = buckets.back()->labels;
    labels.erase("le");
    std::string name = buckets.back()->name;
    EXPECT_EQ(page.sum(name.substr(0, name.size() - 7) + "_count", labels), buckets.back()->value) << key;
  }
}

class MetricsPage : public testing::Test {
 protected:
  MetricsPage()
      : process(folder.path(), "sqlite:" + folder.path() + "/weir.db"), talk(process, process.token("admin")) {
    process.furnish(2);
  }
  Reply lease(const std::string& operation, const std::string& runner, const std::string& camera = "cam-1") {
    return talk.post("/v1/leases/camera/" + operation,
                     {{"runner_id", runner}, {"camera_uuid", camera}, {"ttl_seconds", 30}});
  }
  TempDir folder;
  WeirProcess process;
  Talk talk;
};

TEST_F(MetricsPage, IsPrometheusText_WithThePromisedNames_AndCountsWhatHappened) {
  EXPECT_EQ(lease("acquire", "runner-1").status, 200);
  EXPECT_EQ(lease("acquire", "runner-2").status, 409);
  EXPECT_EQ(lease("renew", "runner-1").status, 200);
  EXPECT_EQ(lease("release", "runner-1").status, 200);
  EXPECT_EQ(lease("acquire", "runner-2").status, 200);
  EXPECT_EQ(talk.get("/v1/cameras/none").status, 404);
  Reply reply = Talk(process, Secret()).get("/metrics");
  ASSERT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.headers["content-type"].starts_with("text/plain; version=0.0.4")) << reply.headers["content-type"];

  Page page = parse(reply.text);
  for (std::string name :
       {"owner_changes_total", "weir_lease_operations_total", "weir_http_requests_total",
        "weir_http_request_seconds_bucket", "weir_http_request_seconds_sum", "weir_http_request_seconds_count",
        "weir_store_seconds_bucket", "weir_store_up", "weir_epoch", "process_cpu_seconds_total",
        "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"})
    EXPECT_TRUE(page.has(name)) << name;
  for (const Sample& sample : page.samples) {
    EXPECT_TRUE(page.types.contains(family_of(page, sample.name))) << sample.name;
    EXPECT_TRUE(page.helps.contains(family_of(page, sample.name))) << sample.name;
  }
  check_histograms(page);

  const std::string operations = "weir_lease_operations_total", requests = "weir_http_requests_total";
  EXPECT_EQ(page.sum(operations, {{"operation", "acquire"}, {"result", "granted"}}), 2);
  EXPECT_EQ(page.sum(operations, {{"operation", "acquire"}, {"result", "held"}}), 1);
  EXPECT_EQ(page.sum(operations, {{"operation", "renew"}, {"result", "renewed"}}), 1);
  EXPECT_EQ(page.sum(operations, {{"operation", "release"}, {"result", "released"}}), 1);
  EXPECT_EQ(page.sum("weir_store_up"), 1);
  EXPECT_EQ(page.sum(requests, {{"route", "/v1/cameras/{camera_uuid}"}, {"status", "404"}}), 1);
  EXPECT_EQ(page.sum(requests, {{"route", "/v1/leases/camera/acquire"}, {"method", "POST"}}), 3);
  EXPECT_GT(page.sum("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(page.sum("process_open_fds"), 3);
}

TEST_F(MetricsPage, OwnerChanges_AreGrantsToAnotherOwner) {
  auto changes = [&] { return parse(talk.get("/metrics").text).sum("owner_changes_total"); };
  auto as = [&](const std::string& operation, const std::string& boot) {
    return talk
        .post("/v1/leases/camera/" + operation,
              {{"runner_id", "r"}, {"boot_id", boot}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 30}})
        .status;
  };
  EXPECT_EQ(as("acquire", "b1"), 200);
  EXPECT_EQ(as("acquire", "b1"), 200);
  EXPECT_EQ(as("renew", "b1"), 200);
  EXPECT_EQ(changes(), 0);
  EXPECT_EQ(as("release", "b1"), 200);
  EXPECT_EQ(as("acquire", "b2"), 200);
  EXPECT_EQ(changes(), 1);
}

TEST_F(MetricsPage, NoLabelGrows_WithWhatClientsSend) {
  auto ask_as = [&](const std::string& id) {
    talk.post("/v1/tenants", {{"tenant_id", id}});
    talk.post("/v1/sites", {{"site_id", id}, {"tenant_id", id}});
    talk.post("/v1/cameras",
              {{"camera_uuid", id}, {"tenant_id", id}, {"site_id", id}, {"rtsp_url", "rtsp://" + id + ".example/1"}});
    talk.post("/v1/runners/register", {{"runner_id", id}, {"boot_id", id}, {"host", id}});
    lease("acquire", id, id);
    for (std::string target :
         {"/v1/cameras/", "/v1/sites/", "/v1/runners/", "/v1/leases/camera/", "/v1/nothing/", "/"}) {
      talk.get(target + id);
      talk.del(target + id + "-none");
    }
    talk.get("/v1/cameras?site_id=" + id + "&limit=x");
    talk.post("/v1/sites/" + id + "/budget/consume");
  };
  ask_as("Zebra-0");
  Page before = parse(talk.get("/metrics").text);
  for (int n = 1; n < 50; ++n) ask_as(fmt::format("Zebra-{}", n));
  Reply reply = talk.get("/metrics");
  Page after = parse(reply.text);
  EXPECT_EQ(reply.text.find("Zebra"), std::string::npos);
  // The same series, with larger numbers; only /metrics itself was asked for the first time in between.
  EXPECT_LE(after.samples.size(), before.samples.size() + 30);
  std::map<std::string, std::set<std::string>> values;
  for (const Sample& sample : after.samples)
    for (const auto& [label, value] : sample.labels) values[label].insert(value);
  const std::set<std::string> known = {"le", "method", "operation", "result", "route", "status"};
  for (const auto& [label, each] : values) {
    EXPECT_TRUE(known.contains(label)) << label;
    EXPECT_LE(each.size(), 60u) << label;
  }
  for (const std::string& route : values["route"]) EXPECT_TRUE(route == "none" || route.starts_with("/")) << route;
}

}  // namespace
}  // namespace weir::test
