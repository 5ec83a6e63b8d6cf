// The real weir-hook, as MediaMTX starts it, against somebody who listens, refuses, or says nothing.
#include "hook_listener.hpp"
#include "program.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>

namespace weir::test {
namespace {

using Variables = std::vector<std::string>;

class Hook : public testing::Test {
 protected:
  std::unique_ptr<Program> start(const std::string& url, const Variables& more = {}, const std::string& what = "ready",
                                 const std::vector<std::string>& program = {WEIR_HOOK}) {
    std::vector<std::string> words{"env", "-i", "MTX_PATH=live/demo/in", "MTX_SOURCE_TYPE=rtspSession",
                                   "MTX_SOURCE_ID=s-1", "WEIR_ORCHESTRATOR_URL=" + url};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), program.begin(), program.end());
    if (!what.empty()) words.push_back(what);
    return std::make_unique<Program>(fmt::format("{}/{}.log", folder_.path(), ++started_), words);
  }
  struct Ended {
    int code;
    std::string said;
    double took_s;
  };
  Ended run(const std::string& url, const Variables& more = {}, const std::string& what = "ready") {
    Instant begun = boot_now();
    auto program = start(url, more, what);
    int code = program->wait(10s);
    return {code, program->log(), seconds(boot_now() - begun)};
  }
  // One sentence on one line.
  static bool is_line(const std::string& said) {
    return said.starts_with("weir-hook: ") && std::ranges::count(said, '\n') == 1 && said.ends_with('\n');
  }

  TempDir folder_;
  int started_ = 0;
};

TEST_F(Hook, AnEvent_ArrivesWithAllThatMediaMtxSaid) {
  HookListener orchestrator;
  auto ended = run(orchestrator.url(), {"MTX_QUERY=lang%3Des"});
  EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_TRUE(is_line(ended.said)) << ended.said;
  EXPECT_EQ(run(orchestrator.url(), {}, "not-ready").code, 0);
  auto posted = orchestrator.posted();
  ASSERT_EQ(posted.size(), 2u);
  EXPECT_TRUE(posted[0].head.starts_with("POST /v1/mediamtx/events/ready HTTP/1.1\r\n")) << posted[0].head;
  EXPECT_TRUE(posted[1].head.starts_with("POST /v1/mediamtx/events/not-ready HTTP/1.1\r\n")) << posted[1].head;
  EXPECT_NE(posted[0].head.find(fmt::format("\r\nHost: 127.0.0.1:{}\r\n", orchestrator.port())), std::string::npos);
  EXPECT_EQ(posted[0].head.find("Authorization"), std::string::npos);
  EXPECT_EQ(posted[0].body,
            R"({"path":"live/demo/in","query":"lang%3Des","sourceType":"rtspSession","sourceId":"s-1"})");
  EXPECT_EQ(posted[1].body, R"({"path":"live/demo/in","query":"","sourceType":"rtspSession","sourceId":"s-1"})");
}

TEST_F(Hook, AnyBytes_ArriveAsJson) {
  HookListener orchestrator;
  auto ended = run(orchestrator.url(), {"MTX_QUERY=a=\"\\\x01\n&b=\xC3\xA4\xFF\xED\xA0\x80'", "MTX_SOURCE_ID=\x80"});
  EXPECT_EQ(ended.code, 0) << ended.said;
  auto posted = orchestrator.posted();
  ASSERT_EQ(posted.size(), 1u);
  auto body = json::parse_text(posted[0].body);
  ASSERT_TRUE(body) << posted[0].body;
  std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(body->at("query").as_string(), "a=\"\\\x01\n&b=\xC3\xA4" + bad + bad + bad + bad + "'");
  EXPECT_EQ(body->at("sourceId").as_string(), bad);
}

