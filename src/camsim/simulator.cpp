#include "weir/camsim/simulator.hpp"

#include "recorder.hpp"

namespace weir::camsim {

namespace {

constexpr double kRebootSeconds = 5;

Error unknown(std::string_view what, const std::string& name) {
  return Error{Errc::not_found, "not_found", fmt::format("there is no {} \"{}\"", what, name)};
}
Error taken(std::string_view what, const std::string& name) {
  return Error{Errc::conflict, "name_taken", fmt::format("there already is a {} \"{}\"", what, name)};
}

}  // namespace

struct Simulator::State {
  State(std::string footage_file, std::string cache_dir) : loops(std::move(footage_file), std::move(cache_dir)) {
    init_gst();
  }

  ~State() { feeder->stop(); }

  LoopLibrary loops;
  const std::shared_ptr<Feeder> feeder = std::make_shared<Feeder>();
  MainLoop main;
  // GLib thread only.
  Dials dials;
  std::map<std::string, std::unique_ptr<Recorder>> recorders;
  std::int64_t commands = 0;                       // numbers the faults, so that a timer ends only its own
  std::map<std::string, std::int64_t> last_fault;  // by "camera NAME" or "recorder NAME"

  Recorder* home_of(const std::string& camera) const {
    for (const auto& [name, recorder] : recorders)
      if (recorder->camera(camera) != nullptr) return recorder.get();
    return nullptr;
  }
  void set_camera_fault(const std::string& camera, const CameraFault& fault, LoopPtr loop) {
    Recorder* home = home_of(camera);
    home->set_camera_fault(*home->camera(camera), fault, std::move(loop));
  }
  Result<std::unique_ptr<SimCamera>> make_camera(const CameraSpec& spec) {
    TRY(profile, parse_profile(spec.profile));
    TRY(loop, loops.get(profile));
    return std::make_unique<SimCamera>(spec, profile, std::move(loop), feeder);
  }
  // Runs `end` when the time is over, unless another fault came for the same thing.
  void end_later(const std::string& key, std::optional<double> for_s, std::function<void()> end) {
    std::int64_t mine = last_fault[key] = ++commands;
    if (!for_s) return;
    main.after(from_seconds(*for_s), [this, key, mine, end = std::move(end)] {
      if (last_fault[key] == mine) end();
    });
  }
};

Simulator::Simulator(std::string footage_file, std::string cache_dir)
    : state_(std::make_unique<State>(std::move(footage_file), std::move(cache_dir))) {}

Simulator::~Simulator() {
  state_->main.call([this] { state_->recorders.clear(); });
}

Status Simulator::add_recorder(const RecorderSpec& spec) {
  std::vector<std::unique_ptr<SimCamera>> cameras;
  for (const CameraSpec& each : spec.cameras) {
    TRY(camera, state_->make_camera(each));
    cameras.push_back(std::move(camera));
  }
  Status done = ok();
  state_->main.call([&] {
    done = [&]() -> Status {
      if (state_->recorders.contains(spec.name)) return taken("recorder", spec.name);
      std::set<std::string> names;
      for (const auto& camera : cameras)
        if (!names.insert(camera->name()).second || state_->home_of(camera->name()))
          return taken("camera", camera->name());
      TRY(recorder, Recorder::create(spec, state_->main, state_->dials));
      for (auto& camera : cameras) recorder->add_camera(std::move(camera));
      state_->recorders[spec.name] = std::move(recorder);
      return ok();
    }();
  });
  return done;
}

Status Simulator::add_camera(const std::string& recorder, const CameraSpec& spec) {
  TRY(camera, state_->make_camera(spec));
  Status done = ok();
  state_->main.call([&] {
    auto home = state_->recorders.find(recorder);
    if (home == state_->recorders.end()) {
      done = unknown("recorder", recorder);
    } else if (state_->home_of(spec.name) != nullptr) {
      done = taken("camera", spec.name);
    } else {
      home->second->add_camera(std::move(camera));
    }
  });
  return done;
}

Status Simulator::set_camera_fault(const std::string& name, const CameraFault& fault) {
  std::optional<Profile> profile;
  state_->main.call([&] {
    if (Recorder* home = state_->home_of(name)) profile = home->camera(name)->profile();
  });
  if (!profile) return unknown("camera", name);
  // The loop may have to be encoded now, so this does not run on GLib's thread: the other cameras go on.
  TRY(shown, profile_under(fault, *profile));
  TRY(loop, state_->loops.get(shown));
  state_->main.call([&] {
    state_->set_camera_fault(name, fault, loop);
    state_->end_later("camera " + name, fault.for_s, [state = state_.get(), name, profile] {
      auto original = state->loops.get(*profile);  // was there before: not encoded here
      state->set_camera_fault(name, {}, *original);
    });
  });
  return ok();
}

Status Simulator::set_recorder_fault(const std::string& name, const RecorderFault& fault) {
  Status done = unknown("recorder", name);
  state_->main.call([&] {
    auto found = state_->recorders.find(name);
    if (found == state_->recorders.end()) return;
    done = found->second->set_fault(fault);
    bool ends = fault.for_s || fault.kind == RecorderFaultKind::reboot;
    state_->end_later("recorder " + name, ends ? std::optional(fault.for_s.value_or(kRebootSeconds)) : std::nullopt,
                      [recorder = found->second.get()] { (void)recorder->set_fault({}); });
  });
  return done;
}

json::array Simulator::cameras() const {
  json::array out;
  state_->main.call([&] {
    for (const auto& [name, recorder] : state_->recorders)
      for (json::value& camera : recorder->describe_cameras()) out.push_back(std::move(camera));
  });
  return out;
}

json::array Simulator::recorders() const {
  json::array out;
  state_->main.call([&] {
    for (const auto& [name, recorder] : state_->recorders) out.push_back(recorder->describe());
  });
  return out;
}

json::object Simulator::dials() const {
  json::object out;
  state_->main.call([&] { out = state_->dials.to_json(); });
  return out;
}

void Simulator::reset_dials() {
  state_->main.call([&] { state_->dials.reset(); });
}

}  // namespace weir::camsim
