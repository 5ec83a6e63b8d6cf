#include "weir/cluster/routing.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::cluster {

Routes route(const std::set<std::string>& workers, const std::set<std::string>& slaves, const Routes& present) {
  Routes out;
  if (slaves.empty()) return out;
  std::map<std::string, std::vector<std::string>> has;
  std::vector<std::string> loose;
  for (const std::string& slave : slaves) has[slave];
  for (const std::string& worker : workers) {
    auto at = present.find(worker);
    if (at != present.end() && slaves.contains(at->second)) has[at->second].push_back(worker);
    else loose.push_back(worker);
  }
  // Those that have the most keep one more than the others, so that the fewest workers move.
  std::vector<std::pair<std::string, std::vector<std::string>>> order(has.begin(), has.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& each) { return each.second.size(); });
  size_t each_gets = workers.size() / slaves.size(), one_more = workers.size() % slaves.size();
  auto quota = [&](size_t place) { return each_gets + (place < one_more ? 1 : 0); };
  for (size_t place = 0; place < order.size(); ++place)
    for (auto& mine = order[place].second; mine.size() > quota(place); mine.pop_back()) loose.push_back(mine.back());
  std::ranges::sort(loose);
  size_t next = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    auto& [slave, mine] = order[place];
    while (mine.size() < quota(place)) mine.push_back(loose[next++]);
    for (const std::string& worker : mine) out[worker] = slave;
  }
  return out;
}

}  // namespace weir::cluster
