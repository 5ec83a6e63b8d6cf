#include "weir/cluster/product_routes.hpp"

#include "admission.hpp"
#include "listen_route.hpp"
#include "topics.hpp"

#include "weir/base/log.hpp"

namespace weir::cluster {

namespace {

using net::Method;
using net::Request;
using net::Response;
using Reply = Async<Response>;

// What the control plane says of this process's own credentials does not concern the product.
Error passed_on(Error said) {
  if (said.code != Errc::unauthorized && said.code != Errc::forbidden) return said;
  return {Errc::unavailable, "plane_refused",
          fmt::format("the control plane refuses this process of the cluster: {}", said.message), {}};
}

template <class AnyId>
Result<AnyId> path_id(const Request& request) {
  return AnyId::parse(request.param(AnyId::field_name));
}

// ---- subscriptions ----

struct SubscriptionBody {
  std::string id;
  ModelId model = 0;
  SubscriptionOptions options = {};
};
template <class V>
void fields(V& v, SubscriptionBody& b) {
  v.required("subscription_identifier", b.id);
  v.required("model_id", b.model, json::range<ModelId>(1, kModelIdMax));
  fields(v, b.options);
}

Result<SubscriptionRecord> read_subscription(const std::string& text) {
  TRY(body, json::read_text<SubscriptionBody>(text, json::Unknown::reject));
  TRY(id, Identifier::parse(body.id));
  return SubscriptionRecord{.id = SubscriptionId::trusted(id.text()), .camera = CameraId::trusted(id.camera),
                            .model = body.model, .options = std::move(body.options)};
}

// The rows have changed: the master looks at once, if it can be told; else it hears of it from the control plane.
Async<Nothing> look_again(Front& front, std::string why) {
  Status told = co_await front.regenerate(std::move(why));
  if (!told) log::debug("cluster.master_not_told", told.error().message).with(kTopic, kClusterTopic);
  co_return ok();
}

Async<bool> some_worker_is_online(Front& front) {
  CO_TRY(state, co_await front.state());
  for (const json::value& worker : state.at("workers").as_array())
    if (worker.is_object() && worker.get_object().contains("online") && worker.at("online") == true) co_return true;
  co_return false;
}

// No worker can run a subscription whose model it cannot fetch, so that is found out before the row is written.
Async<Nothing> check_model(ClusterPlane& plane, ModelId model) {
  auto link = co_await plane.model_url(model);
  if (link) co_return ok();
  Error why = passed_on(std::move(link).error());
  if (why.reason == "no_file") why.message = "Model URL expired or inaccessible: " + why.message;
  co_return why;
}

Reply subscribe(ProductPorts on, Request& request) {
  CO_TRY(wanted, read_subscription(request.body));
  json::object answer{{"subscription_identifier", wanted.id.str()}, {"subscribed", true}};
  CO_TRY(usable, co_await check_model(on.plane, wanted.model));
  std::string why = "subscription.created " + wanted.id.str();
  Status made = co_await on.plane.subscribe(std::move(wanted));
  if (!made) co_return passed_on(std::move(made).error());
  CO_TRY(told, co_await look_again(on.front, std::move(why)));
  auto online = co_await some_worker_is_online(on.front);
  if (online && !*online) answer["warning"] = "No workers available for assignment";
  co_return Response::json(answer, 201);
}

Reply unsubscribe(ProductPorts on, Request& request) {
  CO_TRY(id, Identifier::parse(request.param("subscription_identifier")));
  auto ended = co_await on.plane.unsubscribe(SubscriptionId::trusted(id.text()));
  if (!ended) co_return passed_on(std::move(ended).error());
  CO_TRY(told, co_await look_again(on.front, "subscription.deleted " + id.text()));
  co_return Response::json(json::object{{"subscription_identifier", id.text()}, {"deleted", *ended}});
}

Reply unsubscribe_camera(ProductPorts on, Request& request) {
  CO_TRY(camera, path_id<CameraId>(request));
  auto all = co_await on.plane.subscriptions_of(camera);
  if (!all) co_return passed_on(std::move(all).error());
  json::array deleted;
  for (const SubscriptionId& each : *all) {
    auto ended = co_await on.plane.unsubscribe(each);
    if (!ended) co_return passed_on(std::move(ended).error());
    if (*ended) deleted.emplace_back(each.str());
  }
  CO_TRY(told, co_await look_again(on.front, "subscriptions deleted of " + camera.str()));
  co_return Response::json(json::object{{"camera_uuid", camera.str()}, {"deleted", std::move(deleted)}});
}

Reply resubscribe(ProductPorts on, Request& request) {
  CO_TRY(camera, path_id<CameraId>(request));
  CO_TRY(done, co_await on.front.resubscribe(camera.str()));
  co_return Response::json(json::object{{"camera_uuid", camera.str()}, {"resubscribed", true}});
}

// ---- the cluster ----

// Loads are balanced all the time; whoever asks for it only makes the next plan come sooner.
Reply rebalance(ProductPorts on, Request&) {
  CO_TRY(told, co_await look_again(on.front, "rebalance"));
  co_return Response::json(json::object{{"rebalanced", true}});
}

Result<std::optional<std::int64_t>> read_session(const std::string& text) {
  TRY(body, json::parse_text(text));
  const json::value* session = body.is_object() ? body.get_object().if_contains("session_id") : nullptr;
  if (session == nullptr) return json::problems_error({{"session_id", "is required: a number, or null for none"}});
  json::Context ctx;
  std::optional<std::int64_t> out;
  json::read_value(*session, out, "session_id", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return out;
}

Reply set_session(ProductPorts on, Request& request) {
  CO_TRY(display, path_id<DisplayId>(request));
  CO_TRY(session, read_session(request.body));
  CO_TRY(done, co_await on.front.set_session(display.str(), session));
  json::object answer{{"display_id", display.str()}, {"session_id", nullptr}};
  if (session) answer["session_id"] = *session;
  co_return Response::json(answer);
}

Response picture_response(WorkerPicture picture) {
  Response response = Response::text(std::move(picture.jpeg), 200, "image/jpeg");
  if (!picture.captured_at.empty()) response.headers.emplace_back("X-Captured-At", std::move(picture.captured_at));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

Reply image(ProductPorts on, Request& request) {
  CO_TRY(camera, path_id<CameraId>(request));
  CO_TRY(workers, co_await on.front.workers_of(camera.str()));
  Error why{Errc::not_found, "camera_not_found", "no worker has a subscription of this camera", {}};
  for (const std::string& worker : workers) {
    auto picture = co_await on.workers.picture(worker, camera.str());
    if (picture) co_return picture_response(*std::move(picture));
    why = std::move(picture).error();
  }
  co_return why;
}

Reply state(ProductPorts on, Request&) {
  CO_TRY(shown, co_await on.front.state_text());
  co_return Response::text(std::move(shown), 200, "application/json");
}

}  // namespace

void add_product_routes(net::Router& router, ProductPorts ports, net::Metrics& metrics, Clock& clock,
                        const net::TokenKey& key) {
  auto add = [&](Method method, std::string_view pattern, Access access, Reply (*handler)(ProductPorts, Request&)) {
    router.add(method, pattern, [=, &clock, &key](Request& request) -> boost::asio::awaitable<Response> {
      auto caller = admit(request, key, clock.wall(), access);
      if (!caller) co_return Response::failure(caller.error());
      auto reply = co_await handler(ports, request);
      if (!reply) co_return Response::failure(reply.error());
      co_return *std::move(reply);
    });
  };
  add(Method::get, "/v1/cluster/state", Access::read, state);
  add(Method::post, "/v1/cluster/subscriptions", Access::change, subscribe);
  add(Method::del, "/v1/cluster/subscriptions/{subscription_identifier}", Access::change, unsubscribe);
  add(Method::del, "/v1/cluster/cameras/{camera_uuid}/subscriptions", Access::change, unsubscribe_camera);
  add(Method::post, "/v1/cluster/cameras/{camera_uuid}/resubscribe", Access::change, resubscribe);
  add(Method::get, "/v1/cluster/cameras/{camera_uuid}/image", Access::read, image);
  add(Method::post, "/v1/cluster/rebalance", Access::change, rebalance);
  add(Method::put, "/v1/cluster/displays/{display_id}/session", Access::change, set_session);
  auto listen = [=, &metrics, &clock, &key](Request& request) -> boost::asio::awaitable<Response> {
    auto caller = admit(request, key, clock.wall(), Access::read);
    if (!caller) co_return Response::failure(caller.error());
    auto response = listen_response(ports.front, metrics, request, allows(caller->role, Access::change));
    if (!response) co_return Response::failure(response.error());
    co_return *std::move(response);
  };
  router.add(Method::get, "/v1/cluster/listen", listen);
}

}  // namespace weir::cluster
