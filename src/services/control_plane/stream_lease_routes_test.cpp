// Leases of published streams over HTTP: the same routes as a camera's, by `stream_id`, and where a new stream stands.
#include "plane_testing.hpp"

namespace weir::control_plane {
namespace {

using lease::Outcome;
using lease::Version;
using net::Method;
using net::Role;

class StreamLeaseRoutes : public PlaneTest {
 protected:
  StreamLeaseRoutes() {
    store_.up = true;
    store_.on_apply = [this](const lease::Batch& batch) {
      asked_ = batch;
      std::vector<lease::Answer> answers;
      for (const lease::Ask& ask : batch.asks) {
        lease::Answer& answer = answers.emplace_back();
        answer = {ask.subject, outcome_, Version{9}, Version{9}, batch.ttl};
        answer.why = why_;
        answer.tenant = batch.home.tenant;
        answer.site = batch.home.site;
      }
      return answers;
    };
    start_ticker();
  }
  ~StreamLeaseRoutes() override { stop_ticker(); }
  net::Response ask(const std::string& operation, const std::string& body, std::string tenant = "") {
    std::string own = token(Role::runner, "o-1", std::move(tenant));
    return respond(Method::post, "/v1/leases/stream/" + operation, body, own, 1s);
  }
  // The text with the head that every question has.
  static std::string question(const std::string& more) {
    return fmt::format(R"({{"runner_id":"o-1","boot_id":"b","ttl_seconds":30,{}}})", more);
  }