TEST_F(Hook, AToken_IsReadFromItsFile_AndWhereItCannotBeRead_NothingIsSent) {
  HookListener orchestrator;
  std::string file = folder_.path() + "/token";
  write_text(file, "\n t0ken.abc \n");
  EXPECT_EQ(run(orchestrator.url(), {"WEIR_HOOK_TOKEN_FILE=" + file}).code, 0);
  ASSERT_EQ(orchestrator.posted().size(), 1u);
  std::string head = orchestrator.posted()[0].head;
  EXPECT_NE(head.find("\r\nAuthorization: Bearer t0ken.abc\r\n"), std::string::npos) << head;
  for (const char* bad : {"", "two words", "a\r\nX-Evil: 1"}) {
    write_text(file, bad);
    auto ended = run(orchestrator.url(), {"WEIR_HOOK_TOKEN_FILE=" + file});
    EXPECT_EQ(ended.code, 1);
    EXPECT_TRUE(is_line(ended.said)) << ended.said;
    EXPECT_NE(ended.said.find(file), std::string::npos) << ended.said;
  }
  EXPECT_EQ(run(orchestrator.url(), {"WEIR_HOOK_TOKEN_FILE=/nowhere/token"}).code, 1);
  EXPECT_EQ(orchestrator.posted().size(), 1u);
}

TEST_F(Hook, ARefusal_EndsWith1_AndSaysWhatToDo) {
  struct Row {
    const char *answer, *advice;
  };
  for (const Row& row :
       {Row{"HTTP/1.1 400 Bad Request\r\n\r\n", "its log names what is wrong with the event"},
        Row{"HTTP/1.1 401 Unauthorized\r\n\r\n", "WEIR_HOOK_TOKEN_FILE"},
        Row{"HTTP/1.1 404 Not Found\r\n\r\n", "WEIR_ORCHESTRATOR_URL"},
        Row{"HTTP/1.1 503 Service Unavailable\r\n\r\n", "its log says why"},
        Row{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "status 302"},
        Row{"RTSP/1.0 400 Bad Request\r\n\r\n", "gave no HTTP answer"}}) {
    HookListener orchestrator(row.answer);
    auto ended = run(orchestrator.url(), {"MTX_QUERY=key=s3cret"});
    EXPECT_EQ(ended.code, 1) << row.answer;
    EXPECT_TRUE(is_line(ended.said)) << ended.said;
    EXPECT_NE(ended.said.find(row.advice), std::string::npos) << ended.said;
    EXPECT_EQ(ended.said.find("s3cret"), std::string::npos) << ended.said;
  }
}

TEST_F(Hook, NobodyThere_EndsWith1_AtOnce) {
  std::string url;
  {
    HookListener gone;
    url = gone.url();
  }
  auto ended = run(url);
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(is_line(ended.said)) << ended.said;
  EXPECT_NE(ended.said.find("Connection refused"), std::string::npos) << ended.said;
}

TEST_F(Hook, WhereNobodyEverAnswers_ItEndsWithin2s) {
  HookListener silent("");
  Duration stalled = StallMonitor::get().total();
  auto ended = run(silent.url());
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(is_line(ended.said)) << ended.said;
  EXPECT_NE(ended.said.find("no answer in time"), std::string::npos) << ended.said;
  EXPECT_TRUE(within(ended.took_s, 2.5, stalled));
  EXPECT_EQ(silent.posted().size(), 1u);
}

// What has no limit of its own: here a token that never comes.
TEST_F(Hook, AStepThatHangs_IsEndedByTheAlarmWithin2s) {
  std::string pipe = folder_.path() + "/token";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  HookListener orchestrator;
  Duration stalled = StallMonitor::get().total();
  auto ended = run(orchestrator.url(), {"WEIR_HOOK_TOKEN_FILE=" + pipe});
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(is_line(ended.said)) << ended.said;
  EXPECT_TRUE(within(ended.took_s, 2.5, stalled));
}

