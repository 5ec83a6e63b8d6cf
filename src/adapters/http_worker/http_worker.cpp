#include "weir/http_worker/http_worker.hpp"

#include "weir/net/client.hpp"

#include <csignal>

namespace weir::http_worker {

namespace asio = boost::asio;

namespace {

constexpr Duration kLookWithin = 1s;  // what a worker takes to say how it is
constexpr Duration kPageWithin = 3s;

class HttpWorker final : public WorkerLink {
 public:
  HttpWorker(asio::io_context& io, std::unique_ptr<Child> child, Secret token)
      : io_(io), child_(std::move(child)), token_(std::move(token)) {}

  int pid() const override { return child_->pid(); }
  Duration cpu_time() const override { return child_->cpu_time(); }
  void kill() override { child_->signal(SIGKILL); }
  asio::awaitable<int> wait() override { return child_->wait(); }
  Async<Nothing> ready() override;
  Async<link::Look> look() override;
  Async<std::vector<link::LastWord>> tell(link::Message message) override;
  Async<WorkerPage> page(std::string path) override;

 private:
  Async<net::ClientResponse> get(std::string path, Duration within);
  Async<net::ClientResponse> send(net::ClientRequest request);

  asio::io_context& io_;
  const std::unique_ptr<Child> child_;
  const Secret token_;
  std::optional<net::HttpClient> client_;
  std::string_view look_route_ = link::kLookRoute;
};

WorkerLink::Async<Nothing> HttpWorker::ready() {
  CO_TRY(line, co_await child_->read_line());
  auto said = json::read_text<link::Ready>(line);
  if (!said) co_return Error{Errc::unavailable, "worker", "the worker did not name its address"};
  CO_TRY(client, net::HttpClient::create(io_, said->control));
  client_.emplace(std::move(client));
  co_return ok();
}

WorkerLink::Async<net::ClientResponse> HttpWorker::send(net::ClientRequest request) {
  if (!client_) co_return Error{Errc::unavailable, "worker", "the worker does not answer yet"};
  request.bearer = token_;
  co_return co_await client_->send(std::move(request));
}

WorkerLink::Async<net::ClientResponse> HttpWorker::get(std::string path, Duration within) {
  net::ClientRequest request{.target = std::move(path), .timeout = within};
  co_return co_await send(std::move(request));
}

WorkerLink::Async<link::Look> HttpWorker::look() {
  CO_TRY(answer, co_await get(std::string(look_route_), kLookWithin));
  if (answer.status == 404 && look_route_ == link::kLookRoute) {
    look_route_ = link::kStateRoute;
    co_return co_await look();
  }
  if (answer.status != 200) co_return net::response_error(answer);
  CO_TRY(said, json::parse_text(answer.body));
  co_return link::read_look(said);
}

WorkerLink::Async<std::vector<link::LastWord>> HttpWorker::tell(link::Message message) {
  net::ClientRequest request{.method = net::Method::post,
                             .target = std::string(link::route_of(message)),
                             .body = json::to_text(link::write_message(message)),
                             .timeout = link::answer_within(message)};
  CO_TRY(answer, co_await send(std::move(request)));
  if (answer.status >= 300) co_return net::response_error(answer);
  co_return link::read_answer(message, answer.body);
}

WorkerLink::Async<WorkerPage> HttpWorker::page(std::string path) {
  CO_TRY(answer, co_await get(std::move(path), kPageWithin));
  co_return WorkerPage{answer.status, std::move(answer.body), answer.headers["x-captured-at"]};
}

}  // namespace

Result<std::unique_ptr<WorkerLink>> HttpWorkers::start(const link::ShardConfig& shard) {
  Program program{.path = config_.program,
                  .arguments = {"shard", "--config", "/dev/fd/3", "--lifeline-fd", "0"},
                  .document = Secret(json::to_text(link::write_shard_config(shard))),
                  .nice = 5,
                  // It reads what strangers send.
                  .unset = {"API_KEY", "DATABASE_URL", "PGPASSWORD", "WEIR_TOKEN", "EVENTS"}};
  program.arguments.insert(program.arguments.end(), config_.arguments.begin(), config_.arguments.end());
  TRY(child, host_.start(program));
  return std::unique_ptr<WorkerLink>(new HttpWorker(io_, std::move(child), shard.control_token));
}

}  // namespace weir::http_worker