  std::optional<lease::Batch> asked_;
  Outcome outcome_ = Outcome::granted;
  lease::Refusal why_ = lease::Refusal::none;
};

const char* const kHome = R"("tenant_id":"t","site_id":"s")";

TEST_F(StreamLeaseRoutes, OneStream_IsAcquiredRenewedAndReleased_ByItsOwnField) {
  net::Response granted = ask("acquire", question(fmt::format(R"("stream_id":"live",{})", kHome)));
  ASSERT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(body_of(granted).at("stream_id").as_string(), "live");
  EXPECT_FALSE(body_of(granted).contains("camera_uuid"));
  EXPECT_EQ(body_of(granted).at("tenant_id").as_string(), "t");
  EXPECT_EQ(asked_->kind, lease::Kind::stream);
  EXPECT_EQ(asked_->home.site.str(), "s");
  ASSERT_EQ(store_.announced.size(), 1u);
  EXPECT_EQ(store_.announced[0][0].routing_key, "lease.granted.t.s.live");
  EXPECT_NE(store_.announced[0][0].payload.find(R"("stream_id":"live")"), std::string::npos);
  EXPECT_NE(store_.announced[0][0].payload.find(R"("kind":"stream")"), std::string::npos);

  outcome_ = Outcome::renewed;
  EXPECT_EQ(ask("renew", question(R"("stream_id":"live","version":9)")).status, 200);
  EXPECT_EQ(asked_->asks[0].version, Version{9});
  outcome_ = Outcome::released;
  net::Response released = ask("release", question(R"("stream_id":"live","version":9)"));
  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(body_of(released).at("stream_id").as_string(), "live");
}

TEST_F(StreamLeaseRoutes, ManyStreams_AreAnsweredByTheirOwnField) {
  std::string items = R"("items":[{"stream_id":"a","key":"1"},{"stream_id":"b","key":"2"}],)";
  net::Response granted = ask("acquire-batch", question(items + kHome));
  ASSERT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(body_of(granted).at("items").at(1).at("stream_id").as_string(), "b");
  EXPECT_EQ(body_of(granted).at("items").at(1).at("result").as_string(), "granted");
  outcome_ = Outcome::renewed;
  EXPECT_EQ(ask("renew-batch", question(R"("items":[{"stream_id":"a","version":9}])")).status, 200);
  outcome_ = Outcome::released;
  EXPECT_EQ(ask("release-batch", question(R"("items":[{"stream_id":"a","version":9}])")).status, 200);
}

TEST_F(StreamLeaseRoutes, AnAcquire_SaysWhereTheStreamStands_AndRenewalsNeedNot) {
  for (auto [body, field] : {std::pair{R"("stream_id":"live","site_id":"s")", "tenant_id"},
                             {R"("stream_id":"live","tenant_id":"t")", "site_id"},
                             {R"("tenant_id":"t","site_id":"s")", "stream_id"},
                             {R"("camera_uuid":"live","tenant_id":"t","site_id":"s")", "stream_id"}}) {
    net::Response refused = ask("acquire", question(body));
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(body_of(refused).at("error").at("details").at("field").as_string(), field) << refused.body;
  }
  EXPECT_EQ(ask("acquire-batch", question(R"("items":[{"stream_id":"a","key":"1"}])")).status, 400);
  EXPECT_FALSE(asked_) << "the store was not asked";
  // A token with a tenant makes no stream in another one.
  EXPECT_EQ(ask("acquire", question(fmt::format(R"("stream_id":"live",{})", kHome)), "t-2").status, 403);
  EXPECT_EQ(ask("acquire", question(fmt::format(R"("stream_id":"live",{})", kHome)), "t").status, 200);
}

TEST_F(StreamLeaseRoutes, AnIdOfAnotherForm_IsRefused) {
  for (std::string id : std::vector<std::string>{"a.b", "a/b", "a b", "", "\\u00e9", std::string(65, 'x')}) {
    EXPECT_EQ(ask("acquire", question(fmt::format(R"("stream_id":"{}",{})", id, kHome))).status, 400) << id;
    std::string items = fmt::format(R"("items":[{{"stream_id":"{}","version":9}}])", id);
    EXPECT_EQ(ask("renew-batch", question(items)).status, 400) << id;
  }
  EXPECT_FALSE(asked_);
}

TEST_F(StreamLeaseRoutes, Refusals_NameTheStream) {
  outcome_ = Outcome::refused;
  why_ = lease::Refusal::taken;
  net::Response taken = ask("acquire", question(fmt::format(R"("stream_id":"cam-1",{})", kHome)));
  EXPECT_EQ(taken.status, 409);
  EXPECT_EQ(code_of(taken), "id_taken");
  outcome_ = Outcome::held;
  EXPECT_EQ(code_of(ask("acquire", question(fmt::format(R"("stream_id":"live",{})", kHome)))), "lease_held");
  outcome_ = Outcome::lost;
  net::Response lost = ask("renew", question(R"("stream_id":"live")"));
  EXPECT_EQ(lost.status, 404);
  EXPECT_EQ(code_of(lost), "lease_lost");
  EXPECT_EQ(body_of(lost).at("error").at("details").at("stream_id").as_string(), "live");
}

TEST_F(StreamLeaseRoutes, Operators_ListShowAndRevoke_OneKind) {
  LeaseView view{lease::LeaseRow{SubjectId::trusted("live")}};
  view.row.kind = lease::Kind::stream;
  view.row.owner = {RunnerId::trusted("o-1"), BootId::trusted("b")};
  view.row.tenant = TenantId::trusted("t");
  view.row.site = SiteId::trusted("s");
  LeaseFilter filter;
  store_.on_list = [&](const LeaseFilter& wanted) {
    filter = wanted;
    return std::vector{view};
  };
  store_.on_show = [&](const SubjectId&) -> Result<LeaseView> { return view; };
  std::string admin = token(Role::admin);
  auto get = [&](std::string path) { return respond(Method::get, std::move(path), "", admin, 1s); };
  net::Response listed = get("/v1/leases?kind=stream");
  EXPECT_EQ(filter.kind, lease::Kind::stream);
  EXPECT_EQ(body_of(listed).at("items").at(0).at("stream_id").as_string(), "live");
  EXPECT_FALSE(body_of(listed).at("items").at(0).as_object().contains("stream")) << "that is what a camera shows";
  EXPECT_EQ(get("/v1/leases").status, 200);
  EXPECT_EQ(filter.kind, lease::Kind::camera);
  EXPECT_EQ(get("/v1/leases?kind=tree").status, 400);

  EXPECT_EQ(body_of(get("/v1/leases/stream/live")).at("runner_id").as_string(), "o-1");
  EXPECT_EQ(get("/v1/leases/camera/live").status, 404) << "it is no camera";
  auto revoke = [&](std::string path) { return respond(Method::post, std::move(path), "", admin, 1s); };
  EXPECT_EQ(revoke("/v1/leases/camera/live/revoke").status, 404);
  view.row.revoked = true;
  EXPECT_EQ(revoke("/v1/leases/stream/live/revoke").status, 200);
  ASSERT_EQ(store_.announced.size(), 1u);
  ASSERT_EQ(store_.announced[0].size(), 1u) << "no camera is disconnected";
  EXPECT_EQ(store_.announced[0][0].routing_key, "lease.revoked.t.s.live");
}

}  // namespace
}  // namespace weir::control_plane
