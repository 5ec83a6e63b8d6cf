#include "connection.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/result.hpp"

#include <fmt/format.h>

#include <poll.h>

#include <charconv>
#include <cstdlib>

namespace weir::postgres {

Params& Params::operator<<(double v) { return *this << std::string_view(fmt::format("{}", v)); }

void ArrayText::add(std::string_view text) {
  comma();
  text_ += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}
void ArrayText::add(std::int64_t number) {
  comma();
  text_ += fmt::format_int(number).str();
}
void ArrayText::add(bool flag) {
  comma();
  text_ += flag ? 't' : 'f';
}

int Rows::changed() const { return std::atoi(PQcmdTuples(result_.get())); }
std::string_view Rows::view(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column), static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}
std::string Rows::text(int row, int column) const { return std::string(view(row, column)); }
std::int64_t Rows::integer(int row, int column) const {
  std::int64_t number = 0;
  std::string_view v = view(row, column);
  std::from_chars(v.data(), v.data() + v.size(), number);
  return number;
}
double Rows::number(int row, int column) const { return std::strtod(text(row, column).c_str(), nullptr); }

namespace {

// The options that the URL gives to the server, or else the environment, as libpq would read them.
std::string given_options(const std::string& url) {
  const char* otherwise = std::getenv("PGOPTIONS");
  std::string given = otherwise != nullptr ? otherwise : "";
  PQconninfoOption* parsed = PQconninfoParse(url.c_str(), nullptr);
  for (PQconninfoOption* each = parsed; each != nullptr && each->keyword != nullptr; ++each)
    if (each->keyword == std::string_view("options") && each->val != nullptr) given = each->val;
  PQconninfoFree(parsed);
  return given;
}

}  // namespace

Connection::Connection(const std::string& url, Duration connect_timeout, Duration statement_timeout)
    : answer_timeout_(statement_timeout + 200ms) {
  auto whole_seconds = std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(connect_timeout).count());
  std::string timeout = std::to_string(whole_seconds);
  // Of two options with the same name the later one counts.
  std::string options = fmt::format(
      "{1} -c statement_timeout={0}ms -c lock_timeout={0}ms -c idle_in_transaction_session_timeout=2000ms "
      "-c synchronous_commit=on -c client_min_messages=warning -c plan_cache_mode=force_generic_plan "
      // Every statement finds its rows by key. Compiling such plans, or planning them for the empty tables of a new
      // installation, costs a thousand times what they do.
      "-c jit=off -c enable_seqscan=off",
      statement_timeout / 1ms, given_options(url));
  const char* keys[] = {"dbname", "connect_timeout", "options", "application_name", "keepalives_idle",
                        "client_encoding", nullptr};
  const char* values[] = {url.c_str(), timeout.c_str(), options.c_str(), "weir", "5", "UTF8", nullptr};
  conn_ = PQconnectdbParams(keys, values, 1);
  if (PQstatus(conn_) != CONNECTION_OK) {
    // libpq repeats host and port, never the password.
    std::string why = PQerrorMessage(conn_);
    PQfinish(conn_);
    throw PgFailure("", why.substr(0, why.find('\n')));
  }
  PQsetnonblocking(conn_, 1);
  // Without this libpq writes notices to stderr, between the lines of the log.
  PQsetNoticeProcessor(conn_, [](void*, const char* text) { log::debug("store.notice", text); }, nullptr);
}

Connection::~Connection() { PQfinish(conn_); }

void Connection::fail(const PGresult* result) {
  const char* state = result != nullptr ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const char* message = result != nullptr ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
  if (PQstatus(conn_) != CONNECTION_OK || state == nullptr) broken_ = true;
  std::string why = message != nullptr ? message : PQerrorMessage(conn_);
  throw PgFailure(state != nullptr ? state : "", why.substr(0, why.find('\n')));
}

void Connection::wait_readable(Instant deadline) {
  pollfd fd{PQsocket(conn_), POLLIN, 0};
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_now()).count();
  int ready = left > 0 ? ::poll(&fd, 1, static_cast<int>(left)) : 0;
  if (ready > 0 || (ready < 0 && errno == EINTR)) return;
  broken_ = true;
  throw PgFailure("", "PostgreSQL did not answer in time");
}

void Connection::flush(Instant deadline) {
  for (int left = PQflush(conn_); left != 0; left = PQflush(conn_)) {
    if (left < 0) fail(nullptr);
    pollfd fd{PQsocket(conn_), POLLIN | POLLOUT, 0};
    if (boot_now() >= deadline || ::poll(&fd, 1, 100) < 0) {
      broken_ = true;
      throw PgFailure("", "PostgreSQL did not take the statement in time");
    }
    if ((fd.revents & POLLIN) != 0 && PQconsumeInput(conn_) == 0) fail(nullptr);
  }
}

Rows Connection::collect(Duration limit) {
  Instant deadline = boot_now() + limit;
  flush(deadline);
  Rows last(nullptr);
  for (;;) {
    while (PQisBusy(conn_) != 0) {
      wait_readable(deadline);
      if (PQconsumeInput(conn_) == 0) fail(nullptr);
    }
    PGresult* result = PQgetResult(conn_);
    if (result == nullptr) return last;
    ExecStatusType status = PQresultStatus(result);
    Rows rows(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      // The session can be used again once the rest of the answer was read.
      while (PQstatus(conn_) == CONNECTION_OK) {
        while (PQisBusy(conn_) != 0) {
          wait_readable(deadline);
          if (PQconsumeInput(conn_) == 0) fail(nullptr);
        }
        PGresult* more = PQgetResult(conn_);
        if (more == nullptr) break;
        PQclear(more);
      }
      fail(result);
    }
    last = std::move(rows);
  }
}

Rows Connection::query(const char* sql, const Params& params) {
  std::string name = fmt::format("s{:x}", reinterpret_cast<std::uintptr_t>(sql));
  if (!prepared_.contains(sql)) {
    if (PQsendPrepare(conn_, name.c_str(), sql, 0, nullptr) == 0) fail(nullptr);
    collect(answer_timeout_);
    prepared_.insert(sql);
  }
  std::vector<const char*> values;
  for (const std::string& text : params.texts()) values.push_back(text.c_str());
  if (PQsendQueryPrepared(conn_, name.c_str(), static_cast<int>(values.size()), values.data(), nullptr, nullptr, 0) == 0)
    fail(nullptr);
  return collect(answer_timeout_);
}

Rows Connection::script(const std::string& sql, Duration deadline) {
  if (PQsendQuery(conn_, sql.c_str()) == 0) fail(nullptr);
  return collect(deadline);
}

Transaction::~Transaction() {
  if (done_ || c_.broken()) return;
  try {
    c_.query("ROLLBACK");
  } catch (const PgFailure&) {
    // The session is broken now and will be replaced; the server rolls back by itself.
  }
}

}  // namespace weir::postgres
