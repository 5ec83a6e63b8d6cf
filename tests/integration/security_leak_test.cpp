// A password that stands in a camera's address is shown to the clients that dial the camera, and nowhere else: not in
// a log line, an error, a metric or a viewer's answer.
#include "api_store.hpp"
#include "api_talk.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace weir::test {
namespace {

using net::Method;

const std::string kCanary = "S3cretC4n4ry";

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (unsigned char c : text) out += fmt::format("%{:02X}", c);
  return out;
}

bool leaks(std::string_view text) {
  return text.find(kCanary) != std::string_view::npos || text.find(percent_encoded(kCanary)) != std::string_view::npos;
}

// Addresses as recorders want them.
std::vector<std::string> addresses() {
  const std::string escaped = percent_encoded(kCanary);
  return {"rtsp://admin:" + kCanary + "@camera.example/1",
          "rtsp://" + kCanary + "@camera.example:8554/1",
          "rtsp://admin:x" + kCanary + "%40y@camera.example/1",
          "rtsp://admin:" + escaped + "@camera.example/1",
          "rtsps://admin:" + kCanary + "@[2001:db8::7]:322/1",
          "rtsp://camera.example/live?user=admin&password=" + kCanary,
          "rtsp://camera.example/live?pwd=" + escaped + "&channel=1",
          "rtsp://camera.example/user=admin&password=" + kCanary + "&channel=1",
          "rtsp://admin:" + kCanary + "@camera.example/1?token=" + kCanary,
          "RTSP://admin:" + kCanary + "@CAMERA.example/1"};
}

class Leak : public OverBothStores {
 protected:
  void furnish() {
    admin_ = std::make_unique<Talk>(process(), process().token("admin", "root"));
    viewer_ = std::make_unique<Talk>(process(), process().token("viewer", "eye"));
    runner_ = std::make_unique<Talk>(process(), process().token("runner", "runner-1"));
    ASSERT_EQ(admin_->post("/v1/tenants", {{"tenant_id", "t1"}}).status, 201);
    ASSERT_EQ(admin_->post("/v1/sites", {{"site_id", "s1"}, {"tenant_id", "t1"}}).status, 201);
  }
  static json::object camera(const std::string& id, const std::string& url) {
    return {{"camera_uuid", id},
            {"tenant_id", "t1"},
            {"site_id", "s1"},
            {"rtsp_url", url},
            {"substream_url", url},
            {"snapshot", {{"url", "http://admin:" + kCanary + "@camera.example/s.jpg?pw=" + kCanary}}}};
  }
  // Checks an answer to a client that does not dial cameras.
  void discreet(const Reply& reply, const std::string& what) {
    EXPECT_NE(reply.status, 0) << what;
    EXPECT_LT(reply.status, 500) << what << reply.text;
    EXPECT_FALSE(leaks(reply.text)) << what << "\n" << reply.text;
    for (const auto& [name, value] : reply.headers) EXPECT_FALSE(leaks(value)) << what << " " << name;
  }
  void refused(Method method, const std::string& target, const std::string& body) {
    Reply reply = admin_->say(method, target, body);
    EXPECT_GE(reply.status, 400) << target << body;
    discreet(reply, target + " " + body);
  }

  std::unique_ptr<Talk> admin_, viewer_, runner_;
};
INSTANTIATE_OVER_BOTH_STORES(Leak);

