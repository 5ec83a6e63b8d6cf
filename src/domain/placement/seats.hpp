// Seats: the online workers while a plan is made, each with the load that the plan has given it so far.
//
// A heap finds the worker with the lowest score; an entry whose worker has changed since is passed over. Private to
// this folder. One thread; the world must outlive it.
#pragma once

#include "weir/placement/plan.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace weir::placement {

struct Seat {
  const std::string* url = nullptr;
  const Worker* worker = nullptr;
  Admits admits = Admits::everything;
  int load = 0;
  int unproven = 0;                               // of the load: not reported yet
  int changes = 0;                                // how often the load changed since the heap was made
  std::vector<const std::string*> movable = {};   // its subscriptions that may be moved

  bool full() const { return load >= worker->capacity; }
  bool room() const {
    return !full() && (admits == Admits::everything || (admits == Admits::one && unproven == 0));
  }
  double score_with(int more) const {
    double percent = worker->capacity > 0 ? 100.0 * (load + more) / worker->capacity : 100.0;
    return placement::score(percent, worker->cpu_percent, worker->memory_percent);
  }
  double score() const { return score_with(0); }
  void keep(bool is_unproven) {
    ++load;
    unproven += is_unproven ? 1 : 0;
  }
};

class Seats {
 public:
  Seats(const World& world, Instant now) {
    for (const auto& [url, worker] : world.workers)
      if (worker.online) seats_.push_back({&url, &worker, worker.circuit.admits(now)});
    for (Seat& seat : seats_) by_url_.emplace(*seat.url, &seat);
  }

  auto begin() { return seats_.begin(); }
  auto end() { return seats_.end(); }
  bool empty() const { return seats_.empty(); }
  Seat* of(const std::string& url) {
    auto found = by_url_.find(url);
    return found == by_url_.end() ? nullptr : found->second;
  }

  // The worker with the lowest score that has room; `last` only where there is no other. Null: there is none.
  Seat* best(const Seat* last) {
    if (!made_) make_heap();
    std::optional<Entry> set_aside;
    while (!heap_.empty()) {
      Entry top = heap_.front();
      Seat& seat = seats_[top.seat];
      bool stale = top.changes != seat.changes || !seat.room();
      if (!stale && &seat != last) break;
      if (!stale) set_aside = top;
      std::ranges::pop_heap(heap_, std::greater{});
      heap_.pop_back();
    }
    Seat* found = !heap_.empty() ? &seats_[heap_.front().seat] : set_aside ? &seats_[set_aside->seat] : nullptr;
    if (set_aside) push(*set_aside);
    return found;
  }
  Seat* worst_movable() {
    Seat* worst = nullptr;
    for (Seat& seat : seats_)
      if (!seat.movable.empty() && (worst == nullptr || seat.score() > worst->score())) worst = &seat;
    return worst;
  }

  void take(Seat& seat) {
    ++seat.unproven;
    change(seat, 1);
  }
  void give(Seat& seat) { change(seat, -1); }

  std::string_view why_none() const {
    if (seats_.empty()) return "no worker is online";
    if (std::ranges::all_of(seats_, &Seat::full)) return "every online worker is full";
    return "the online workers that have room failed repeatedly and are left alone for a while";
  }

 private:
  struct Entry {
    double score;
    size_t seat;
    int changes;
    bool operator>(const Entry& other) const {
      return score > other.score || (score == other.score && seat > other.seat);
    }
  };

  void make_heap() {
    made_ = true;
    for (size_t i = 0; i < seats_.size(); ++i) heap_.push_back({seats_[i].score(), i, seats_[i].changes});
    std::ranges::make_heap(heap_, std::greater{});
  }
  void push(Entry entry) {
    heap_.push_back(entry);
    std::ranges::push_heap(heap_, std::greater{});
  }
  void change(Seat& seat, int by) {
    seat.load += by;
    ++seat.changes;
    if (made_) push({seat.score(), static_cast<size_t>(&seat - seats_.data()), seat.changes});
  }

  std::vector<Seat> seats_;  // in the order of their URLs
  std::unordered_map<std::string_view, Seat*> by_url_;
  bool made_ = false;
  std::vector<Entry> heap_;
};

}  // namespace weir::placement
