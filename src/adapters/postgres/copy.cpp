#include "weir/postgres/copy.hpp"

#include "connection.hpp"
#include "schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

namespace weir::postgres {

namespace {

constexpr Duration kConnectTimeout = 5s;
constexpr Duration kPatience = 10min;  // for one statement over a whole table
constexpr int kRowsAtOnce = 500;
// A control plane moves the mark on four times a second.
constexpr const char* kLook = "SELECT pg_sleep(1.5)";

Error failed(const PgFailure& failure) {
  return {Errc::unavailable, "store_unavailable", fmt::format("PostgreSQL: {}", failure.what())};
}

struct Column {
  std::string name, type;
  bool nullable;
};

std::vector<Column> columns_of(Connection& c, std::string_view table) {
  Rows rows = c.query(
      "SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull FROM pg_attribute"
      " WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
      Params() << table);
  std::vector<Column> columns;
  for (int i = 0; i < rows.size(); ++i) columns.push_back({rows.text(i, 0), rows.text(i, 1), rows.flag(i, 2)});
  return columns;
}

StoreTable read_table(Connection& c, std::string_view name) {
  StoreTable table{std::string(name), {}, {}};
  std::vector<std::string> expressions;
  for (const Column& column : columns_of(c, name)) {
    table.columns.push_back(column.name);
    expressions.push_back(column.type == "boolean" ? column.name + "::int" : column.name);
  }
  Rows rows = c.script(fmt::format("SELECT {} FROM {}", fmt::join(expressions, ", "), name), kPatience);
  for (int i = 0; i < rows.size(); ++i) {
    auto& row = table.rows.emplace_back();
    for (int column = 0; column < static_cast<int>(table.columns.size()); ++column) row.push_back(rows.text(i, column));
  }
  return table;
}

lease::StoreState read_state(Connection& c) {
  // The counter stands outside of transactions: what it shows is of this moment, and so at least what the rows show.
  Rows s = c.query(
      "SELECT s.epoch, CASE WHEN n.is_called THEN n.last_value ELSE 0 END, s.lease_now, s.mark, s.hold_until,"
      " s.hold_opened, s.closed_until FROM store_state s, lease_counter n");
  auto time = [&](int column) { return LeaseTime(Duration(s.integer(0, column))); };
  return {s.integer(0, 0), s.integer(0, 1), time(2), WallTime(Duration(s.integer(0, 3))), time(4), time(5), time(6)};
}

StoreContents read_contents(Connection& c) {
  StoreContents contents;
  for (std::string_view name : kStoreTables) contents.tables.push_back(read_table(c, name));
  contents.state = read_state(c);
  return contents;
}

void write_state(Connection& c, const lease::StoreState& s) {
  c.query(
      "UPDATE store_state SET epoch = $1::bigint, lease_now = $2::bigint, mark = $3::bigint, hold_until = $4::bigint,"
      " hold_opened = $5::bigint, closed_until = $6::bigint, timeline = weir_timeline()",
      Params() << s.epoch << s.lease_now.time_since_epoch() << s.mark.time_since_epoch()
               << s.hold_until.time_since_epoch() << s.hold_opened.time_since_epoch()
               << s.closed_until.time_since_epoch());
  // Not undone by a rollback, which does no harm: it only ever rises.
  c.query("SELECT setval('lease_counter', $1::bigint) FROM lease_counter"
          " WHERE last_value < $1::bigint OR (last_value = $1::bigint AND NOT is_called)",
          Params() << s.counter);
  c.query("UPDATE expiry_state SET looked_at = -60000000");
}

void quieten(Connection& c) {
  c.script("SET idle_in_transaction_session_timeout = 0; SET enable_seqscan = on", kConnectTimeout);
}

void check_schema(Connection& c) {
  Rows there = c.query("SELECT to_regclass('weir_schema') IS NOT NULL");
  if (!there.flag(0, 0)) throw PgFailure("", "the database holds no store of Weir's");
  std::int64_t step = c.script("SELECT coalesce(max(step), 0) FROM weir_schema", kConnectTimeout).integer(0, 0);
  if (step == newest_step()) return;
  throw PgFailure("", fmt::format("the database is of {} Weir (schema {}, this one knows {}): use the `weir` of its "
                                  "control planes",
                                  step < newest_step() ? "an older" : "a newer", step, newest_step()));
}

bool in_use(Connection& c) {
  auto mark = [&] { return c.query("SELECT mark FROM store_state").integer(0, 0); };
  std::int64_t before = mark();
  if (c.query("SELECT weir_clock() - mark > 10000000 FROM store_state").flag(0, 0)) return false;
  c.query(kLook);
  return mark() != before;
}

}  // namespace

Result<StoreContents> read_store(const Secret& url) {
  try {
    Connection c(url.reveal(), kConnectTimeout, kPatience);
    quieten(c);
    check_schema(c);
    c.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", kConnectTimeout);
    StoreContents contents = read_contents(c);
    c.script("COMMIT", kConnectTimeout);
    return contents;
  } catch (const PgFailure& failure) {
    return failed(failure);
  }
}

struct ClaimedDatabase::State {
  Connection c;
  std::deque<std::string> texts = {};  // a session knows a statement by the address of its text

