// Roster: the subscriptions that a detection worker was given, and what became of each.
//
// A subscription's model is fetched first; with it the camera begins. Being given the same again changes nothing, but
// asks for the model anew: its address may lead to another file by now, which is then put in place without a new
// connection to the camera. Anything else that differs begins the subscription anew. Where a model cannot be had or
// used, the subscription stays on the roster, offline, and the log says why. Nothing here depends on a master being
// connected. Loop thread only.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/base/clock.hpp"
#include "weir/detector/cameras.hpp"
#include "weir/detector/host_list.hpp"
#include "weir/detector/models.hpp"
#include "weir/detector/sightings.hpp"
#include "weir/net/metrics.hpp"

#include <functional>
#include <map>
#include <set>

namespace weir::detector {

struct RosterSettings {
  double max_fps = 5;
  double min_score = 0.4;
  bool motion_gate = true;
  HostList snapshot_hosts = {};  // none: all
  size_t subscriptions_max = 1000;
  Backoff fetch_again = {.first = 1s, .cap = 60s};
};

class Roster {
 public:
  Roster(boost::asio::io_context& io, Clock& clock, Cameras& cameras, Models& models, Sightings& sightings,
         net::Metrics& metrics, RosterSettings settings, std::function<double()> draw);

  void obey(const cluster::Command& command);
  std::vector<cluster::CameraConnection> connections() const;
  // What the master is told of a sighting; nothing where the camera is no longer on the roster.
  std::optional<cluster::ImageDetection> result_of(Sighting sighting) const;
  // The newest picture of a camera, whichever display it is for; null where there is none.
  PicturePtr latest(const std::string& camera) const;
  bool knows(const std::string& camera) const;
  std::set<std::string> models() const;

 private:
  struct Given {
    cluster::Subscribe wanted;
    std::uint64_t asked = 0;  // numbers the questions for its model: only the last one's answer counts
    std::optional<StoredModel> model = {};
  };
  void take_on(const cluster::Subscribe& wanted);
  void let_go(const std::string& subscription);
  void ask_for_model(const std::string& subscription);
  boost::asio::awaitable<void> fetch_model(std::string subscription, std::uint64_t asked);
  bool still_asks(const std::string& subscription, std::uint64_t asked) const;
  void begin(Given& given, StoredModel model);
  void complain(const std::string& subscription, std::string_view event, const Error& why);
  void show_size();
  std::string address_problem(const cluster::Subscribe& wanted) const;
  link::Source source_of(const Given& given) const;

  boost::asio::io_context& io_;
  Clock& clock_;
  Cameras& cameras_;
  Models& models_;
  Sightings& sightings_;
  net::Metrics& metrics_;
  const RosterSettings settings_;
  const std::function<double()> draw_;
  std::map<std::string, Given> given_;  // by the identifier's text
  std::uint64_t asked_ = 0;
};

}  // namespace weir::detector