TEST_P(Leak, PasswordInAddresses_ReachesAdminAndRunner_AndNothingElse) {
  START_OR_SKIP({"--log-level", "debug"});
  furnish();
  std::vector<std::string> ids;
  for (const std::string& url : addresses()) {
    std::string id = fmt::format("cam-{}", ids.size() + 1);
    Reply added = admin_->post("/v1/cameras", camera(id, url));
    ASSERT_EQ(added.status, 201) << added.text;
    EXPECT_TRUE(leaks(added.text));
    ids.push_back(id);
  }

  // Runners and workers, which dial cameras, must see the credentials; viewers must not.
  const std::string nested = "/v1/tenants/t1/sites/s1/cameras";
  for (size_t i = 0; i < ids.size(); ++i) {
    for (std::string base : {std::string("/v1/cameras"), nested}) {
      EXPECT_EQ(admin_->get(base + "/" + ids[i]).field("rtsp_url"), addresses()[i]);
      EXPECT_EQ(runner_->get(base + "/" + ids[i]).field("rtsp_url"), addresses()[i]);
      Reply seen = viewer_->get(base + "/" + ids[i]);
      EXPECT_EQ(seen.status, 200);
      discreet(seen, "viewer, " + addresses()[i]);
    }
  }
  EXPECT_TRUE(leaks(runner_->get("/v1/cameras").text));
  for (std::string list : {"/v1/cameras", "/v1/cameras?site_id=s1", "/v1/tenants/t1/sites/s1/cameras", "/v1/leases",
                           "/v1/sites", "/v1/tenants", "/v1/runners", "/v1/tenants/t1/sites/s1/zones"})
    discreet(viewer_->get(list), list);

  // Every change that works.
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string url = addresses()[(i + 1) % ids.size()], one = "/v1/cameras/" + ids[i];
    EXPECT_EQ(admin_->patch(one, {{"rtsp_url", url}, {"name", "x"}}).status, 200);
    EXPECT_EQ(admin_->put(one, camera(ids[i], url)).status, 200);
    Reply zone = admin_->say(Method::post, one + "/zones", R"({"zone_id":1,"polygon":[[0,0],[9,0],[9,9]]})");
    EXPECT_EQ(zone.status, 201);
    discreet(zone, "zone");
    json::object lease{{"runner_id", "runner-1"}, {"camera_uuid", ids[i]}, {"ttl_seconds", 60}};
    discreet(runner_->post("/v1/leases/camera/acquire", lease), "acquire");
    discreet(runner_->post("/v1/leases/camera/renew", lease), "renew");
    discreet(viewer_->get("/v1/leases/camera/" + ids[i]), "lease");
    discreet(admin_->post("/v1/leases/camera/" + ids[i] + "/revoke"), "revoke");
  }

  // Every error that could quote what it was given.
  const std::string url = "rtsp://admin:" + kCanary + "@camera.example/1";
  const std::string start = R"({"camera_uuid":"cam-new","tenant_id":"t1","site_id":"s1",)";
  const std::string with_url = start + R"("rtsp_url":")" + url + R"(",)";
  for (std::string base : {std::string("/v1/cameras"), nested}) {
    refused(Method::post, base, with_url + R"("zones":[{"zone_id":1,"polygon":[]}]})");
    refused(Method::post, base, with_url + R"("zones":")" + kCanary + "\"}");
    refused(Method::post, base, with_url + R"("max_fps":")" + kCanary + "\"}");
    refused(Method::post, base, with_url + R"("zone_test":")" + url + "\"}");
    refused(Method::post, base, with_url + R"("colour":")" + url + "\"}");
    refused(Method::post, base, with_url);  // cut off: no JSON
    refused(Method::post, base, with_url + "\"x\":\xFF}");
    refused(Method::post, base, json::to_text(camera("cam-1", url)));  // is there already
    refused(Method::post, base, R"([")" + url + R"("])");
    for (std::string bad : {"ftp://a:" + kCanary + "@h/", "rtsp://a:" + kCanary + "@/", "rtsp://a:" + kCanary + " @h/",
                            "rtsp://a:" + kCanary + "@127.0.0.1.x:y/", "rtsp://a:" + kCanary + "@169.254.1.1/", kCanary,
                            "rtsp://a:" + kCanary + "/b@h/", "rtsp://a:%zz" + kCanary + "@h/"}) {
      refused(Method::post, base, start + R"("rtsp_url":")" + bad + "\"}");
      refused(Method::patch, base + "/cam-1", R"({"rtsp_url":")" + bad + "\"}");
      refused(Method::put, base + "/cam-1", R"({"rtsp_url":")" + bad + "\"}");
      refused(Method::patch, base + "/cam-1", R"({"snapshot":{"url":")" + bad + "\"}}");
    }
    refused(Method::patch, base + "/none", R"({"rtsp_url":")" + url + "\"}");
    refused(Method::patch, base + "/cam-1", R"({"site_id":"s2","rtsp_url":")" + url + "\"}");
  }
  refused(Method::post, "/v1/cameras?create_places=false",
          R"({"camera_uuid":"n","tenant_id":"t9","site_id":"s9","rtsp_url":")" + url + "\"}");
  std::string large = with_url;
  large.resize((1 << 20) + 1, 'x');
  refused(Method::post, "/v1/cameras", large.replace(large.size() - kCanary.size(), kCanary.size(), kCanary));
  Reply forbidden = viewer_->post("/v1/cameras", camera("n", url));
  EXPECT_EQ(forbidden.status, 403);
  discreet(forbidden, "viewer adds");
  discreet(Talk(process(), Secret()).post("/v1/cameras", camera("n", url)), "nobody adds");

  discreet(admin_->get("/metrics"), "metrics");
  for (const std::string& id : ids) discreet(admin_->del("/v1/cameras/" + id), "delete");
  process().terminate();
  std::string log = process().log();
  EXPECT_NE(log.find("camera.created"), std::string::npos);
  EXPECT_FALSE(leaks(log));
}

TEST(Files, OfTheStateFolder_AreForTheirOwnerOnly) {
  TempDir folder;
  ::umask(022);
  WeirProcess process(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  process.furnish(1);
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    struct stat about {};
    ASSERT_EQ(::stat(entry.path().c_str(), &about), 0) << entry.path();
    if (!S_ISREG(about.st_mode)) continue;
    ++seen;
    EXPECT_EQ(about.st_mode & 0777, 0600u) << entry.path();
  }
  EXPECT_GE(seen, 4) << "the secret, the store, and what SQLite puts beside it";
}

}  // namespace
}  // namespace weir::test
