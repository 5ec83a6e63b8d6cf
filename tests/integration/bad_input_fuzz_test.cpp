// Input that nobody thought of: right questions with random changes, and bytes that are no question at all. No 5xx, no
// connection that ends without an answer, and a control plane that goes on.
#include "api_bodies.hpp"
#include "api_socket.hpp"
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <random>

namespace weir::test {
namespace {

using net::Method;

constexpr std::uint32_t kSeed = 20'260'101;
constexpr int kQuestions = 3'000;
constexpr Duration kAtMost = 20s;
constexpr size_t kConnections = 8;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[below(of.size())];
  }

  // Changes bytes: what comes out is mostly no JSON any more.
  std::string bytes(std::string text) {
    static const std::vector<std::string> odd = {
        "null",    "-1",   "1e999", "\\u0000", "\"", "{",      "[[[[",     "\xFF",    "99999999999999999999",
        "\\ud800", "}",    "\\",    ",",       ":",  "1e-400", "\xC3\xA9", "\\uFFFF", "-0",
        "0.1e1",   "\r\n", "true",  "\t",      "]"};
    for (size_t changes = 1 + below(4); changes > 0; --changes) {
      size_t at = text.empty() ? 0 : below(text.size());
      switch (below(5)) {
        case 0: text.insert(at, any(odd)); break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.insert(at, text.substr(at, 1 + below(40))); break;
        case 3:
          if (!text.empty()) text[at] = static_cast<char>(below(256));
          break;
        default: text.resize(at); break;
      }
    }
    return text;
  }

  // Changes values: what comes out is JSON that says something else.
  std::string values(json::value body, const std::vector<json::value>& others) {
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      json::value& place = somewhere(body);
      switch (below(4)) {
        case 0: place = odd_value(); break;
        case 1: place = json::value(somewhere(others[below(others.size())])); break;
        case 2:
          if (place.is_object() && !place.get_object().empty())
            place.get_object().erase(
                std::next(place.get_object().begin(), static_cast<std::ptrdiff_t>(below(place.get_object().size()))));
          break;
        default:
          if (place.is_array() && !place.get_array().empty())
            for (size_t copies = below(300); copies > 0; --copies)
              place.get_array().push_back(json::value(place.get_array()[0]));
          else if (place.is_string()) place.get_string().append(below(600), 'x');
          break;
      }
    }
    return json::to_text(body);
  }

  std::string target(std::string text) {
    static const std::vector<std::string> odd = {
        "/", "%2F",        "?", "&", "=",  "%00", "%FF", "..", "//",   "limit=7",     "?cursor=x", "%C3%A9",
        "#", "?limit=1e9", "+", "%", ";x", "*",   "[0]", "~",  "\xFF", "?enabled=no", "@",         "api"};
    for (size_t changes = 1 + below(2); changes > 0; --changes) {
      size_t at = 1 + below(text.size());
      if (below(3) == 0) text.erase(std::min(at, text.size()), 1 + below(4));
      else text.insert(std::min(at, text.size()), any(odd));
    }
    return text;
  }

 private:
  json::value& somewhere(json::value& root) {
    json::value* place = &root;
    while (below(4) != 0) {
      if (place->is_object() && !place->get_object().empty())
        place = &std::next(place->get_object().begin(), static_cast<std::ptrdiff_t>(below(place->get_object().size())))
                     ->value();
      else if (place->is_array() && !place->get_array().empty())
        place = &place->get_array()[below(place->get_array().size())];
      else break;
    }
    return *place;
  }
  const json::value& somewhere(const json::value& root) { return somewhere(const_cast<json::value&>(root)); }
  json::value odd_value() {
    static const json::array odd = {nullptr,
                                    true,
                                    false,
                                    0,
                                    -1,
                                    1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    UINT64_MAX,
                                    0.5,
                                    -1e308,
                                    1e308,
                                    1e-320,
                                    "",
                                    "0",
                                    "runner-1",
                                    "cam-1",
                                    "\n",
                                    "../../x",
                                    "'; DROP TABLE cameras; --",
                                    "%s%n",
                                    std::string(70'000, 'y'),
                                    "\xF0\x9F\x8E\xA5",
                                    json::array{},
                                    json::object{},
                                    json::array{nullptr},
                                    json::object{{"", ""}}};
    return odd[below(odd.size())];
  }

  std::mt19937 random_;
};

class Fuzz : public OverBothStores {};
INSTANTIATE_OVER_BOTH_STORES(Fuzz);

