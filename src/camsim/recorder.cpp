#include "recorder.hpp"

#include "certificate.hpp"
#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <unistd.h>

#include <charconv>

namespace weir::camsim {

struct Recorder::Client {
  Recorder* recorder;
  GstRTSPClient* client;
  std::shared_ptr<Dial> dial;
  SimCamera* camera = nullptr;
  bool has_session = false;
};

struct Recorder::Held {
  Ref<GSocket> socket;
  GSource* source;
  std::shared_ptr<Dial> dial;
  Recorder* recorder;

  ~Held() {
    g_source_destroy(source);
    g_source_unref(source);
    recorder->dials_.end_connecting(*dial);
  }
};

namespace {

constexpr Duration kSessionSweep = 5s;

std::string peer_of(GSocket* socket) {
  Ref<GSocketAddress> address(g_socket_get_remote_address(socket, nullptr));
  if (!address || !G_IS_INET_SOCKET_ADDRESS(address.get())) return "";
  auto* inet = G_INET_SOCKET_ADDRESS(address.get());
  char* host = g_inet_address_to_string(g_inet_socket_address_get_address(inet));
  std::string text = fmt::format("{}:{}", host, g_inet_socket_address_get_port(inet));
  g_free(host);
  return text;
}

// The server may give up its reference while it closes, with a lock of the client's held.
void close_client(GstRTSPClient* client) {
  Ref<GstRTSPClient> kept(GST_RTSP_CLIENT(g_object_ref(client)));
  gst_rtsp_client_close(client);
}

GSocket* socket_of(GstRTSPClient* client) {
  return gst_rtsp_connection_get_write_socket(gst_rtsp_client_get_connection(client));
}

Error socket_error(const RecorderSpec& spec, const GError& error) {
  return Error{Errc::unavailable, "listen_failed",
               fmt::format("{}: cannot listen on {}: {}", spec.name, spec.listen, error.message)};
}

Result<Ref<GSocketAddress>> parse_listen(const RecorderSpec& spec, int port_before) {
  size_t colon = spec.listen.rfind(':');
  int port = -1;
  if (colon != std::string::npos)
    std::from_chars(spec.listen.data() + colon + 1, spec.listen.data() + spec.listen.size(), port);
  std::string host = spec.listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  GSocketAddress* address = port < 0 || port > 65535
                                ? nullptr
                                : g_inet_socket_address_new_from_string(
                                      host.c_str(), static_cast<guint>(port_before > 0 ? port_before : port));
  if (address == nullptr)
    return Error{Errc::invalid, "bad_address", fmt::format("{}: listen must look like 127.0.0.1:8554", spec.name)};
  return Ref<GSocketAddress>(address);
}

}  // namespace

Recorder::Recorder(RecorderSpec spec, MainLoop& loop, Dials& dials)
    : spec_(std::move(spec)), loop_(loop), dials_(dials), server_(gst_rtsp_server_new()) {
  // No threads of its own for clients: all run on the loop's.
  Ref<GstRTSPThreadPool> threads(gst_rtsp_server_get_thread_pool(server_.get()));
  gst_rtsp_thread_pool_set_max_threads(threads.get(), 0);
  g_signal_connect(server_.get(), "client-connected", G_CALLBACK(on_client), this);
  loop_.every(kSessionSweep, [server = server_.get(), alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return false;
    Ref<GstRTSPSessionPool> sessions(gst_rtsp_server_get_session_pool(server));
    gst_rtsp_session_pool_cleanup(sessions.get());
    return true;
  });
}

Recorder::~Recorder() {
  stop_listening();
  close_all();
  g_signal_handlers_disconnect_by_data(server_.get(), this);
  for (const auto& client : clients_) g_signal_handlers_disconnect_by_data(client->client, client.get());
}

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderSpec& spec, MainLoop& loop, Dials& dials) {
  std::unique_ptr<Recorder> recorder(new Recorder(spec, loop, dials));
  TRY(secured, recorder->configure_auth());
  TRY(bound, recorder->bind());
  TRY(listening, recorder->listen());
  return recorder;
}

