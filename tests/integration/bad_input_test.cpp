// Wrong questions of every kind: each is answered with a 4xx that names the field, never with a 5xx or with silence,
// and the control plane goes on as if nothing had been.
#include "api_bodies.hpp"
#include "api_socket.hpp"
#include "api_store.hpp"
#include "api_talk.hpp"

#include "weir/net/token.hpp"

namespace weir::test {
namespace {

using net::Method;

// Stands in every wrong text; an answer must never repeat a value.
const std::string kCanary = "c4n4ry";
// Either the field or the whole body may be blamed.
enum class Blame { field, body, either };
struct Wrong {
  std::string text;
  Blame blame = Blame::field;
};

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::vector<Wrong> wrong_texts(const Field& field) {
  return {{quoted(kCanary + std::string(field.bytes_max, 'a'))},
          {quoted(kCanary + "\\u0000")},
          {quoted(kCanary + "\\n")},
          {quoted(kCanary + "\\u007f")},
          {quoted(kCanary + "\n"), Blame::body},
          {quoted(kCanary + "\\ud800"), Blame::body},
          {quoted(kCanary + "\xFF"), Blame::body},
          {quoted(kCanary + "\xC3\x28"), Blame::body},
          {quoted(kCanary + "\xED\xA0\x80"), Blame::body}};
}

std::vector<Wrong> wrong_numbers(const Field& field) {
  return {{quoted("7")},
          {quoted("NaN")},
          {"true"},
          {"[]"},
          {"{}"},
          {field.below},
          {field.above},
          {"-1e300"},
          {"1e300"},
          {"123456789012345678901234567890"},
          {"1e999", Blame::either},
          {"-1e999", Blame::either},
          {"NaN", Blame::body},
          {"Infinity", Blame::body},
          {"0x10", Blame::body},
          {"01", Blame::body},
          {"+1", Blame::body}};
}

std::vector<Wrong> with(std::vector<Wrong> a, std::vector<Wrong> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Wrong> wrong_values(const Field& field) {
  const std::vector<Wrong> no_text = {
      {"7"}, {"-1"}, {"1.5"}, {"true"}, {"[]"}, {"{}"}, {"1e999", Blame::either}, {"[\"" + kCanary + "\"]"}};
  const Wrong text{quoted(kCanary)};
  switch (field.kind) {
    case Kind::id:
      return with(with(no_text, wrong_texts(field)),
                  {{quoted("")}, {quoted("register")}, {quoted("acquire-batch")}, {quoted(".")}, {quoted("..")}});
    case Kind::text: return with(no_text, wrong_texts(field));
    case Kind::url:
      return with(with(no_text, wrong_texts({field.path, field.kind, false, "", "", 2048})),
                  {{quoted("")},
                   text,
                   {quoted("ftp://u:" + kCanary + "@x/")},
                   {quoted("rtsp://" + kCanary + " /")},
                   {quoted("://" + kCanary)},
                   {quoted("rtsp://***@host/")},
                   {quoted("rtsp://u:" + kCanary + "@/")},
                   {quoted("http://169.254.1.1/" + kCanary)},
                   {quoted("rtsp://[ff02::1]/" + kCanary)},
                   {quoted("rtsp://0.0.0.0/" + kCanary)},
                   {quoted("rtsp://u:" + kCanary + "@h:99999/")}});
    case Kind::number: return with(wrong_numbers(field), {text});
    case Kind::whole: return with(wrong_numbers(field), {text, {"1.5"}});
    case Kind::flag: return {{"0"}, {"1"}, {quoted("true")}, {"[]"}, {"{}"}, text};
    case Kind::word: return with(no_text, {text, {quoted("")}});
    case Kind::list: return {{"7"}, {"true"}, {"{}"}, text, {"1e999", Blame::either}};
    case Kind::object: return {{"7"}, {"true"}, {"[]"}, text, {"1e999", Blame::either}};
  }
  return {};
}

// The value at "a.b[0].c" of `root`; the path is known to be there.
json::value& at_path(json::value& root, std::string_view path) {
  json::value* place = &root;
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    size_t end = std::min(path.find_first_of(".[", path.front() == '[' ? 1 : 0), path.size());
    std::string_view step = path.substr(0, end);
    path.remove_prefix(end);
    if (step.front() == '[') place = &place->as_array().at(std::stoul(std::string(step.substr(1))));
    else place = &place->as_object().at(step);
  }
  return *place;
}

std::string with_value(const json::value& body, const Field& field, const std::string& text) {
  json::value changed = body;
  at_path(changed, field.path) = "@here@";
  std::string out = json::to_text(changed);
  return out.replace(out.find("\"@here@\""), 8, text);
}

std::optional<std::string> without(const json::value& body, const Field& field) {
  size_t dot = field.path.rfind('.');
  std::string name = dot == std::string::npos ? field.path : field.path.substr(dot + 1);
  if (name.find('[') != std::string::npos) return std::nullopt;
  json::value changed = body;
  at_path(changed, dot == std::string::npos ? "" : std::string_view(field.path).substr(0, dot)).as_object().erase(name);
  return json::to_text(changed);
}

// What is wrong with a refusal, or "". `field` is what may be blamed: it, what it is part of, or a part of it; "" any.
std::string refusal_problem(const Reply& reply, const std::string& field) {
  if (reply.status < 400 || reply.status > 499) return "no 4xx";
  if (reply.code().empty() || reply.text.find("\"message\":\"") == std::string::npos) return "no code or message";
  if (reply.text.find(kCanary) != std::string::npos) return "repeats the value";
  if (!reply.headers.contains("x-request-id")) return "no request id";
  if (reply.status != 400) return "";
  std::string named = wrong_field(reply);
  if (named.empty()) return "names no field";
  return field.starts_with(named) || named.starts_with(field) ? "" : "should name " + field;
}

void expect_refusal(const Reply& reply, const std::string& field, const std::string& question) {
  EXPECT_EQ(refusal_problem(reply, field), "") << question.substr(0, 600) << "\n"
                                               << reply.status << " " << reply.text.substr(0, 300);
}

std::string question_of(const BodyRoute& route, const std::string& body) {
  return fmt::format("{} {} {}", net::to_string(route.method), route.target, body);
}

class BadInput : public OverBothStores {
 protected:
  // Cameras cam-1 to cam-3; runner-1 holds cam-1.
  void furnish() {
    process().furnish(3);
    talk_ = std::make_unique<Talk>(process(), process().token("admin"));
    ASSERT_EQ(talk().post("/v1/runners/register", {{"runner_id", "runner-1"}, {"boot_id", "b1"}}).status, 200);
    Reply lease =
        talk().post("/v1/leases/camera/acquire",
                    {{"runner_id", "runner-1"}, {"boot_id", "b1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 60}});
    ASSERT_EQ(lease.status, 200) << lease.text;
    version_ = lease.field("version");
  }
  Talk& talk() { return *talk_; }
  json::value valid_body(const BodyRoute& route) const {
    std::string text = route.body;
    if (size_t at = text.find("{V}"); at != std::string::npos) text.replace(at, 3, version_);
    auto parsed = json::parse_text(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : json::value();
  }
  void refused(const BodyRoute& route, const std::string& body, const std::string& field) {
    Reply reply = talk().say(route.method, route.target, body);
    expect_refusal(reply, field, question_of(route, body));
  }
  // Whatever was asked before: it is alive and a lease can still be had.
  void expect_well() {
    ASSERT_TRUE(process().running());
    Talk fresh(process(), process().token("admin"));
    EXPECT_EQ(fresh.get("/healthz").status, 200);
    EXPECT_EQ(fresh.get("/readyz").status, 200);
    fresh.post("/v1/tenants", {{"tenant_id", "t-well"}});
    fresh.post("/v1/sites", {{"site_id", "s-well"}, {"tenant_id", "t-well"}});
    fresh.post("/v1/cameras", {{"camera_uuid", "cam-well"},
                               {"tenant_id", "t-well"},
                               {"site_id", "s-well"},
                               {"rtsp_url", "rtsp://camera.example/1"}});
    Reply lease = fresh.post("/v1/leases/camera/acquire",
                             {{"runner_id", "runner-well"}, {"camera_uuid", "cam-well"}, {"ttl_seconds", 6}});
    EXPECT_EQ(lease.status, 200) << lease.text;
    for (std::string_view event : {"http.handler_failed", "request.failed", "http.connection_failed"})
      EXPECT_EQ(process().log().find(event), std::string::npos) << event;
  }

 private:
  std::unique_ptr<Talk> talk_;
  std::string version_;
};
INSTANTIATE_OVER_BOTH_STORES(BadInput);

// What is refused before any store is asked: one of them will do.
class BadRequest : public BadInput {};
INSTANTIATE_TEST_SUITE_P(Stores, BadRequest, testing::Values(StoreKind::sqlite), store_name);

TEST_P(BadInput, EveryFieldWithEveryWrongValue_IsRefusedByName) {
  START_OR_SKIP();
  furnish();
  for (const BodyRoute& route : body_routes()) {
    json::value body = valid_body(route);
    for (const Field& field : route.fields) {
      for (const Wrong& wrong : wrong_values(field)) {
        std::string blamed = wrong.blame == Blame::field ? field.path : wrong.blame == Blame::body ? "body" : "";
        refused(route, with_value(body, field, wrong.text), blamed);
      }
      if (!field.required) continue;
      refused(route, with_value(body, field, "null"), field.path);
      if (auto lacking = without(body, field)) refused(route, *lacking, field.path);
    }
    if (route.strict) {
      json::value more = body;
      more.as_object()["colour"] = kCanary;
      refused(route, json::to_text(more), "colour");
    }
    // The table is right: what it calls valid is not bad input.
    Reply reply = talk().ask(route.method, route.target, body);
    EXPECT_TRUE(reply.status != 400 && reply.status < 500 && reply.status != 0)
        << question_of(route, route.body) << "\n"
        << reply.text;
  }
  expect_well();
}

TEST_P(BadRequest, EveryBodyThatIsNoObject_IsRefused) {
  START_OR_SKIP();
  furnish();
  std::string deep_list(1000, '['), deep_object;
  for (int i = 0; i < 1000; ++i) deep_object += "{\"a\":";
  const std::vector<std::string> bodies = {"{",
                                           "}",
                                           "nonsense " + kCanary,
                                           "null",
                                           "true",
                                           "7",
                                           "[]",
                                           "[{}]",
                                           quoted(kCanary),
                                           "{\"a\":1}}",
                                           "{\"a\" 1}",
                                           "{'a':1}",
                                           "{\"a\":1,}",
                                           "{\"a\":}",
                                           "{a:1}",
                                           "NaN",
                                           "\xEF\xBB\xBF{}",
                                           "\xFF\xFE",
                                           std::string("{}\0", 3),
                                           std::string(1, '\0'),
                                           "{\"a\":1} {\"a\":1}",
                                           "// comment\n{}",
                                           "{\"\\ud800\":1}",
                                           "{\"a\":\"\\x\"}",
                                           " ",
                                           deep_list,
                                           deep_list + std::string(1000, ']'),
                                           deep_object + "1" + std::string(1000, '}'),
                                           deep_object};
  for (const BodyRoute& route : body_routes()) {
    for (const std::string& body : bodies) refused(route, body, "body");
    if (!route.empty_allowed) refused(route, "", "body");
    json::value nested = valid_body(route);
    nested.as_object()["more"] = "@here@";
    std::string text = json::to_text(nested);
    refused(route, text.replace(text.find("\"@here@\""), 8, deep_list + std::string(1000, ']')), "body");
  }
  expect_well();
}

TEST_P(BadRequest, SizesTypesAndEncodingsOfBodies_AreRefused) {
  START_OR_SKIP();
  furnish();
  for (const BodyRoute& route : body_routes()) {
    std::string large = json::to_text(valid_body(route));
    large.resize((1 << 20) + 1, ' ');
    Reply reply = talk().say(route.method, route.target, large);
    EXPECT_EQ(reply.status, 413) << route.target << " " << reply.text;
    expect_refusal(reply, "", route.target);
    for (std::string_view header : {"Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded",
                                    "Content-Type: ", "Content-Encoding: gzip"}) {
      RawSocket socket(process());
      std::string body = json::to_text(valid_body(route));
      socket.send(fmt::format(
          "{} {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n"
          "Content-Length: {}\r\n{}\r\n\r\n{}",
          net::to_string(route.method), route.target, process().token("admin").reveal(), body.size(), header, body));
      std::string answer = socket.read_to_end();
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 415 ")) << route.target << " " << header << "\n" << answer;
      EXPECT_NE(answer.find("\"code\":\"unsupported_"), std::string::npos) << answer;
    }
  }
  expect_well();
}

TEST_P(BadInput, WrongTogether_ThoughEachFieldIsRight_IsRefused) {
  START_OR_SKIP();
  furnish();
  auto list_of = [](int count, const std::string& item) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + fmt::format(fmt::runtime(item), i);
    return "[" + out + "]";
  };
  const std::string runner = R"("runner_id":"runner-1","boot_id":"b1","ttl_seconds":6,)";
  const std::string camera = R"("camera_uuid":"cam-9","tenant_id":"t1","site_id":"s1",)";
  const std::string with_url = camera + R"("rtsp_url":"rtsp://c.example/1",)";
  const std::string triangle = R"("polygon":[[0,0],[9,0],[9,9]])";
  struct Case {
    Method method;
    std::string target, body, field;
  };
  const std::vector<Case> cases = {
      {Method::post, "/v1/leases/camera/acquire-batch", "{" + runner + R"("items":[]})", "items"},
      {Method::post, "/v1/leases/camera/acquire-batch",
       "{" + runner + R"("items":)" + list_of(1001, R"({{"camera_uuid":"c{0}","key":"k{0}"}})") + "}", "items"},
      {Method::post, "/v1/leases/camera/acquire-batch",
       "{" + runner + R"("items":[{"camera_uuid":"a","key":"k"},{"camera_uuid":"a","key":"l"}]})",
       "items[1].camera_uuid"},
      {Method::post, "/v1/leases/camera/renew-batch",
       "{" + runner + R"("items":[{"camera_uuid":"a","version":1,"rotate":true}]})", "items[0].key"},
      {Method::post, "/v1/leases/camera/release-batch",
       "{" + runner + R"("items":[{"camera_uuid":"a","version":1},{"camera_uuid":"a","version":1}]})",
       "items[1].camera_uuid"},
      {Method::post, "/v1/sites/s1/budget/consume", R"({"camera_uuid":"cam-1"})", "grant_version"},
      {Method::post, "/v1/sites/s1/budget/consume", R"({"grant_version":5})", "camera_uuid"},
      {Method::put, "/v1/sites/s1/budget", R"({"capacity":5,"refill_rate":1,"tokens":6})", "tokens"},
      {Method::post, "/v1/cameras", "{" + camera + R"("enabled":true})", "rtsp_url"},
      {Method::post, "/v1/cameras", "{" + with_url + R"("zones":[{"zone_id":1,"polygon":[]}]})", "zones[0].polygon"},
      {Method::post, "/v1/cameras", "{" + with_url + R"("zones":[{"zone_id":1,"polygon":[[0,0],[1,1]]}]})",
       "zones[0].polygon"},
      {Method::post, "/v1/cameras", "{" + with_url + R"("zones":[{"zone_id":1,"polygon":[[0,0],[1,1],[2,2]]}]})",
       "zones[0].polygon"},
      {Method::post, "/v1/cameras",
       "{" + with_url + R"("zones":[{"zone_id":1,"polygon":)" + list_of(257, "[{0},{0}]") + "}]}", "zones[0].polygon"},
      {Method::post, "/v1/cameras",
       "{" + with_url + R"("zones":[{"zone_id":1,)" + triangle + R"(},{"zone_id":1,)" + triangle + "}]}",
       "zones[1].zone_id"},
      {Method::post, "/v1/cameras",
       "{" + with_url + R"("zones":)" + list_of(65, R"({{"zone_id":1{0},"polygon":[[0,0],[9,0],[9,9]]}})") + "}",
       "zones"},
      {Method::post, "/v1/cameras", "{" + with_url + R"("allow_labels":)" + list_of(101, "\"l{0}\"") + "}",
       "allow_labels"},
      {Method::post, "/v1/cameras",
       "{" + with_url + R"("frame_size":{"width":5,"height":5},"zones":[{"zone_id":1,)" + triangle + "}]}",
       "zones[0].polygon"},
      {Method::post, "/v1/cameras",
       "{" + with_url + R"("frame_size":{"width":5,"height":5},"crop":{"x":1,"y":1,"width":5,"height":1}})", "crop"},
      {Method::post, "/v1/tenants/t1/sites/s1/cameras", "{" + with_url + R"("tenant_id":"t2"})", "tenant_id"},
      {Method::post, "/v1/tenants/t1/sites/s1/cameras", "{" + with_url + R"("site_id":"s2"})", "site_id"},
      {Method::put, "/v1/cameras/cam-1/zones/1", R"({"zone_id":2,)" + triangle + "}", "zone_id"},
      {Method::post, "/v1/cameras/cam-1/zones", R"({"zone_id":2,"camera_uuid":"cam-2",)" + triangle + "}",
       "camera_uuid"},
      {Method::post, "/v1/tenants/t1/sites/s1/zones", R"({"zone_id":2,)" + triangle + "}", "camera_uuid"},
      {Method::post, "/v1/runners/register", R"({"runner_id":"r","capabilities":)" + list_of(65, "\"c{0}\"") + "}",
       "capabilities"},
      {Method::put, "/v1/runners/runner-1/heartbeat", R"({"runner_id":"runner-2"})", "runner_id"},
      {Method::patch, "/v1/runners/runner-1", "{}", "body"},
      // The last of two equal names counts, so a wrong one cannot hide behind a right one.
      {Method::post, "/v1/tenants", R"({"tenant_id":"t-2","tenant_id":7})", "tenant_id"},
      {Method::post, "/v1/leases/camera/acquire", "{" + runner + R"("camera_uuid":"cam-1","ttl_seconds":-6})",
       "ttl_seconds"},
  };
  for (const Case& each : cases) {
    Reply reply = talk().say(each.method, each.target, each.body);
    EXPECT_EQ(reply.status, 400) << each.target << " " << each.body.substr(0, 300) << "\n" << reply.text;
    expect_refusal(reply, each.field, each.target + " " + each.body);
  }
  expect_well();
}

// ---- paths and queries ----

TEST_P(BadInput, WrongIdsInPaths_AreRefused) {
  START_OR_SKIP();
  furnish();
  const std::vector<std::pair<Method, std::string>> routes = {{Method::get, "/v1/cameras/{}"},
                                                              {Method::del, "/v1/cameras/{}"},
                                                              {Method::get, "/v1/cameras/{}/zones"},
                                                              {Method::get, "/v1/cameras/{}/zones/1"},
                                                              {Method::get, "/v1/sites/{}"},
                                                              {Method::del, "/v1/sites/{}"},
                                                              {Method::get, "/v1/sites/{}/budget"},
                                                              {Method::post, "/v1/sites/{}/budget/consume"},
                                                              {Method::get, "/v1/tenants/{}"},
                                                              {Method::del, "/v1/tenants/{}"},
                                                              {Method::get, "/v1/tenants/{}/sites/s1/cameras"},
                                                              {Method::get, "/v1/runners/{}"},
                                                              {Method::del, "/v1/runners/{}"},
                                                              {Method::put, "/v1/runners/{}/heartbeat"},
                                                              {Method::get, "/v1/tenants/t1/sites/{}/cameras/cam-1"},
                                                              {Method::get, "/v1/leases/camera/{}"},
                                                              {Method::post, "/v1/leases/camera/{}/revoke"},
                                                              {Method::get, "/v1/tenants/t1/sites/{}/zones"}};
  struct Part {
    std::string text;
    int status;
  };
  const std::vector<Part> parts = {{std::string(256, 'a'), 400},
                                   {std::string(5000, 'a'), 400},
                                   {"%00", 400},
                                   {"a%0Ab", 400},
                                   {"%7F", 400},
                                   {"%FF", 400},
                                   {"%C3%28", 400},
                                   {"%ED%A0%80", 400},
                                   {"%zz", 400},
                                   {"%", 400},
                                   {"%2", 400},
                                   {"register", 400},
                                   {"%2e%2e", 400},
                                   {"%2E", 400},
                                   {"heartbeat", 400},
                                   {"a%2Fb", 404},
                                   {"no%20such%20thing", 404},
                                   {"%C3%A9", 404},
                                   {"a%3Fb", 404},
                                   {"%25", 404}};
  for (const auto& [method, pattern] : routes) {
    for (const Part& part : parts) {
      std::string target = fmt::format(fmt::runtime(pattern), part.text);
      Reply reply = talk().ask(method, target);
      bool word = pattern == "/v1/runners/{}" && (part.text == "register" || part.text == "heartbeat");  // its own route
      EXPECT_EQ(reply.status, word ? 405 : part.status) << target << " " << reply.text;
      expect_refusal(reply, "", target);
    }
  }
  for (std::string zone : {"abc", "0", "-1", "1.5", "2147483648", "99999999999999999999", "%31x", "0x1", "1e1"}) {
    for (std::string base : {"/v1/cameras/cam-1/zones/", "/v1/tenants/t1/sites/s1/zones/"}) {
      Reply reply = talk().get(base + zone);
      EXPECT_EQ(reply.status, 400) << zone;
      expect_refusal(reply, "zone_id", base + zone);
    }
  }
  expect_well();
}

TEST_P(BadRequest, WrongQueries_AreRefused) {
  START_OR_SKIP();
  furnish();
  const std::vector<std::string> lists = {"/v1/tenants",
                                          "/v1/sites",
                                          "/v1/cameras",
                                          "/v1/runners",
                                          "/v1/leases",
                                          "/v1/cameras/cam-1/zones",
                                          "/v1/tenants/t1/sites/s1/cameras",
                                          "/v1/tenants/t1/sites/s1/zones"};
  const std::string long_id(256, 'a');
  for (const std::string& list : lists) {
    for (std::string limit :
         {"abc", "0", "-1", "1001", "1e2", "5.5", "99999999999999999999", "0x10", "%20", "5x", "NaN"}) {
      Reply reply = talk().get(list + "?limit=" + limit);
      EXPECT_EQ(reply.status, 400) << list << limit;
      expect_refusal(reply, "limit", list + "?limit=" + limit);
    }
    for (const std::string& cursor :
         {std::string("!!!"), net::base64url(std::string(1, '\0')), net::base64url("\xFF"),
          net::base64url(std::string(513, 'a')), std::string("A"), std::string("%2B%2F"), net::base64url("a\tb")}) {
      Reply reply = talk().get(list + "?cursor=" + cursor);
      EXPECT_EQ(reply.status, 400) << list << cursor;
      expect_refusal(reply, "cursor", list + "?cursor=" + cursor);
    }
    for (std::string query : {"limit=%zz", "%FF=1", "a=%00", "limit=5&b=%"}) {
      Reply reply = talk().get(list + "?" + query);
      EXPECT_EQ(reply.status, 400) << list << query;
      expect_refusal(reply, "query", list + "?" + query);
    }
  }
  const std::vector<std::pair<std::string, std::string>> named = {
      {"/v1/cameras?enabled=", "yes"},
      {"/v1/cameras?enabled=", "1"},
      {"/v1/cameras?enabled=", "TRUE"},
      {"/v1/cameras?tenant_id=", long_id},
      {"/v1/cameras?site_id=", "register"},
      {"/v1/sites?tenant_id=", long_id},
      {"/v1/leases?runner_id=", "heartbeat"},
      {"/v1/leases?runner_id=", long_id},
      {"/v1/leases?held=", "maybe"},
      {"/v1/tenants/t1/sites/s1/zones/1?camera_uuid=", long_id},
      {"/v1/tenants/t1/sites/s1/zones?cursor=", net::base64url("no-line-break")},
      {"/v1/tenants/t1/sites/s1/zones?cursor=", net::base64url("cam-1\nx")}};
  for (const auto& [target, value] : named) {
    Reply reply = talk().get(target + value);
    EXPECT_EQ(reply.status, 400) << target << value;
    size_t name = target.find('?') + 1;
    expect_refusal(reply, target.substr(name, target.size() - name - 1), target + value);
  }
  expect_well();
}

}  // namespace
}  // namespace weir::test
