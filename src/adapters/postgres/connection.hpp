// Connection: one session with PostgreSQL that never hangs. Private to this folder.
//
// Every statement has a deadline on this side too, because a frozen server answers nothing; past it the session is
// dropped. A failure is thrown as PgFailure inside the folder. One thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <libpq-fe.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::postgres {

struct PgFailure : std::runtime_error {
  PgFailure(std::string state, const std::string& what_) : std::runtime_error(what_), sqlstate(std::move(state)) {}
  std::string sqlstate;  // "" when the connection failed
};

// Parameters in text form, collected with <<.
class Params {
 public:
  Params& operator<<(std::string_view v) {
    texts_.emplace_back(v);
    return *this;
  }
  Params& operator<<(const char* v) { return *this << std::string_view(v); }
  Params& operator<<(const std::string& v) { return *this << std::string_view(v); }
  Params& operator<<(std::int64_t v) { return *this << std::string_view(std::to_string(v)); }
  Params& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
  Params& operator<<(bool v) { return *this << std::string_view(v ? "t" : "f"); }
  Params& operator<<(double v);
  Params& operator<<(Duration v) { return *this << static_cast<std::int64_t>(v.count()); }
  template <class Tag>
  Params& operator<<(const Id<Tag>& v) {
    return *this << std::string_view(v.str());
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

// An array literal: {"a","b"}.
class ArrayText {
 public:
  void add(std::string_view text);
  void add(std::int64_t number);
  void add(bool flag);
  std::string take() { return std::move(text_) + "}"; }

 private:
  std::string text_ = "{";
  void comma() {
    if (text_.size() > 1) text_ += ',';
  }
};

class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  int changed() const;
  std::string text(int row, int column) const;
  std::string_view view(int row, int column) const;
  std::int64_t integer(int row, int column) const;
  double number(int row, int column) const;
  bool flag(int row, int column) const { return view(row, column) == "t"; }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  template <class IdType>
  IdType id(int row, int column) const {
    return IdType::trusted(text(row, column));
  }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

class Connection {
 public:
  // Throws PgFailure. Statements of this session give up after `statement_timeout` on the server's side.
  Connection(const std::string& url, Duration connect_timeout, Duration statement_timeout);
  ~Connection();
  Connection(const Connection&) = delete;

  // `sql` must be a literal: its address names the prepared statement.
  Rows query(const char* sql, const Params& params = {});
  Rows script(const std::string& sql, Duration deadline);
  bool broken() const { return broken_; }

 private:
  Rows collect(Duration deadline);
  void wait_readable(Instant deadline);
  [[noreturn]] void fail(const PGresult* result);
  void flush(Instant deadline);

  PGconn* conn_ = nullptr;
  const Duration answer_timeout_;
  bool broken_ = false;
  std::set<const char*> prepared_;
};

// BEGIN … COMMIT; rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Connection& c) : c_(c) { c_.query("BEGIN"); }
  ~Transaction();
  void commit() {
    c_.query("COMMIT");
    done_ = true;
  }

 private:
  Connection& c_;
  bool done_ = false;
};

}  // namespace weir::postgres
