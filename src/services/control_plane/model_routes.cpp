#include "advice.hpp"
#include "plane.hpp"

namespace weir::control_plane {

namespace {

// All at once: a fleet has a handful of models, however many runners it has.
Reply list_models(Plane& plane, net::Request&, const Caller& caller) {
  CO_TRY(learnt, co_await learn_models(plane));
  co_return net::Response::json(json::object{{"items", plane.models.list(caller.tenant)}, {"next_cursor", nullptr}});
}

}  // namespace

void add_model_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, net::Method::get, "/v1/models", kReaders, list_models);
}

}  // namespace weir::control_plane
