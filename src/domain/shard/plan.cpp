#include "weir/shard/plan.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace weir::shard {

namespace {

struct Load {
  int cameras = 0;
  bool alone = false;  // belongs to one camera, or several cameras of which one must be alone were found here
  std::map<SiteId, int> sites = {};
  int of(const SiteId& site) const {
    auto found = sites.find(site);
    return found == sites.end() ? 0 : found->second;
  }
};

class Planner {
 public:
  Planner(std::span<const Member> members, int size) : size_(std::max(1, size)) {
    for (const Member& member : members) members_.emplace(member.camera, &member);
  }

  // Keeps the cameras that may stay, in the order of their names: of a shard that is too full the last ones go.
  void keep(const Assignment& present) {
    for (const auto& [camera, number] : present) {
      auto found = members_.find(camera);
      if (found == members_.end()) continue;
      const Member& member = *found->second;
      auto load = loads_.find(number);
      bool room = load == loads_.end() || (!member.alone && !load->second.alone && load->second.cameras < size_);
      if (room) put(member, number);
    }
  }

  void place_the_rest() {
    std::vector<const Member*> rest;
    std::map<SiteId, int> waiting;
    for (const auto& [camera, member] : members_)
      if (!out_.contains(camera)) {
        rest.push_back(member);
        if (!member->alone) ++waiting[member->site];
      }
    std::ranges::stable_sort(rest, {}, [](const Member* m) { return m->site; });
    for (const Member* member : rest) {
      put(*member, member->alone ? lowest_free() : best_for(member->site, waiting[member->site]));
      if (!member->alone) --waiting[member->site];
    }
  }

  Assignment take() { return std::move(out_); }

 private:
  void put(const Member& member, ShardNumber number) {
    Load& load = loads_[number];
    ++load.cameras;
    ++load.sites[member.site];
    load.alone |= member.alone;
    out_[member.camera] = number;
  }

  ShardNumber lowest_free() const {
    ShardNumber number = 0;
    while (loads_.contains(number)) ++number;
    return number;
  }

  ShardNumber best_for(const SiteId& site, int group) const {
    ShardNumber best = -1;
    std::tuple<int, bool, int> best_score;
    for (const auto& [number, load] : loads_) {
      if (load.alone || load.cameras >= size_) continue;
      std::tuple score(load.of(site), load.cameras + group <= size_, load.cameras);
      if (best < 0 || score > best_score) {
        best = number;
        best_score = score;
      }
    }
    return best < 0 ? lowest_free() : best;
  }

  const int size_;
  std::map<CameraId, const Member*> members_;
  std::map<ShardNumber, Load> loads_;
  Assignment out_;
};

}  // namespace

Assignment plan(std::span<const Member> members, const Assignment& present, int size) {
  Planner planner(members, size);
  planner.keep(present);
  planner.place_the_rest();
  return planner.take();
}

}  // namespace weir::shard
