#include "weir/runner/budgets.hpp"

namespace weir::runner {

bool Budgets::may_dial(const SiteId& site, Turn& turn) {
  Budget& budget = sites_[site];
  if (budget.tokens >= 1) {
    budget.tokens -= 1;
    return true;
  }
  if (budget.empty_since && turn.now >= *budget.empty_since + turn.policy.pickup_limit) {
    budget.empty_since = turn.now;
    return true;
  }
  auto asked = std::ranges::count_if(sites_, [](const auto& each) { return each.second.asked; });
  if (!budget.asked && turn.now >= budget.ask_at && asked < turn.policy.drain_batch) {
    budget.asked = true;
    turn.act(AskBudget{site});
  }
  return false;
}

void Budgets::hear(const BudgetHeard& event, Turn& turn) {
  auto found = sites_.find(event.site);
  if (found == sites_.end()) return;
  Budget& budget = found->second;
  budget.asked = false;
  budget.ask_at = turn.now + 500ms;
  budget.tokens = event.tokens.value_or(turn.policy.drain_batch);
  if (budget.tokens >= 1) return budget.empty_since.reset();
  if (!budget.empty_since) budget.empty_since = turn.now;
  if (!std::exchange(budget.told, true))
    turn.note(
        "runner.drain_waits",
        fmt::format("the budget of site {} is used up: its cameras stay here until others may dial them", event.site));
}

void Budgets::batch_left(const Turn& turn) {
  for (auto& [site, budget] : sites_) {
    budget.tokens = 0;
    budget.ask_at = turn.now + turn.policy.drain_interval;
  }
}

}  // namespace weir::runner