TEST_P(Fuzz, RandomlyChangedQuestions_AreAllAnsweredBelow500) {
  START_OR_SKIP();
  process().furnish(3);
  const Secret token = process().token("admin");
  std::vector<BodyRoute> routes = body_routes();
  std::vector<json::value> bodies;
  for (BodyRoute& route : routes) {
    if (size_t at = route.body.find("{V}"); at != std::string::npos) route.body.replace(at, 3, "1099511627777");
    auto parsed = json::parse_text(route.body);
    ASSERT_TRUE(parsed) << route.body;
    bodies.push_back(*parsed);
  }
  Crowd crowd;
  for (size_t i = 0; i < kConnections; ++i) crowd.add(process());

  Mutator mutate(kSeed);
  auto question = [&] {
    size_t which = mutate.below(routes.size());
    const BodyRoute& route = routes[which];
    net::ClientRequest request = request_for(route.method, route.target, nullptr, token);
    request.timeout = 10s;
    request.replayable = true;
    request.body = mutate.below(2) == 0 ? mutate.bytes(route.body) : mutate.values(bodies[which], bodies);
    if (mutate.below(8) == 0) request.target = mutate.target(request.target);
    if (mutate.below(16) == 0) request.method = mutate.any<Method>({Method::get, Method::put, Method::patch});
    return request;
  };

  Instant end = boot_now() + kAtMost;
  int asked = 0;
  std::map<int, int> statuses;
  for (; asked < kQuestions && boot_now() < end; asked += kConnections) {
    std::vector<net::ClientRequest> requests;
    for (size_t i = 0; i < kConnections; ++i) requests.push_back(question());
    std::vector<Reply> replies = crowd.ask_all(requests);
    for (size_t i = 0; i < replies.size(); ++i) {
      ++statuses[replies[i].status];
      ASSERT_TRUE(replies[i].status >= 200 && replies[i].status < 500)
          << "seed " << kSeed << ", question " << asked + static_cast<int>(i) << ": "
          << net::to_string(requests[i].method) << " " << requests[i].target << "\n"
          << requests[i].body.substr(0, 2000) << "\n"
          << replies[i].status << " " << replies[i].text;
      ASSERT_EQ(replies[i].status >= 400, !replies[i].code().empty()) << replies[i].text;
    }
  }
  EXPECT_GT(asked, 400);
  EXPECT_GT(statuses[400], asked / 4);
  EXPECT_GT(statuses[200], 0) << "nothing got through: the changes are too many to find anything behind the reading";
  EXPECT_TRUE(process().running());
  EXPECT_EQ(process().get("/healthz").status, 200);
  EXPECT_EQ(process().get("/v1/cameras").status, 200);
  EXPECT_EQ(process().log().find("http.handler_failed"), std::string::npos);
}

// ---- no HTTP at all ----

std::string database_in(const TempDir& folder) { return "sqlite:" + folder.path() + "/weir.db"; }

TEST(Garbage, RandomBytes_AreRefusedOrIgnored_AndTheConnectionEnds) {
  TempDir folder;
  WeirProcess process(folder.path(), database_in(folder));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(1 + random() % 4'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (round % 4 == 1) bytes.insert(0, "POST /v1/tenants HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    if (round % 4 == 2) bytes.insert(0, "POST /v1/tenants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (round % 4 == 3) bytes += "\r\n\r\n";
    RawSocket socket(process);
    ASSERT_TRUE(socket.connected());
    socket.send(bytes);
    socket.finish_sending();
    bool ended = false;
    std::string answer = socket.read_to_end(&ended);
    EXPECT_TRUE(ended) << "round " << round;
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
  }
  EXPECT_TRUE(process.running());
  EXPECT_EQ(process.get("/healthz").status, 200);
}

TEST(Garbage, HalfRequests_CostNothing) {
  TempDir folder;
  WeirProcess process(folder.path(), database_in(folder));
  std::string whole = fmt::format(
      "POST /v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n"
      "Content-Length: 18\r\n\r\n{{\"tenant_id\":\"t1\"}}",
      process.token("admin").reveal());
  for (size_t bytes = 1; bytes < whole.size(); bytes += 3) {
    RawSocket socket(process);
    ASSERT_TRUE(socket.send(std::string_view(whole).substr(0, bytes)));
  }
  EXPECT_EQ(count_of(process.get("/v1/tenants")), 0u);
  RawSocket socket(process);
  socket.send(whole);
  socket.finish_sending();
  EXPECT_TRUE(socket.read_to_end().starts_with("HTTP/1.1 201 "));
}

TEST(Garbage, SlowClient_IsToldSo_AndOthersAreServed) {
  TempDir folder;
  WeirProcess process(folder.path(), database_in(folder), {"--http-read-timeout-s", "0.3"});
  RawSocket slow(process);
  std::string answer;
  // A byte now and then would keep the connection for ever, if only the pauses were counted.
  bool refused = eventually(30s, [&] {
    slow.send("G");
    answer += slow.read_now();
    return !answer.empty();
  });
  EXPECT_TRUE(refused);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
  EXPECT_EQ(process.get("/healthz").status, 200);
}

TEST(Garbage, IdleConnectionsOverTheLimit_AreTurnedAway_AndTheLimitFreesItself) {
  TempDir folder;
  WeirProcess process(folder.path(), database_in(folder), {"--http-connections-max", "16"});
  {
    std::vector<std::unique_ptr<RawSocket>> idle;
    for (int i = 0; i < 16; ++i) idle.push_back(std::make_unique<RawSocket>(process));
    for (int i = 0; i < 40; ++i) {
      RawSocket more(process);
      bool ended = false;
      std::string answer = more.read_to_end(&ended);
      EXPECT_TRUE(ended);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
      EXPECT_NE(answer.find("\"code\":\"too_many_connections\""), std::string::npos) << answer;
    }
    idle[0]->send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(idle[0]->read_to_end().starts_with("HTTP/1.1 200 "));
  }
  EXPECT_TRUE(eventually(30s, [&] { return process.get("/healthz").status == 200; }));
}

}  // namespace
}  // namespace weir::test
