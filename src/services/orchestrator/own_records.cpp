#include "weir/orchestrator/own_records.hpp"

#include "weir/base/json.hpp"

namespace weir::orchestrator {

using stream::Credentials;
using stream::StreamId;

namespace {

constexpr int kPage = 200;

SubjectId subject(const StreamId& id) { return SubjectId::trusted(id.str()); }

Error no_such_stream() { return {Errc::not_found, "stream_not_found", "this orchestrator has no such stream"}; }

Error kept_elsewhere() {
  return {Errc::unprocessable, "wishes_elsewhere",
          "a control plane keeps this orchestrator's streams: put or remove their wishes there"};
}

// Where the body says that the stream stands; the rest of the body are wishes.
struct HomeBody {
  lease::Home home;
};
template <class V>
void fields(V& v, HomeBody& b) {
  v.optional("tenant_id", b.home.tenant);
  v.optional("site_id", b.home.site);
}

}  // namespace

json::object OwnRecords::write(const StreamRecord& record, Credentials credentials) const {
  json::object out = orchestrator_.view(StreamId::trusted(record.id.str()));
  if (out.empty()) {
    const json::value* stopped = record.view.if_contains("stopped_by_operator");
    out = record.view;
    out["stream_id"] = record.id.str();
    out["tenant_id"] = record.tenant.str();
    out["site_id"] = record.site.str();
    out["state"] = stopped != nullptr && stopped->is_bool() && stopped->get_bool() ? "stopped" : "idle";
    out["holder"] = nullptr;
  }
  out["told_at"] = record.told_at == WallTime{} ? json::value(nullptr) : json::value(to_iso(record.told_at));
  auto wishes = stream::read_wishes(record.wishes);
  out["wishes"] = wishes ? stream::write_wishes(*wishes, credentials) : json::object();
  return out;
}

Async<json::object> OwnRecords::show(StreamId id, Credentials credentials) const {
  if (records_ != nullptr) {
    SubjectId asked = subject(id);
    TenantId any;
    auto record = co_await records_->show_stream(std::move(asked), std::move(any));
    if (record) co_return write(*record, credentials);
    if (record.error().code != Errc::not_found) co_return record.error();
  }
  json::object out = orchestrator_.view(id);
  if (out.empty()) co_return no_such_stream();
  co_return std::move(out);
}

Async<std::vector<json::object>> OwnRecords::list(Credentials credentials) const {
  std::map<std::string, json::object> all;
  for (json::object& view : orchestrator_.views()) {
    std::string id(view.at("stream_id").as_string());
    all[id] = std::move(view);
  }
  for (SubjectId after; records_ != nullptr;) {
    TenantId any;
    SubjectId from = after;
    CO_TRY(page, co_await records_->list_streams(std::move(any), std::move(from), kPage));
    for (const StreamRecord& record : page) all[record.id.str()] = write(record, credentials);
    if (page.size() < kPage) break;
    after = page.back().id;
  }
  std::vector<json::object> out;
  for (auto& [id, view] : all) out.push_back(std::move(view));
  co_return std::move(out);
}

Async<json::object> OwnRecords::put(StreamId id, json::object wishes) {
  if (records_ == nullptr) co_return kept_elsewhere();
  CO_TRY(place, json::read<HomeBody>(wishes));
  wishes.erase(TenantId::field_name);
  wishes.erase(SiteId::field_name);
  CO_TRY(read, stream::read_wishes(wishes));
  StreamRecord wanted{.id = subject(id), .tenant = place.home.tenant, .site = place.home.site};
  if (wanted.tenant.empty()) wanted.tenant = home_.tenant;
  if (wanted.site.empty()) wanted.site = home_.site;
  wanted.wishes = stream::write_wishes(read, Credentials::shown);
  CO_TRY(put, co_await records_->put_stream(std::move(wanted)));
  orchestrator_.order({subject(id), "wishes"});
  co_return co_await show(std::move(id), Credentials::shown);
}

Async<Nothing> OwnRecords::remove(StreamId id) {
  if (records_ == nullptr) co_return kept_elsewhere();
  SubjectId doomed = subject(id);
  TenantId any;
  CO_TRY(gone, co_await records_->remove_stream(std::move(doomed), std::move(any)));
  orchestrator_.order({subject(id), "wishes"});
  co_return ok();
}

}  // namespace weir::orchestrator
