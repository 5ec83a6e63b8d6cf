// Recorder: one RTSP listener with cameras under the paths /NAME, and the faults that concern connections.
//
// It owns the listening socket itself and hands each connection to gst-rtsp-server, or keeps it in a black hole. A port
// that is refused stays bound, so that no other process takes it meanwhile. GLib thread only.
#pragma once

#include "dials.hpp"
#include "main_loop.hpp"
#include "sim_camera.hpp"

#include <list>

namespace weir::camsim {

class Recorder {
 public:
  static Result<std::unique_ptr<Recorder>> create(const RecorderSpec& spec, MainLoop& loop, Dials& dials);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  const std::string& name() const { return spec_.name; }
  void add_camera(std::unique_ptr<SimCamera> camera);
  SimCamera* camera(std::string_view name) const;
  // `loop` is what the camera shows under this fault.
  void set_camera_fault(SimCamera& camera, const CameraFault& fault, LoopPtr loop);
  Status set_fault(const RecorderFault& fault);

  json::array describe_cameras() const;
  json::object describe() const;

 private:
  struct Client;  // one connection to the RTSP server
  struct Held;    // one connection in the black hole

  Recorder(RecorderSpec spec, MainLoop& loop, Dials& dials);
  Status configure_auth();
  Status bind();
  Status listen();
  void stop_listening();

  static gboolean on_connect(GSocket* socket, GIOCondition condition, gpointer self);
  static void on_client(GstRTSPServer*, GstRTSPClient* client, gpointer self);
  static GstRTSPStatusCode on_request(GstRTSPClient*, GstRTSPContext* context, gpointer client);
  static void on_play(GstRTSPClient*, GstRTSPContext* context, gpointer client);
  static void on_answer(GstRTSPClient*, GstRTSPContext* context, GstRTSPMessage* message, gpointer client);
  static void on_closed(GstRTSPClient*, gpointer client);

  GstRTSPStatusCode decide(Client& client, SimCamera& camera, GstRTSPMethod method);
  GstRTSPStatusCode admit(Client& client, const CameraFault& fault);
  std::vector<Client*> sessions_of(const SimCamera& camera) const;  // oldest first
  void note_camera(Client& client, const GstRTSPContext& context);
  void swallow(Client& client);  // into the black hole
  void hold(GSocket* socket, std::shared_ptr<Dial> dial);
  std::vector<Client*> clients_where(const std::function<bool(const Client&)>& which) const;
  void close_clients(const std::function<bool(const Client&)>& which);
  void close_all();

  // Constant after construction.
  const RecorderSpec spec_;
  MainLoop& loop_;
  Dials& dials_;
  const Ref<GstRTSPServer> server_;
  // GLib thread only.
  int port_ = 0;
  Ref<GSocket> socket_;
  GSource* listener_ = nullptr;
  std::map<std::string, std::unique_ptr<SimCamera>, std::less<>> cameras_;
  std::list<std::unique_ptr<Client>> clients_;
  std::list<std::unique_ptr<Held>> held_;
  RecorderFault fault_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // timers look whether the recorder still is
};

}  // namespace weir::camsim