Status Recorder::configure_auth() {
  if (!spec_.tls && spec_.user.empty()) return ok();
  Ref<GstRTSPAuth> auth(gst_rtsp_auth_new());
  GstRTSPToken* viewer = gst_rtsp_token_new(GST_RTSP_TOKEN_MEDIA_FACTORY_ROLE, G_TYPE_STRING, kViewer, nullptr);
  gst_rtsp_auth_set_supported_methods(auth.get(), GST_RTSP_AUTH_DIGEST);
  gst_rtsp_auth_set_realm(auth.get(), "camera");
  if (spec_.user.empty()) gst_rtsp_auth_set_default_token(auth.get(), viewer);
  else gst_rtsp_auth_add_digest(auth.get(), spec_.user.c_str(), spec_.password.reveal().c_str(), viewer);
  gst_rtsp_token_unref(viewer);
  if (spec_.tls) {
    TRY(pem, make_certificate(spec_.name));
    GError* failed = nullptr;
    Ref<GTlsCertificate> certificate(
        g_tls_certificate_new_from_pem(pem.data(), static_cast<gssize>(pem.size()), &failed));
    GErrorPtr error(failed);
    if (!certificate)
      return Error{Errc::unsupported, "no_tls", fmt::format("GLib has no TLS here: {}", error->message)};
    gst_rtsp_auth_set_tls_certificate(auth.get(), certificate.get());
  }
  gst_rtsp_server_set_auth(server_.get(), auth.get());
  return ok();
}

// ---- the listener ----

Status Recorder::bind() {
  TRY(address, parse_listen(spec_, port_));
  GError* failed = nullptr;
  socket_.reset(
      g_socket_new(g_socket_address_get_family(address.get()), G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &failed));
  if (socket_) g_socket_set_listen_backlog(socket_.get(), 1024);
  if (!socket_ || !g_socket_bind(socket_.get(), address.get(), TRUE, &failed))
    return socket_error(spec_, *GErrorPtr(failed));
  g_socket_set_blocking(socket_.get(), FALSE);
  Ref<GSocketAddress> bound(g_socket_get_local_address(socket_.get(), nullptr));
  port_ = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound.get()));
  return ok();
}

Status Recorder::listen() {
  GError* failed = nullptr;
  if (!g_socket_listen(socket_.get(), &failed)) return socket_error(spec_, *GErrorPtr(failed));
  listener_ = g_socket_create_source(socket_.get(), G_IO_IN, nullptr);
  g_source_set_callback(listener_, G_SOURCE_FUNC(on_connect), this, nullptr);
  g_source_attach(listener_, loop_.context());
  return ok();
}

void Recorder::stop_listening() {
  if (listener_ != nullptr) {
    g_source_destroy(listener_);
    g_source_unref(std::exchange(listener_, nullptr));
  }
  if (socket_) g_socket_close(socket_.get(), nullptr);
  socket_.reset();
}

gboolean Recorder::on_connect(GSocket* socket, GIOCondition condition, gpointer data) {
  auto* self = static_cast<Recorder*>(data);
  if (self->fault_.kind != RecorderFaultKind::black_hole) {
    gst_rtsp_server_io_func(socket, condition, self->server_.get());
    return G_SOURCE_CONTINUE;
  }
  if (GSocket* accepted = g_socket_accept(socket, nullptr, nullptr))
    self->hold(accepted, self->dials_.add(self->name(), peer_of(accepted)));
  return G_SOURCE_CONTINUE;
}

// ---- clients and their requests ----

void Recorder::on_client(GstRTSPServer*, GstRTSPClient* connected, gpointer data) {
  auto* self = static_cast<Recorder*>(data);
  self->clients_.push_back(
      std::make_unique<Client>(Client{self, connected, self->dials_.add(self->name(), peer_of(socket_of(connected)))}));
  Client* client = self->clients_.back().get();
  for (const char* request : {"options", "describe", "setup", "play"})
    g_signal_connect(connected, fmt::format("pre-{}-request", request).c_str(), G_CALLBACK(on_request), client);
  g_signal_connect(connected, "play-request", G_CALLBACK(on_play), client);
  g_signal_connect(connected, "send-message", G_CALLBACK(on_answer), client);
  g_signal_connect(connected, "closed", G_CALLBACK(on_closed), client);
}

void Recorder::note_camera(Client& client, const GstRTSPContext& context) {
  if (context.uri == nullptr || context.uri->abspath == nullptr) return;
  std::string_view path = context.uri->abspath;
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  client.camera = camera(path.substr(0, path.find('/')));
  if (client.camera != nullptr) dials_.name_camera(*client.dial, client.camera->name());
}

GstRTSPStatusCode Recorder::on_request(GstRTSPClient*, GstRTSPContext* context, gpointer data) {
  auto* client = static_cast<Client*>(data);
  client->recorder->note_camera(*client, *context);
  if (client->camera == nullptr) return GST_RTSP_STS_OK;  // the server itself answers 404
  return client->recorder->decide(*client, *client->camera, context->method);
}

