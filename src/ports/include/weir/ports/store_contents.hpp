// StoreContents: all that a store holds, apart from any technology: what a backup keeps and a move carries over.
//
// Rows are texts under the names of their columns, which are the same in every store: numbers in decimal, flags 1 and
// 0, nothing as "". Events are left out: they are the bus's memory of the last hour, and their sequences mean nothing in
// another epoch. Secrets are among the texts (camera credentials, hashes of keys). Plain values; not shared between
// threads.
#pragma once

#include "weir/lease/lease_time.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// What is kept, in an order in which it can be written: no row before one that it refers to.
inline constexpr std::array<std::string_view, 14> kStoreTables = {
    "tenants", "sites", "cameras", "leases", "streams", "runners", "boots", "avoids", "budget_uses", "api_keys",
    "models", "playlists", "displays", "subscriptions"};

struct StoreTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  friend bool operator==(const StoreTable&, const StoreTable&) = default;
};

struct StoreContents {
  lease::StoreState state;
  std::vector<StoreTable> tables;

  size_t count(std::string_view table) const {
    auto found = std::ranges::find(tables, table, &StoreTable::name);
    return found == tables.end() ? 0 : found->rows.size();
  }
  bool empty() const {
    return std::ranges::all_of(tables, [](const StoreTable& table) { return table.rows.empty(); });
  }
};

}  // namespace weir
