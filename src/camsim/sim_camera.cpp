#include "sim_camera.hpp"

#include "weir/base/clock.hpp"

#include <random>

namespace weir::camsim {

namespace {

// A session may begin with pictures taken before it: they need a running time that is not negative.
constexpr Duration kBefore = 5min;

// ---- what happens to RTP on its way out ----

struct Outlet {
  std::shared_ptr<CameraLive> camera;
  bool pictures;
};

std::uint32_t random_word() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return static_cast<std::uint32_t>(random());
}

// The header stays, so that it is still this session's packet. Returns whether it ended a frame.
bool spoil(GstBuffer* packet) {
  constexpr size_t kHeader = 12;
  GstMapInfo map;
  if (!gst_buffer_map(packet, &map, GST_MAP_READWRITE)) return false;
  bool last = map.size > 1 && (map.data[1] & 0x80) != 0;
  for (size_t i = kHeader; i < map.size; ++i) map.data[i] = static_cast<guint8>(random_word() >> 11);
  gst_buffer_unmap(packet, &map);
  return last;
}

GstBuffer* spoiled(GstBuffer* packet, std::atomic<std::int64_t>& frames) {
  GstBuffer* copy = gst_buffer_copy_deep(packet);
  gst_buffer_unref(packet);
  if (spoil(copy) && frames > 0) --frames;
  return copy;
}

GstPadProbeReturn on_rtp(GstPad*, GstPadProbeInfo* info, gpointer data) {
  const Outlet& outlet = *static_cast<Outlet*>(data);
  if (outlet.camera->stalled) return GST_PAD_PROBE_DROP;
  auto& frames = outlet.camera->garbage_frames;
  if (!outlet.pictures || frames == 0) return GST_PAD_PROBE_OK;
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    info->data = spoiled(GST_PAD_PROBE_INFO_BUFFER(info), frames);
    return GST_PAD_PROBE_OK;
  }
  GstBufferList* list = GST_PAD_PROBE_INFO_BUFFER_LIST(info);
  GstBufferList* out = gst_buffer_list_new();
  for (guint i = 0; i < gst_buffer_list_length(list); ++i)
    gst_buffer_list_add(out, spoiled(gst_buffer_ref(gst_buffer_list_get(list, i)), frames));
  gst_buffer_list_unref(list);
  info->data = out;
  return GST_PAD_PROBE_OK;
}

// ---- a session's pipeline ----

struct Attached {
  std::shared_ptr<CameraLive> camera;
  std::shared_ptr<Feed> feed;
  std::shared_ptr<Feeder> feeder;  // GStreamer takes a pipeline down in a thread of its own, when it likes
};

void on_pad(GstElement*, GstPad* pad, gpointer data) {
  std::string_view name = GST_PAD_NAME(pad);
  if (!name.starts_with("send_rtp_src_")) return;
  auto* outlet = new Outlet{static_cast<Attached*>(data)->camera, name == "send_rtp_src_0"};
  gst_pad_add_probe(pad, static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST),
                    on_rtp, outlet, [](gpointer old) { delete static_cast<Outlet*>(old); });
}

void on_element(GstBin*, GstElement* element, gpointer data) {
  GstElementFactory* made_by = gst_element_get_factory(element);
  if (made_by == nullptr || std::string_view(GST_OBJECT_NAME(made_by)) != "rtpbin") return;
  // Sender reports then give the time at which a picture was taken, not sent.
  g_object_set(element, "rtcp-sync-send-time", FALSE, nullptr);
  g_signal_connect(element, "pad-added", G_CALLBACK(on_pad), data);
}

void on_need_data(GstAppSrc*, guint, gpointer data) {
  auto* attached = static_cast<Attached*>(data);
  attached->feed->set_wanted();
  attached->feeder->wake();
}

void on_state(GstRTSPMedia*, gint state, gpointer data) {
  auto* attached = static_cast<Attached*>(data);
  attached->feed->set_playing(state == GST_STATE_PLAYING);
  attached->feeder->wake();
}

void on_unprepared(GstRTSPMedia*, gpointer data) {
  auto* attached = static_cast<Attached*>(data);
  attached->feeder->remove(attached->feed);
}

// The pipeline's running time becomes wall time less the returned zero.
WallTime tie_to_wall_clock(GstElement* pipeline) {
  Ref<GstClock> clock(gst_system_clock_obtain());
  gst_pipeline_use_clock(GST_PIPELINE(pipeline), clock.get());
  gst_element_set_start_time(pipeline, GST_CLOCK_TIME_NONE);
  GstClockTime before = gst_clock_get_time(clock.get());
  WallTime now = wall_now();
  // A machine that has just booted is younger than kBefore.
  auto back = std::min<GstClockTime>(before, static_cast<GstClockTime>(kBefore.count()) * 1000);
  gst_element_set_base_time(pipeline, before - back);
  return now - Duration(static_cast<std::int64_t>(back / 1000));
}

}  // namespace