GstRTSPStatusCode Recorder::decide(Client& client, SimCamera& camera, GstRTSPMethod method) {
  const CameraFault& fault = camera.fault();
  // The answer to a connection that is closed here is not sent any more.
  if (fault.kind == FaultKind::drop) close_client(client.client);
  if (fault.kind == FaultKind::black_hole) swallow(client);
  // OPTIONS is never refused: cameras do not, and gst-rtsp-server 1.22 crashes.
  if (method == GST_RTSP_OPTIONS) return GST_RTSP_STS_OK;
  switch (fault.kind) {
    case FaultKind::drop:
    case FaultKind::black_hole:
    case FaultKind::refuse: return GST_RTSP_STS_SERVICE_UNAVAILABLE;
    case FaultKind::unauthorized: return GST_RTSP_STS_UNAUTHORIZED;
    case FaultKind::not_found: return GST_RTSP_STS_NOT_FOUND;
    default: return method == GST_RTSP_SETUP && !client.has_session ? admit(client, fault) : GST_RTSP_STS_OK;
  }
}

GstRTSPStatusCode Recorder::admit(Client& client, const CameraFault& fault) {
  std::vector<Client*> others = sessions_of(*client.camera);
  if (fault.kind == FaultKind::max_sessions && static_cast<int>(others.size()) >= fault.sessions) {
    if (fault.policy == SessionPolicy::refuse_new || others.empty()) return GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH;
    close_client(others.front()->client);
  }
  client.has_session = true;
  // The last in the list is the newest session.
  auto at = std::find_if(clients_.begin(), clients_.end(), [&](const auto& each) { return each.get() == &client; });
  clients_.splice(clients_.end(), clients_, at);
  return GST_RTSP_STS_OK;
}

void Recorder::on_play(GstRTSPClient*, GstRTSPContext*, gpointer data) {
  auto* client = static_cast<Client*>(data);
  client->dial->outcome = "playing";
  if (!client->dial->until_play) client->dial->until_play = wall_now() - client->dial->at;
  client->recorder->dials_.end_connecting(*client->dial);
}

void Recorder::on_answer(GstRTSPClient*, GstRTSPContext* context, GstRTSPMessage* message, gpointer data) {
  auto* client = static_cast<Client*>(data);
  GstRTSPStatusCode code = GST_RTSP_STS_OK;
  if (gst_rtsp_message_get_type(message) != GST_RTSP_MESSAGE_RESPONSE ||
      gst_rtsp_message_parse_response(message, &code, nullptr, nullptr) != GST_RTSP_OK ||
      code < GST_RTSP_STS_BAD_REQUEST)
    return;
  // Requests that the server refused before it asked this recorder are seen here, too.
  client->recorder->note_camera(*client, *context);
  client->dial->outcome = std::to_string(code);
  if (code == GST_RTSP_STS_UNAUTHORIZED && client->camera != nullptr &&
      client->camera->fault().kind == FaultKind::unauthorized)
    gst_rtsp_message_add_header(message, GST_RTSP_HDR_WWW_AUTHENTICATE,
                                R"(Digest realm="camera", nonce="8a0e39b1c7d24f56")");
}

void Recorder::on_closed(GstRTSPClient* closed, gpointer data) {
  auto* client = static_cast<Client*>(data);
  Recorder& self = *client->recorder;
  g_signal_handlers_disconnect_by_data(closed, client);
  // gst-rtsp-server 1.22 may have an idle call waiting that closes this client, because a packet could not be sent, and
  // holds no reference for it.
  self.loop_.when_idle([kept = std::shared_ptr<void>(g_object_ref(closed), g_object_unref)] {});
  if (client->dial->outcome == "connecting" || client->dial->outcome == "playing") client->dial->outcome += ", closed";
  self.dials_.end_connecting(*client->dial);
  self.clients_.remove_if([&](const auto& each) { return each.get() == client; });
}

std::vector<Recorder::Client*> Recorder::sessions_of(const SimCamera& camera) const {
  return clients_where([&](const Client& client) { return client.camera == &camera && client.has_session; });
}

// ---- faults ----

void Recorder::hold(GSocket* socket, std::shared_ptr<Dial> dial) {
  GSource* source = g_socket_create_source(socket, G_IO_IN, nullptr);
  held_.push_back(std::unique_ptr<Held>(new Held{Ref<GSocket>(socket), source, std::move(dial), this}));
  held_.back()->dial->outcome = "black_hole";
  // Reads what comes and says nothing; until the peer has had enough.
  GSocketSourceFunc swallow_bytes = [](GSocket* from, GIOCondition, gpointer data) -> gboolean {
    char bytes[4096];
    if (g_socket_receive_with_blocking(from, bytes, sizeof bytes, FALSE, nullptr, nullptr) > 0)
      return G_SOURCE_CONTINUE;
    auto* held = static_cast<Held*>(data);
    held->recorder->held_.remove_if([&](const auto& each) { return each.get() == held; });
    return G_SOURCE_REMOVE;
  };
  g_source_set_callback(source, G_SOURCE_FUNC(swallow_bytes), held_.back().get(), nullptr);
  g_source_attach(source, loop_.context());
}

