#include "outbox.hpp"

#include <algorithm>
#include <set>

namespace weir::rabbitmq {

void Outbox::add(PublicationPtr publication) {
  publication->left = publication->events.size();
  for (size_t n = 0; n < publication->events.size(); ++n) waiting_.push_back({publication, n});
}

const Outbox::Item* Outbox::next() {
  while (!waiting_.empty() && waiting_.front().publication->over) waiting_.pop_front();
  return waiting_.empty() ? nullptr : &waiting_.front();
}

void Outbox::written() {
  unconfirmed_.emplace(++numbers_, std::move(waiting_.front()));
  waiting_.pop_front();
}

void Outbox::confirm(const Item& item) {
  Publication& publication = *item.publication;
  if (publication.over || --publication.left > 0) return;
  publication.over = true;
  publication.answer(std::vector<Confirmation>(publication.events.size(), Confirmation::accepted));
}

void Outbox::confirmed(std::uint64_t number, bool all_up_to) {
  auto end = unconfirmed_.upper_bound(number);
  auto begin = all_up_to ? unconfirmed_.begin() : unconfirmed_.lower_bound(number);
  for (auto each = begin; each != end; each = unconfirmed_.erase(each)) confirm(each->second);
}

int Outbox::refused(std::uint64_t number, bool all_up_to) {
  auto end = unconfirmed_.upper_bound(number);
  auto begin = all_up_to ? unconfirmed_.begin() : unconfirmed_.lower_bound(number);
  std::set<Publication*> met;
  for (auto each = begin; each != end; ++each) met.insert(each->second.publication.get());
  if (met.empty()) return 0;
  int most = 0;
  for (Publication* each : met) most = std::max(most, ++each->refusals);
  for (auto each = unconfirmed_.rbegin(); each != unconfirmed_.rend(); ++each)
    waiting_.push_front(std::move(each->second));
  unconfirmed_.clear();
  return most;
}

void Outbox::fail(Publication& publication, const Error& why) {
  if (std::exchange(publication.over, true)) return;
  publication.answer(why);
}

void Outbox::fail_all(const Error& why) {
  for (const auto& [number, item] : unconfirmed_) fail(*item.publication, why);
  for (const Item& item : waiting_) fail(*item.publication, why);
  waiting_.clear();
}

void Outbox::begin_again() {
  waiting_.clear();
  unconfirmed_.clear();
  numbers_ = 0;
}

}  // namespace weir::rabbitmq