  void insert(const StoreTable& table);
};

// Text becomes what the column is; a column that may be empty holds nothing where the text is "".
void ClaimedDatabase::State::insert(const StoreTable& table) {
  std::vector<std::string> arrays, values;
  std::vector<Column> known = columns_of(c, table.name);
  for (const std::string& name : table.columns) {
    auto column = std::ranges::find(known, name, &Column::name);
    if (column == known.end()) throw PgFailure("", fmt::format("{} has no column {}", table.name, name));
    std::string given = column->nullable ? fmt::format("nullif({}, '')", name) : name;
    values.push_back(fmt::format("{}::{}", given, column->type));
    arrays.push_back(fmt::format("${}::text[]", arrays.size() + 1));
  }
  const std::string& sql = texts.emplace_back(
      fmt::format("INSERT INTO {0} ({1}) SELECT {2} FROM unnest({3}) AS w({1})", table.name,
                  fmt::join(table.columns, ", "), fmt::join(values, ", "), fmt::join(arrays, ", ")));
  for (size_t from = 0; from < table.rows.size(); from += kRowsAtOnce) {
    std::vector<ArrayText> cells(table.columns.size());
    for (size_t i = from; i < std::min(from + kRowsAtOnce, table.rows.size()); ++i)
      for (size_t column = 0; column < cells.size(); ++column)
        cells[column].add(std::string_view(table.rows[i][column]));
    Params params;
    for (ArrayText& each : cells) params << each.take();
    c.query(sql.c_str(), params);
  }
}

ClaimedDatabase::ClaimedDatabase(std::unique_ptr<State> state) : state_(std::move(state)) {}
Result<SchemaSteps> bring_up_to_date(const Secret& url) {
  try {
    Connection c(url.reveal(), kConnectTimeout, kPatience);
    std::int64_t before = migrate(c);
    return SchemaSteps{before, newest_step()};
  } catch (const PgFailure& failure) {
    return failed(failure);
  }
}

ClaimedDatabase::ClaimedDatabase(ClaimedDatabase&&) noexcept = default;
ClaimedDatabase::~ClaimedDatabase() = default;

Result<ClaimedDatabase> ClaimedDatabase::claim(const Secret& url) {
  try {
    std::unique_ptr<State> state(new State{Connection(url.reveal(), kConnectTimeout, kPatience)});
    Connection& c = state->c;
    migrate(c);
    quieten(c);
    if (in_use(c))
      return Error{Errc::conflict, "store_in_use",
                   "a control plane runs on the database: stop every control plane before its store is replaced"};
    c.script(fmt::format("BEGIN; LOCK TABLE store_state, events, event_state, expiry_state, {}",
                         fmt::join(kStoreTables, ", ")), kPatience);
    return ClaimedDatabase(std::move(state));
  } catch (const PgFailure& failure) {
    return failed(failure);
  }
}

Result<StoreContents> ClaimedDatabase::contents() {
  try {
    return read_contents(state_->c);
  } catch (const PgFailure& failure) {
    return failed(failure);
  }
}

Status ClaimedDatabase::replace(const StoreContents& contents) {
  try {
    state_->c.script(fmt::format("TRUNCATE events, {}", fmt::join(kStoreTables, ", ")), kPatience);
    for (const StoreTable& table : contents.tables) state_->insert(table);
    write_state(state_->c, contents.state);
    return ok();
  } catch (const PgFailure& failure) {
    return failed(failure);
  }
}

Status ClaimedDatabase::commit() {
  try {
    state_->c.script("COMMIT", kPatience);
    return ok();
  } catch (const PgFailure& failure) {
    Error error = failed(failure);
    if (failure.sqlstate.empty() || failure.sqlstate.starts_with("57P") || state_->c.broken())
      error.reason = "commit_unknown";
    return error;
  }
}

}  // namespace weir::postgres
