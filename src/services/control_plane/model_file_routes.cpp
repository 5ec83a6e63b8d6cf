// The files of detector clusters' models: uploaded by administrators, read by whoever has a token or a signed link.
#include "model_link.hpp"
#include "model_record.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace weir::control_plane {

using net::Method;

namespace {

constexpr Duration kLinkLife = 1h;
constexpr int kModelsPage = 1000;

// ---- up ----

// Workers may keep the file under this name.
Result<std::string> file_name(const net::Request& request, ModelId model) {
  std::string name = request.query_value("name").value_or(fmt::format("model-{}", model));
  if (auto problem = name_problem(name); !problem.empty()) return bad_field("name", std::move(problem));
  if (name.empty() || name.front() == '.' || name.find_first_of("/\\") != std::string::npos)
    return bad_field("name", "must be a file's name without a folder, and not begin with a dot");
  return name;
}

// "" where the client expects none.
Result<std::string> expected_checksum(const net::Request& request) {
  std::string text(request.header("x-content-sha256"));
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  bool hex = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (text.empty() || (hex && text.size() == 64)) return text;
  return bad_field("X-Content-SHA256", "must be a SHA-256 in 64 hexadecimal digits");
}

// Answers how many bytes there were.
Async<std::int64_t> pass_on(net::BodyReader& from, ModelDisk::Incoming& to) {
  std::int64_t bytes = 0;
  for (;;) {
    CO_TRY(piece, co_await from.read_some());
    if (piece.empty()) co_return bytes;
    bytes += static_cast<std::int64_t>(piece.size());
    CO_TRY(written, co_await to.write(std::move(piece)));
  }
}

Async<int> remove_unnamed(Plane& plane) {
  std::set<std::string> named;
  for (ModelId after = 0;;) {
    CO_TRY(models, co_await plane.cluster_models.list_models(TenantId(), after, kModelsPage));
    if (models.empty()) break;
    for (const ModelRecord& model : models)
      if (model.file) named.insert(model.file->sha256);
    after = models.back().id;
  }
  co_return co_await plane.model_disk.remove_unnamed(std::move(named));
}

// The upload is done whatever becomes of the files that nobody needs any more.
boost::asio::awaitable<void> tidy_up(Plane& plane) {
  auto removed = co_await remove_unnamed(plane);
  if (!removed)
    log::warn("model_files.not_tidied", removed.error().message).with("error_code", removed.error().reason);
  else if (*removed > 0)
    log::info("model_files.removed", "files that no model names were removed").with("files", *removed);
}

Reply take_file(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_model_id(request));
  CO_TRY(name, file_name(request, id));
  CO_TRY(expected, expected_checksum(request));
  TenantId tenant = caller.tenant, again = caller.tenant;
  CO_TRY(present, co_await plane.cluster_models.show_model(id, std::move(tenant)));
  CO_TRY(incoming, co_await plane.model_disk.receive());
  CO_TRY(bytes, co_await pass_on(*request.streamed, *incoming));
  if (bytes == 0) co_return bad_field("body", "must be the file's bytes, and at least one");
  CO_TRY(sha256, co_await incoming->keep(std::move(expected)));
  ModelFile file{std::move(name), std::move(sha256), bytes};
  CO_TRY(changed, co_await plane.cluster_models.set_model_file(id, std::move(again), std::move(file)));
  note_record<OfModels>(plane, "updated", changed, caller, request);
  co_await tidy_up(plane);
  co_return net::Response::json(OfModels::write(changed));
}

// ---- down ----

Error no_file(ModelId model) {
  return {Errc::conflict, "no_file",
          fmt::format("model {} has no file yet; an administrator uploads one with: weir model upload {} FILE", model,
                      model)};
}

// The file that this request may read.
Async<ModelFile> file_for(Plane& plane, const net::Request& request, ModelId id) {
  auto expires = request.query_value("expires"), signature = request.query_value("signature");
  bool linked = expires || signature;
  TenantId tenant;
  if (!linked) {
    CO_TRY(caller, plane.gate.admit(request, kRunners));
    tenant = caller.tenant;
  }
  auto model = co_await plane.cluster_models.show_model(id, std::move(tenant));
  if (linked && !model && model.error().code == Errc::not_found) co_return link_invalid();
  if (!model) co_return std::move(model).error();
  if (!model->file) co_return linked ? link_invalid() : no_file(id);
  if (linked) {
    CO_TRY(fits, check_link(plane.gate.key(), id, model->file->sha256, expires.value_or(""), signature.value_or(""),
                            plane.clock.wall()));
  }
  co_return *std::move(model->file);
}

Reply give_file(Plane& plane, net::Request& request) {
  CO_TRY(id, path_model_id(request));
  CO_TRY(file, co_await file_for(plane, request, id));
  std::string sha256 = file.sha256;
  CO_TRY(opened, co_await plane.model_disk.open(std::move(sha256)));
  std::shared_ptr<ModelDisk::Outgoing> from = std::move(opened);
  if (static_cast<std::int64_t>(from->bytes()) != file.bytes)
    co_return Error{Errc::unavailable, "file_damaged",
                    fmt::format("the file of model {} has {} bytes instead of {}; upload it again", id, from->bytes(),
                                file.bytes)};
  net::Response response;
  response.content_type = "application/octet-stream";
  response.headers = {{"ETag", fmt::format("\"{}\"", file.sha256)}, {"Cache-Control", "private"}};
  response.source.bytes = from->bytes();
  response.source.next = [from] { return from->read_some(); };
  co_return response;
}

// ---- links ----

// The address under which whoever asks for a link reached this control plane, or what stands for it in the settings.
Result<std::string> own_address(const Plane& plane, const net::Request& request) {
  std::string given = plane.settings.model_files_url;
  while (given.ends_with('/')) given.pop_back();
  if (!given.empty()) return given;
  std::string_view host = request.header("host");
  auto usual = [](unsigned char c) { return std::isalnum(c) != 0 || (c != 0 && std::strchr(".-_:[]", c) != nullptr); };
  if (host.empty() || !std::ranges::all_of(host, usual))
    return bad_field("Host", "must be a host's name or address, and perhaps a port");
  bool tls = request.encrypted || request.header("x-forwarded-proto") == "https";
  return fmt::format("{}://{}", tls ? "https" : "http", host);
}

Reply make_link(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_model_id(request));
  CO_TRY(address, own_address(plane, request));
  TenantId tenant = caller.tenant;
  CO_TRY(model, co_await plane.cluster_models.show_model(id, std::move(tenant)));
  if (!model.file) co_return no_file(id);
  WallTime expires = std::chrono::floor<std::chrono::seconds>(plane.clock.wall() + kLinkLife);
  std::string path = fmt::format("/v1/models/{}/file?{}", id,
                                 link_query(plane.gate.key(), id, model.file->sha256, expires));
  net::Response response = net::Response::json(json::object{{"url", address + path},
                                                            {"path", path},
                                                            {"expires_at", to_iso(expires)},
                                                            {"sha256", model.file->sha256},
                                                            {"bytes", model.file->bytes},
                                                            {"name", model.file->name}});
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

}  // namespace

void add_model_file_routes(net::Router& router, Plane& plane) {
  constexpr std::string_view kFile = "/v1/models/{model_id}/file";
  add_guarded(router, plane, Method::put, kFile, kAdmins, take_file,
              net::StreamedBody{.bytes_max = plane.settings.model_file_bytes_max});
  add_open(router, plane, Method::get, kFile, give_file);
  add_guarded(router, plane, Method::post, "/v1/models/{model_id}/file-url", kRunners, make_link);
}

}  // namespace weir::control_plane
