// OfModels: how a cluster's model is read, written, stored and announced (record_routes.hpp). Loop thread only.
#pragma once

#include "display_bodies.hpp"
#include "record_routes.hpp"

namespace weir::control_plane {

struct OfModels {
  using Record = ModelRecord;
  static constexpr std::string_view kWhat = "model", kIdField = "model_id";

  static Result<ModelId> path_id(const net::Request& request) { return path_model_id(request); }
  static Status fill_id(json::object& body, const net::Request& request) {
    TRY(id, path_model_id(request));
    json::value& given = body[kIdField];
    if (given.is_null()) given = id;
    if (given.is_int64() && given.get_int64() == id) return ok();
    return bad_field(kIdField, "must equal the one in the path");
  }
  static Result<Record> read(json::object body) { return read_model(std::move(body)); }
  static json::object write(const Record& record) { return write_model(record); }
  static std::string name(const Record& record) { return std::to_string(record.id); }
  static json::object id_member(const Record& record) { return {{kIdField, record.id}}; }
  static json::object announced(const Record& record) { return {{kIdField, record.id}, {"name", record.name}}; }

  static Async<Record> show(Plane& plane, ModelId id, TenantId tenant) {
    return plane.cluster_models.show_model(id, std::move(tenant));
  }
  static Async<Record> put(Plane& plane, Record record, Put how) {
    return plane.cluster_models.put_model(std::move(record), how);
  }
  static Async<Nothing> remove(Plane& plane, ModelId id, TenantId tenant) {
    return plane.cluster_models.remove_model(id, std::move(tenant));
  }
};

}  // namespace weir::control_plane
