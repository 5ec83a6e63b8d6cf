// The files of detector clusters' models, through a real control plane and its disk.
#include "api_socket.hpp"
#include "api_store.hpp"
#include "api_talk.hpp"
#include "cli_shell.hpp"

#include "weir/net/sha256.hpp"

#include <sys/stat.h>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLarge = 50'000'000;

// Bytes of which no two parts are alike, so that parts that change places are noticed.
std::string noise(size_t bytes) {
  std::string out(bytes, '\0');
  std::uint64_t state = 88172645463325252ULL;
  for (char& c : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return out;
}

std::string sha256_of(std::string_view bytes) {
  net::Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

net::BodySource pieces_of(const std::string& bytes) {
  auto at = std::make_shared<size_t>(0);
  net::BodySource source;
  source.bytes = bytes.size();
  source.next = [at, &bytes]() -> boost::asio::awaitable<Result<std::string>> {
    std::string piece = bytes.substr(*at, 100'000);
    *at += piece.size();
    co_return piece;
  };
  return source;
}

class ModelFiles : public OverBothStores {
 protected:
  void furnished() {
    process().furnish(0);
    ASSERT_EQ(process().post("/v1/tenants", {{"tenant_id", "t2"}}).status, 201);
    for (int id : {7, 8}) {
      Reply added = process().post("/v1/models", {{"model_id", id}, {"tenant_id", "t1"}, {"name", "yolo"}});
      ASSERT_EQ(added.status, 201) << added.text;
    }
  }
  Reply upload(int model, const std::string& bytes, const Secret& token, const std::string& expected = "") {
    net::ClientRequest request{.method = net::Method::put};
    request.target = fmt::format("/v1/models/{}/file?name=a%20b.onnx", model);
    request.bearer = token;
    request.content_type = "application/octet-stream";
    request.upload = pieces_of(bytes);
    if (!expected.empty()) request.headers = {{"X-Content-SHA256", expected}};
    return process().raw(std::move(request));
  }
  struct Loaded {
    Reply reply;
    std::string bytes;
  };
  Loaded load(const std::string& target, const Secret& token = {}) {
    Loaded out;
    net::ClientRequest request{.target = target, .bearer = token};
    request.sink = [&](std::string piece) -> boost::asio::awaitable<Status> {
      out.bytes += piece;
      co_return ok();
    };
    out.reply = process().raw(std::move(request));
    return out;
  }
  Reply link(int model, const Secret& token) {
    return process().call(net::Method::post, fmt::format("/v1/models/{}/file-url", model), nullptr, token);
  }
  std::set<std::string> entries() {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(files_, none)) names.insert(entry.path().filename());
    return names;
  }
  double resident_megabytes() {
    std::istringstream words(text_in_file(fmt::format("/proc/{}/statm", process().pid())));
    long pages = 0, resident = 0;
    words >> pages >> resident;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
  }
  // The highest since it was begun, which the kernel remembers.
  double peak_megabytes() {
    std::string status = text_in_file(fmt::format("/proc/{}/status", process().pid()));
    return std::stod(status.substr(status.find("VmHWM:") + 6)) / 1000;
  }

  const std::string files_ = folder().path() + "/files";
  std::vector<std::string> flags() const { return {"--model-files-dir", files_}; }
};

TEST_P(ModelFiles, FiftyMegabytes_GoUpAndDown_ByteForByte_InLittleMemory) {
  START_OR_SKIP(flags());
  furnished();
  const std::string bytes = noise(kLarge), sum = sha256_of(bytes);
  double before = resident_megabytes();
  Reply stored = upload(7, bytes, process().token("admin"), sum);
  ASSERT_EQ(stored.status, 200) << stored.text;
  EXPECT_EQ(stored.body.at("file").at("sha256").as_string(), sum);
  EXPECT_EQ(stored.body.at("file").at("bytes"), kLarge);
  EXPECT_EQ(stored.body.at("file").at("name").as_string(), "a b.onnx");
  EXPECT_EQ(text_in_file(files_ + "/" + sum), bytes);

  Reply made = link(7, process().token("runner", "backend-1"));
  ASSERT_EQ(made.status, 200) << made.text;
  EXPECT_EQ(made.field("url"), process().url() + made.field("path"));
  Loaded loaded = load(made.field("path"));
  EXPECT_EQ(loaded.reply.status, 200);
  EXPECT_EQ(loaded.reply.headers["etag"], "\"" + sum + "\"");
  EXPECT_EQ(loaded.reply.headers["content-length"], std::to_string(kLarge));
  EXPECT_TRUE(loaded.bytes == bytes);
  EXPECT_TRUE(load("/v1/models/7/file", process().token("admin")).bytes == bytes);
  double grown = peak_megabytes() - before;
  EXPECT_LT(grown, 16) << "the control plane held a large part of the file";
  std::printf("the control plane grew by at most %.1f MB\n", grown);
}

TEST_P(ModelFiles, AnUploadThatIsBrokenOff_LeavesNothing_AndTheModelAsItWas) {
  START_OR_SKIP(flags());
  furnished();
  Secret admin = process().token("admin");
  ASSERT_EQ(upload(7, "good", admin).status, 200);
  std::string kept = sha256_of("good");
  {
    RawSocket socket(process());
    ASSERT_TRUE(socket.send(fmt::format("PUT /v1/models/7/file HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n"
                                        "Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n{}",
                                        admin.reveal(), std::string(300'000, 'x'))));
    EXPECT_TRUE(eventually(10s, [&] { return entries().size() == 3; })) << "it has begun to come";
  }
  EXPECT_TRUE(eventually(10s, [&] { return entries() == std::set<std::string>{kept, "lock"}; }));
  EXPECT_EQ(process().get("/v1/models/7").body.at("file").at("sha256").as_string(), kept);

  Reply wrong = upload(7, "other bytes", admin, kept);
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(wrong.code(), "wrong_checksum");
  EXPECT_TRUE(eventually(10s, [&] { return entries() == std::set<std::string>{kept, "lock"}; }));
  EXPECT_EQ(process().get("/v1/models/7").body.at("file").at("sha256").as_string(), kept);
  EXPECT_EQ(load("/v1/models/7/file", admin).bytes, "good");
}

TEST_P(ModelFiles, WhoMayNot_StoresAndReadsNothing) {
  std::vector<std::string> limited = flags();
  limited.insert(limited.end(), {"--model-file-bytes-max", "1024"});
  START_OR_SKIP(limited);
  furnished();
  Secret admin = process().token("admin"), viewer = process().token("viewer"),
         foreign = process().token("admin", "a", "t2");
  EXPECT_EQ(link(7, admin).code(), "no_file");
  EXPECT_EQ(upload(7, "x", viewer).status, 403);
  EXPECT_EQ(upload(7, "x", process().token("runner", "r")).status, 403);
  EXPECT_EQ(upload(7, "x", foreign).status, 404);
  EXPECT_EQ(upload(7, std::string(1025, 'x'), admin).status, 413);
  EXPECT_TRUE(eventually(10s, [&] { return entries().size() == 0; }));
  ASSERT_EQ(upload(7, std::string(1024, 'x'), admin).status, 200);
  ASSERT_EQ(upload(8, "y", admin).status, 200);

  EXPECT_EQ(load("/v1/models/7/file").reply.status, 401);
  EXPECT_EQ(load("/v1/models/7/file", viewer).reply.status, 403);
  EXPECT_EQ(load("/v1/models/7/file", foreign).reply.status, 404);
  EXPECT_EQ(link(7, viewer).status, 403);
  EXPECT_EQ(link(7, foreign).status, 404);
  std::string path = link(7, admin).field("path"), query = path.substr(path.find('?'));
  EXPECT_EQ(load(path).bytes, std::string(1024, 'x'));
  Loaded other = load("/v1/models/8/file" + query);
  EXPECT_EQ(other.reply.status, 403);
  EXPECT_EQ(other.reply.code(), "signature_invalid");
  EXPECT_EQ(load("/v1/models/7/file?expires=1&signature=x").reply.code(), "signature_invalid");
  EXPECT_FALSE(has(process().log(), query.substr(query.rfind('=') + 1))) << "a link stands in no log line";
}

TEST_P(ModelFiles, ByCommand_AFileGoesUpAndComesBack) {
  START_OR_SKIP(flags());
  furnished();
  Secret token = process().token("admin");
  std::string environment = fmt::format("WEIR_URL={} WEIR_TOKEN={}", process().url(), token.reveal());
  auto run = [&](const std::string& command) { return weir(folder(), words_of(command), environment); };
  const std::string bytes = noise(1'000'001), here = folder().path(), from = here + "/yolo.onnx",
                    to = here + "/copy.onnx";
  std::ofstream(from, std::ios::binary) << bytes;
  Ran up = run("model upload 7 " + from);
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_TRUE(has(up.out, sha256_of(bytes)) && has(up.out, "1000001")) << up.out;
  EXPECT_EQ(run("model upload 8 yolo.onnx --name second.onnx --json").parsed().at("file").at("name").as_string(),
            "second.onnx");
  EXPECT_EQ(process().get("/v1/models/7").body.at("file").at("name").as_string(), "yolo.onnx");
  Ran down = run("model download 7 " + to);
  EXPECT_EQ(down.code, 0) << down.err;
  EXPECT_TRUE(text_in_file(to) == bytes);
  EXPECT_FALSE(fs::exists(to + ".part"));

  expect_complaint(run("model upload 7 /nowhere/x"), 1, "cannot open /nowhere/x");
  expect_complaint(run("model upload 9 " + from), 1, "there is no such model");
  EXPECT_EQ(process().post("/v1/models", {{"model_id", 9}, {"tenant_id", "t1"}, {"name", "empty"}}).status, 201);
  expect_complaint(run("model download 9 " + to), 1, "no file yet");
  fs::remove(files_ + "/" + sha256_of(bytes));
  expect_complaint(run("model download 7 " + to), 1, "share that folder");
  EXPECT_FALSE(fs::exists(to + ".part"));
}

INSTANTIATE_OVER_BOTH_STORES(ModelFiles);

}  // namespace
}  // namespace weir::test