TEST_F(Hook, AnInterruptWhileItPosts_LosesNoEvent) {
  HookListener orchestrator("");
  auto program = start(orchestrator.url());
  ASSERT_TRUE(eventually(5s, [&] { return orchestrator.posted().size() == 1; }));
  program->signal(SIGINT);
  orchestrator.release();
  EXPECT_EQ(program->wait(5s), 0) << program->log();
}

TEST_F(Hook, ItFindsTheOrchestratorByName_AndByIpv6) {
  HookListener orchestrator;
  auto named = run(fmt::format("http://localhost:{}/", orchestrator.port()));
  EXPECT_EQ(named.code, 0) << named.said;
  auto unknown = run("http://no-such-host.invalid:8086");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(is_line(unknown.said)) << unknown.said;
  HookListener six(HookListener::kAccepted, true);
  auto ended = run(six.url());
  EXPECT_EQ(ended.code, 0) << ended.said;
}

TEST_F(Hook, WrongUsage_EndsWith2_AndHelpWith0) {
  HookListener orchestrator;
  for (const char* what : {"", "maybe", "--ready"}) EXPECT_EQ(run(orchestrator.url(), {}, what).code, 2) << what;
  for (const char* url : {"https://127.0.0.1:1", "127.0.0.1:8086", "http://user:pw@127.0.0.1:1"}) {
    auto ended = run(url);
    EXPECT_EQ(ended.code, 2) << url;
    EXPECT_TRUE(is_line(ended.said)) << ended.said;
    EXPECT_EQ(ended.said.find("pw@"), std::string::npos);
  }
  EXPECT_EQ(run(orchestrator.url(), {"MTX_PATH="}).code, 2);
  auto help = run(orchestrator.url(), {}, "--help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"usage:", "runOnReady", "runOnAvailable", "WEIR_ORCHESTRATOR_URL", "WEIR_HOOK_TOKEN_FILE"})
    EXPECT_NE(help.said.find(word), std::string::npos) << word;
  EXPECT_TRUE(orchestrator.posted().empty());
}

TEST_F(Hook, WeirHook_FindsItBesideWeir) {
  HookListener orchestrator;
  auto program = start(orchestrator.url(), {}, "ready", {WEIR_BINARY, "hook"});
  EXPECT_EQ(program->wait(10s), 0) << program->log();
  EXPECT_EQ(orchestrator.posted().size(), 1u);
}

TEST_F(Hook, ItIsLinkedStatically) {
  std::string file = text_in_file(WEIR_HOOK);
  ASSERT_GT(file.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr head;
  std::memcpy(&head, file.data(), sizeof head);
  ASSERT_EQ(std::string_view(file).substr(0, SELFMAG), ELFMAG);
  ASSERT_GT(head.e_phnum, 0);
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, file.data() + head.e_phoff + static_cast<size_t>(i) * head.e_phentsize, sizeof part);
    EXPECT_NE(part.p_type, static_cast<Elf64_Word>(PT_INTERP)) << "it asks for a dynamic linker";
    EXPECT_NE(part.p_type, static_cast<Elf64_Word>(PT_DYNAMIC)) << "it asks for shared libraries";
  }
}

// As in MediaMTX's image. Only root may lock a program into a folder; for others the folder stays open.
TEST_F(Hook, WithoutAnyFileAroundIt_ItReachesANumericAddress) {
  std::string image = folder_.path() + "/image";
  std::filesystem::create_directory(image);
  std::filesystem::copy_file(WEIR_HOOK, image + "/weir-hook");
  HookListener orchestrator;
  std::vector<std::string> locked{"/usr/sbin/chroot", image, "/weir-hook"}, open{image + "/weir-hook"};
  auto program = start(orchestrator.url(), {}, "ready", ::geteuid() == 0 ? locked : open);
  EXPECT_EQ(program->wait(10s), 0) << program->log();
  EXPECT_EQ(orchestrator.posted().size(), 1u);
}

}  // namespace
}  // namespace weir::test