SimCamera::SimCamera(CameraSpec spec, const Profile& profile, LoopPtr loop, std::shared_ptr<Feeder> feeder)
    : spec_(std::move(spec)),
      profile_(profile),
      live_(std::make_shared<CameraLive>(spec_.phase_ms ? Duration(*spec_.phase_ms * 1ms) : phase_of(spec_.name),
                                         spec_.start, std::move(loop))),
      factory_(gst_rtsp_media_factory_new()),
      feeder_(std::move(feeder)) {
  gst_rtsp_media_factory_set_launch(factory(), pipeline_text().c_str());
  gst_rtsp_media_factory_add_role(factory(), kViewer, GST_RTSP_PERM_MEDIA_FACTORY_ACCESS, G_TYPE_BOOLEAN, TRUE,
                                  GST_RTSP_PERM_MEDIA_FACTORY_CONSTRUCT, G_TYPE_BOOLEAN, TRUE, nullptr);
  g_signal_connect(factory(), "media-configure", G_CALLBACK(on_media), this);
}

std::string SimCamera::pipeline_text() const {
  constexpr std::string_view kSource = "is-live=true format=time max-bytes=0 max-buffers=1000 leaky-type=downstream";
  std::string_view payloader;
  switch (live_->loop.load()->profile().codec) {
    case Codec::h264: payloader = "rtph264pay pt=96"; break;
    case Codec::h265: payloader = "rtph265pay pt=96"; break;
    case Codec::mjpeg: payloader = "rtpjpegpay pt=26"; break;
  }
  std::string sound =
      fmt::format("appsrc name=audio {} caps=audio/x-alaw,rate=8000,channels=1 ! rtppcmapay name=pay1 pt=8", kSource);
  return fmt::format("( appsrc name=video {} ! {} name=pay0 {} )", kSource, payloader, profile_.audio ? sound : "");
}

void SimCamera::on_media(GstRTSPMediaFactory*, GstRTSPMedia* media, gpointer data) {
  auto* self = static_cast<SimCamera*>(data);
  Ref<GstElement> element(gst_rtsp_media_get_element(media));
  Ref<GstElement> pipeline(GST_ELEMENT(gst_object_get_parent(GST_OBJECT(element.get()))));
  auto source = [&](const char* name) {
    return Ref<GstAppSrc>(reinterpret_cast<GstAppSrc*>(gst_bin_get_by_name(GST_BIN(element.get()), name)));
  };
  auto video = source("video");
  GstAppSrc* first = video.get();
  auto feed = std::make_shared<Feed>(self->live_, std::move(video), source("audio"), tie_to_wall_clock(pipeline.get()));
  auto* attached = new Attached{self->live_, feed, self->feeder_};
  g_object_set_data_full(G_OBJECT(media), "weir", attached, [](gpointer old) {
    auto* gone = static_cast<Attached*>(old);
    gone->feeder->remove(gone->feed);
    delete gone;
  });
  g_signal_connect(pipeline.get(), "element-added", G_CALLBACK(on_element), attached);
  g_signal_connect(first, "need-data", G_CALLBACK(on_need_data), attached);
  g_signal_connect(media, "new-state", G_CALLBACK(on_state), attached);
  g_signal_connect(media, "unprepared", G_CALLBACK(on_unprepared), attached);
  self->feeder_->add(std::move(feed));
}

void SimCamera::set_fault(const CameraFault& fault, LoopPtr loop) {
  fault_ = fault;
  live_->loop = std::move(loop);
  live_->stalled = fault.kind == FaultKind::stall;
  live_->rate = fault.kind == FaultKind::slow ? fault.rate : 1;
  live_->garbage_frames = fault.kind == FaultKind::garbage ? (fault.frames == 0 ? -1 : fault.frames) : 0;
  gst_rtsp_media_factory_set_launch(factory(), pipeline_text().c_str());
  feeder_->wake();
}

bool SimCamera::garbage_is_over() const { return fault_.kind == FaultKind::garbage && live_->garbage_frames == 0; }

json::object SimCamera::describe() const {
  LoopPtr loop = live_->loop.load();
  Timeline time = loop->timeline(live_->phase);
  const Profile& shown = loop->profile();
  return {{"name", spec_.name},
          {"codec", json::write_value(shown.codec)},
          {"width", shown.width},
          {"height", shown.height},
          {"fps", shown.fps},
          {"phase_ms", live_->phase.count() / 1000},
          {"loop_ms", time.length().count() / 1000},
          {"loop_frames", time.frames},
          {"profile", to_text(profile_)},
          {"fault", garbage_is_over() ? json::write_value(CameraFault{}) : json::write_value(fault_)},
          {"frames_sent", live_->frames_sent.load()}};
}

}  // namespace weir::camsim