void Recorder::swallow(Client& client) {
  // A second descriptor keeps the connection open when the server closes its own.
  GSocket* kept = g_socket_new_from_fd(::dup(g_socket_get_fd(socket_of(client.client))), nullptr);
  if (kept != nullptr) hold(kept, std::exchange(client.dial, std::make_shared<Dial>(Dial{.connecting = false})));
  close_client(client.client);
}

// A copy of the list: closing a client changes `clients_`.
std::vector<Recorder::Client*> Recorder::clients_where(const std::function<bool(const Client&)>& which) const {
  std::vector<Client*> out;
  for (const auto& client : clients_)
    if (which(*client)) out.push_back(client.get());
  return out;
}

void Recorder::close_clients(const std::function<bool(const Client&)>& which) {
  for (Client* client : clients_where(which)) close_client(client->client);
}

void Recorder::close_all() {
  held_.clear();
  close_clients([](const Client&) { return true; });
}

void Recorder::set_camera_fault(SimCamera& camera, const CameraFault& fault, LoopPtr loop) {
  auto mine = [&](const Client& client) { return client.camera == &camera; };
  bool other_codec = camera.codec() != loop->profile().codec;  // no running session can follow
  camera.set_fault(fault, loop);
  if (fault.kind != FaultKind::black_hole)
    held_.remove_if([&](const auto& held) { return held->dial->camera == camera.name(); });
  if (other_codec) close_clients(mine);
  switch (fault.kind) {
    case FaultKind::drop:
      close_clients(mine);
      if (!fault.hold && !fault.for_s) camera.set_fault({}, loop);
      break;
    case FaultKind::refuse:
    case FaultKind::unauthorized:
    case FaultKind::not_found: close_clients(mine); break;
    case FaultKind::black_hole:
      for (Client* client : clients_where(mine)) swallow(*client);
      break;
    case FaultKind::max_sessions: {
      std::vector<Client*> over = sessions_of(camera);
      if (fault.policy == SessionPolicy::refuse_new) std::reverse(over.begin(), over.end());
      over.resize(static_cast<size_t>(std::max<std::int64_t>(0, std::ssize(over) - fault.sessions)));
      for (Client* client : over) close_client(client->client);
      break;
    }
    default: break;
  }
}

Status Recorder::set_fault(const RecorderFault& fault) {
  fault_ = fault;
  bool silent = fault.kind == RecorderFaultKind::refuse || fault.kind == RecorderFaultKind::reboot;
  if (fault.kind == RecorderFaultKind::black_hole) {
    for (Client* client : clients_where([](const Client&) { return true; })) swallow(*client);
  } else if (silent || !held_.empty()) {
    close_all();
  }
  if (silent != (listener_ == nullptr)) {
    stop_listening();
    TRY(bound, bind());
    if (!silent) {
      TRY(listening, listen());
    }
  }
  return ok();
}

// ---- cameras ----

void Recorder::add_camera(std::unique_ptr<SimCamera> camera) {
  Ref<GstRTSPMountPoints> mounts(gst_rtsp_server_get_mount_points(server_.get()));
  gst_rtsp_mount_points_add_factory(mounts.get(), ("/" + camera->name()).c_str(),
                                    GST_RTSP_MEDIA_FACTORY(g_object_ref(camera->factory())));
  std::string name = camera->name();
  cameras_[name] = std::move(camera);
}

SimCamera* Recorder::camera(std::string_view name) const {
  auto found = cameras_.find(name);
  return found == cameras_.end() ? nullptr : found->second.get();
}

json::array Recorder::describe_cameras() const {
  std::string host = spec_.listen.substr(0, spec_.listen.rfind(':'));
  json::array out;
  for (const auto& [name, camera] : cameras_) {
    json::object one = camera->describe();
    one["recorder"] = spec_.name;
    one["url"] = fmt::format("{}://{}:{}/{}", spec_.tls ? "rtsps" : "rtsp", host, port_, name);
    one["user"] = spec_.user;
    one["sessions"] = sessions_of(*camera).size();
    out.push_back(std::move(one));
  }
  return out;
}

json::object Recorder::describe() const {
  return {{"name", spec_.name},
          {"port", port_},
          {"tls", spec_.tls},
          {"cameras", cameras_.size()},
          {"connections", clients_.size()},
          {"fault", json::write_value(fault_)}};
}

}  // namespace weir::camsim
