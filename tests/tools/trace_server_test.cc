#include "trace_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "view.h"

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kHostileName = "a b#100%?&x=1+2;$(id)'\"\\\xC3\xA9%41.pftrace";

// Beginning as a trace does.
std::string every_byte() {
  std::string bytes = "\n";
  for (int i = 1; i < 1000; ++i) bytes += static_cast<char>(i % 256);
  return bytes;
}

// A folder with a trace, a UI of a few files, and something beside the UI that must not be served.
class TraceServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "trace_server_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write(trace(), every_byte());
    write(folder_ / "secret", "secret");
    write(ui() / "index.html", "<html>");
    write(ui() / "v1" / "engine.wasm", std::string("\0asm", 4));
    write(ui() / "v1" / "bundle.js", "'use strict';");
    write(ui() / "v1" / "style.css", "body {}");
    write(ui() / "v1" / "docs.json", "{}");
    write(ui() / "v1" / "font.woff2", "wOF2");
    write(ui() / "v1" / "LICENSE", "text");
    write(ui() / "v1" / "empty.js", "");
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void write(const fs::path& file, const std::string& bytes) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }

  fs::path trace() const { return folder_ / "run.pftrace"; }
  fs::path ui() const { return folder_ / "ui"; }

  std::unique_ptr<TraceServer> serve(TraceServerOptions options) {
    options.port = 0;
    auto server = TraceServer::start(std::move(options));
    if (!server) ADD_FAILURE() << server.error().message();
    return server ? *std::move(server) : nullptr;
  }
  std::unique_ptr<TraceServer> serve_trace() {
    return serve({.trace = trace(), .ui = {}, .port = 0, .allow_origin = std::string(kPerfettoUi)});
  }
  std::unique_ptr<TraceServer> serve_ui() {
    return serve({.trace = trace(), .ui = ui(), .port = 0, .allow_origin = {}});
  }

  static httplib::Client client(const TraceServer& server) {
    httplib::Client client("127.0.0.1", server.port());
    client.set_url_encode(false);  // paths go out as the tests write them
    return client;
  }

  // The server hears that the last byte left just after the client has it.
  static bool becomes_sent(const TraceServer& server) {
    for (int i = 0; i < 500 && !server.trace_was_sent(); ++i) std::this_thread::sleep_for(2ms);
    return server.trace_was_sent();
  }

  fs::path folder_;
};

TEST(PercentEncode, LeavesOnlyWhatEveryUrlMayHold) {
  EXPECT_EQ(percent_encode("run-1_2.~pftrace"), "run-1_2.~pftrace");
  EXPECT_EQ(percent_encode("a b/c?d#e%f&g+h"), "a%20b%2Fc%3Fd%23e%25f%26g%2Bh");
  EXPECT_EQ(percent_encode("\xC3\xA9\xFF\n\""), "%C3%A9%FF%0A%22");
  EXPECT_EQ(percent_encode("http://x/%41", ":/"), "http://x/%2541");
}

TEST(PerfettoUrl, IsPlainForAPlainName) {
  EXPECT_EQ(perfetto_url(kPerfettoUi, "http://127.0.0.1:9001/run.pftrace"),
            "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/run.pftrace");
}

TEST(PerfettoUrl, SurvivesTheDecodingOfTheUi) {
  EXPECT_EQ(perfetto_url("http://127.0.0.1:80", "http://127.0.0.1:80/a%20b%23.pftrace"),
            "http://127.0.0.1:80/#!/?url=http://127.0.0.1:80/a%2520b%2523.pftrace");
}

TEST_F(TraceServerTest, SendsTheTraceToTheByteAndToOneOrigin) {
  const auto server = serve_trace();
  const auto response = client(*server).Get("/run.pftrace");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, every_byte());
  EXPECT_EQ(response->get_header_value("Content-Type"), "application/octet-stream");
  EXPECT_EQ(response->get_header_value_count("Access-Control-Allow-Origin"), 1U);
  EXPECT_EQ(response->get_header_value("Access-Control-Allow-Origin"), "https://ui.perfetto.dev");
  EXPECT_TRUE(becomes_sent(*server));
}

TEST_F(TraceServerTest, OfflineLetsNoOtherOriginRead) {
  const auto response = client(*serve_ui()).Get("/run.pftrace");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, every_byte());
  EXPECT_FALSE(response->has_header("Access-Control-Allow-Origin"));
}

TEST_F(TraceServerTest, SendsWhatIsInTheFileNow) {
  const auto server = serve_trace();
  write(trace(), "new");
  EXPECT_EQ(client(*server).Get("/run.pftrace")->body, "new");
  write(trace(), "");
  EXPECT_EQ(client(*server).Get("/run.pftrace")->body, "");
  fs::remove(trace());
  EXPECT_EQ(client(*server).Get("/run.pftrace")->status, 404);
}

TEST_F(TraceServerTest, FindsAHostileNameUnderItsUrl) {
  write(folder_ / kHostileName, "hostile");
  const auto server =
      serve({.trace = folder_ / kHostileName, .ui = {}, .port = 0, .allow_origin = {}});
  const std::string url = server->trace_url();
  ASSERT_TRUE(url.starts_with(server->origin() + "/"));
  EXPECT_EQ(url.find_first_of(" #?&'\"\\$;"), std::string::npos);
  const auto response = client(*server).Get(url.substr(server->origin().size()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "hostile");
}

TEST_F(TraceServerTest, KnowsNothingElse) {
  const auto server = serve_trace();
  for (const char* path :
       {"/", "/index.html", "/other.pftrace", "/run.pftrace/", "/localtrace", "/vizviewer_info"}) {
    const auto response = client(*server).Get(path);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 404) << path;
  }
  EXPECT_FALSE(server->trace_was_sent());
}

TEST_F(TraceServerTest, HeadTellsTheSizeAndSendsNothing) {
  const auto server = serve_trace();
  const auto response = client(*server).Head("/run.pftrace");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->get_header_value("Content-Length"), "1000");
  EXPECT_TRUE(response->body.empty());
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(server->trace_was_sent());
}

TEST_F(TraceServerTest, APartOfTheTraceIsNotTheTrace) {
  const auto server = serve_trace();
  const auto response = client(*server).Get("/run.pftrace", {httplib::make_range_header({{0, 9}})});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 206);
  EXPECT_EQ(response->body, every_byte().substr(0, 10));
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(server->trace_was_sent());
}

TEST_F(TraceServerTest, TakesNoOtherMethod) {
  const auto server = serve_ui();
  auto http = client(*server);
  for (const auto& response :
       {http.Post("/run.pftrace", "x", "text/plain"), http.Put("/index.html", "x", "text/plain"),
        http.Delete("/run.pftrace"), http.Options("/run.pftrace")}) {
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 405);
    EXPECT_EQ(response->get_header_value("Allow"), "GET, HEAD");
  }
  EXPECT_TRUE(fs::exists(trace()));
}

TEST_F(TraceServerTest, AnswersToLoopbackNamesOnly) {
  const auto server = serve_ui();
  const auto status_for = [&](const std::string& host) {
    const auto response = client(*server).Get("/run.pftrace", {{"Host", host}});
    return response ? response->status : -1;
  };
  for (const char* host : {"127.0.0.1", "127.0.0.1:9001", "localhost:8000", "[::1]:9001"}) {
    EXPECT_EQ(status_for(host), 200) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:9001", "127.0.0.1.evil.example", "[::1", "[::1]evil"}) {
    EXPECT_EQ(status_for(host), 403) << host;
  }
}

TEST_F(TraceServerTest, ServesTheUiWithTheTypesThatBrowsersInsistOn) {
  const auto server = serve_ui();
  const std::vector<std::pair<std::string, std::string>> types{
      {"/", "text/html; charset=utf-8"},
      {"/index.html", "text/html; charset=utf-8"},
      {"/v1/engine.wasm", "application/wasm"},
      {"/v1/bundle.js", "text/javascript; charset=utf-8"},
      {"/v1/style.css", "text/css; charset=utf-8"},
      {"/v1/docs.json", "application/json"},
      {"/v1/font.woff2", "font/woff2"},
      {"/v1/LICENSE", "application/octet-stream"},
      {"/v1/empty.js", "text/javascript; charset=utf-8"},
  };
  for (const auto& [path, type] : types) {
    const auto response = client(*server).Get(path);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 200) << path;
    EXPECT_EQ(response->get_header_value("Content-Type"), type) << path;
  }
  EXPECT_EQ(client(*server).Get("/")->body, "<html>");
  EXPECT_EQ(client(*server).Get("/v1/engine.wasm")->body, std::string("\0asm", 4));
  EXPECT_EQ(client(*server).Get("/v1")->status, 404);
  EXPECT_EQ(client(*server).Get("/v1/none.js")->status, 404);
}

TEST_F(TraceServerTest, GivesViztracersBuildWhatItAsksForByItself) {
  const auto server = serve_ui();
  EXPECT_EQ(client(*server).Get("/vizviewer_info")->body, "{}");
  EXPECT_EQ(client(*server).Get("/localtrace")->body, every_byte());
}

TEST_F(TraceServerTest, LeavesTheFolderOfTheUiByNoPath) {
  const auto server = serve_ui();
  for (const char* path :
       {"/../secret", "/%2e%2e/secret", "/..%2fsecret", "/v1/../../secret",
        "/v1/%2e%2e/%2e%2e/secret", "//etc/passwd", "/v1//bundle.js", "/./index.html", "/v1/..",
        "/%00", "/index.html%00.js", "/%2fetc/passwd"}) {
    const auto response = client(*server).Get(path);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 403) << path;
    EXPECT_EQ(response->body.find("secret"), std::string::npos) << path;
  }
}

TEST_F(TraceServerTest, StreamsAFileThatItNeverHoldsInMemory) {
  constexpr off_t kSize = off_t{512} << 20;
  write(trace(), "head");
  ASSERT_EQ(::truncate(trace().c_str(), kSize), 0);
  const auto server = serve_trace();
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  size_t received = 0;
  const auto response = client(*server).Get("/run.pftrace", [&](const char*, size_t length) {
    received += length;
    return true;
  });
  ASSERT_TRUE(response);
  EXPECT_EQ(received, static_cast<size_t>(kSize));
  EXPECT_LT(peak_kib() - before, 64 << 10);
  EXPECT_TRUE(becomes_sent(*server));
}

TEST_F(TraceServerTest, StopEndsADownloadUnderWay) {
  ASSERT_EQ(::truncate(trace().c_str(), off_t{1} << 40),
            0);  // sparse, and more than any test waits for
  const auto server = serve_trace();
  std::promise<void> begun;
  std::thread reader([&] {
    bool first = true;
    const auto response = client(*server).Get("/run.pftrace", [&](const char*, size_t) {
      if (std::exchange(first, false)) begun.set_value();
      return true;
    });
    EXPECT_FALSE(response);
  });
  begun.get_future().wait();
  const auto start = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  reader.join();
  EXPECT_FALSE(server->trace_was_sent());
}

TEST_F(TraceServerTest, ABrokenOffDownloadDoesNotCount) {
  ASSERT_EQ(::truncate(trace().c_str(), off_t{64} << 20), 0);
  const auto server = serve_trace();
  EXPECT_FALSE(client(*server).Get("/run.pftrace", [](const char*, size_t) { return false; }));
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(server->trace_was_sent());
}

TEST_F(TraceServerTest, SaysThatThePortIsTaken) {
  const auto first = serve_trace();
  const auto second =
      TraceServer::start({.trace = trace(), .ui = {}, .port = first->port(), .allow_origin = {}});
  ASSERT_FALSE(second);
  const std::string message = second.error().message();
  EXPECT_NE(message.find("127.0.0.1:" + std::to_string(first->port())), std::string::npos)
      << message;
  EXPECT_NE(message.find("another program has that port"), std::string::npos) << message;
  EXPECT_NE(message.find("--port"), std::string::npos) << message;
}

TEST_F(TraceServerTest, TakesNoPortThatIsNone) {
  for (const int port : {-1, 65536, 99999}) {
    const auto server =
        TraceServer::start({.trace = trace(), .ui = {}, .port = port, .allow_origin = {}});
    ASSERT_FALSE(server) << port;
    EXPECT_NE(server.error().message().find("no such port"), std::string::npos)
        << server.error().message();
  }
}

TEST_F(TraceServerTest, FreesItsPortAtOnce) {
  auto first = serve_trace();
  const int port = first->port();
  EXPECT_EQ(client(*first).Get("/run.pftrace")->status, 200);
  first.reset();
  EXPECT_TRUE(TraceServer::start({.trace = trace(), .ui = {}, .port = port, .allow_origin = {}}));
}

TEST_F(TraceServerTest, RefusesWhatIsNoTraceFile) {
  write(folder_ / "empty", "");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  const std::vector<std::pair<fs::path, std::string>> causes{
      {folder_ / "none", "No such file or directory"},
      {folder_, "Is a directory"},
      {folder_ / "empty", "it is empty"},
      {folder_ / "fifo", "it is not a regular file"},
  };
  for (const auto& [file, cause] : causes) {
    const auto checked = check_trace_file(file);
    ASSERT_FALSE(checked) << file;
    EXPECT_NE(checked.error().message().find(cause), std::string::npos)
        << checked.error().message();
    EXPECT_FALSE(TraceServer::start({.trace = file, .ui = {}, .port = 0, .allow_origin = {}}));
  }
}

TEST_F(TraceServerTest, RefusesAUiWithoutAPage) {
  EXPECT_FALSE(
      TraceServer::start({.trace = trace(), .ui = folder_, .port = 0, .allow_origin = {}}));
}

// The command around the server: without a display, and with the signals of this process held.
class ViewTest : public TraceServerTest {
 protected:
  void SetUp() override {
    TraceServerTest::SetUp();
    for (const char* name :
         {"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "BROWSER", "LAYERTRACE_PERFETTO_UI"}) {
      const char* value = std::getenv(name);
      saved_.emplace_back(name,
                          value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGINT);
    pthread_sigmask(SIG_BLOCK, &held, &mask_);
    port_ = serve_trace()->port();  // free again once that server is gone
  }
  void TearDown() override {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    for (const auto& [name, value] : saved_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
    TraceServerTest::TearDown();
  }

  // Waits until view() answers there, and returns the body.
  std::string fetch(const std::string& path) {
    httplib::Client http("127.0.0.1", port_);
    for (int i = 0; i < 500; ++i) {
      if (const auto response = http.Get(path)) return response->body;
      std::this_thread::sleep_for(10ms);
    }
    return "no answer";
  }

  std::future<int> view_in_background(ViewOptions options) {
    options.port = port_;
    return std::async(std::launch::async, [this, options] { return view(options, out_, err_); });
  }

  std::ostringstream out_;
  std::ostringstream err_;
  int port_ = 0;

 private:
  sigset_t mask_{};
  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

TEST_F(ViewTest, EndsWhenTheTraceWasFetched) {
  auto code = view_in_background({.file = trace()});
  EXPECT_EQ(fetch("/run.pftrace"), every_byte());
  ASSERT_EQ(code.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(code.get(), 0);
  EXPECT_NE(out_.str().find("ssh -L 9001:127.0.0.1:" + std::to_string(port_) + " "),
            std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/run.pftrace\n"),
            std::string::npos);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ViewTest, OfflineServesUntilASignal) {
  ::setenv("LAYERTRACE_PERFETTO_UI", ui().c_str(), 1);
  for (const int signal : {SIGTERM, SIGINT}) {
    auto code = view_in_background({.file = trace(), .offline = true});
    EXPECT_EQ(fetch("/"), "<html>");
    EXPECT_EQ(fetch("/run.pftrace"), every_byte());
    EXPECT_EQ(code.wait_for(2500ms), std::future_status::timeout);
    ::kill(::getpid(), signal);
    ASSERT_EQ(code.wait_for(10s), std::future_status::ready);
    EXPECT_EQ(code.get(), 0);
  }
  const std::string origin = "http://127.0.0.1:" + std::to_string(port_);
  EXPECT_NE(out_.str().find(origin + "/#!/?url=" + origin + "/run.pftrace\n"), std::string::npos)
      << out_.str();
}

TEST_F(ViewTest, HandsTheBrowserOneWordWithoutAShell) {
  ::setenv("DISPLAY", ":0", 1);
  const fs::path browser = folder_ / "browser";
  const fs::path seen = folder_ / "seen";
  write(browser, "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > " + seen.string() + ".part\nmv " +
                     seen.string() + ".part " + seen.string() + "\n");
  fs::permissions(browser, fs::perms::owner_all);
  ::setenv("BROWSER", ("no-such-browser:" + browser.string() + " --new=%s x").c_str(), 1);
  ::setenv("LAYERTRACE_PERFETTO_UI", ui().c_str(), 1);
  write(folder_ / kHostileName, "{}");
  auto code = view_in_background({.file = folder_ / kHostileName, .offline = true});
  for (int i = 0; i < 500 && !fs::exists(seen); ++i) std::this_thread::sleep_for(10ms);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(code.get(), 0);
  std::ostringstream words;
  words << std::ifstream(seen).rdbuf();
  const std::string origin = "http://127.0.0.1:" + std::to_string(port_);
  const std::string url = perfetto_url(origin, origin + "/" + percent_encode(kHostileName));
  EXPECT_EQ(words.str(), "2\n--new=" + url + "\nx\n");
}

TEST_F(ViewTest, SaysWhatIsWrongAndFails) {
  const auto error_of = [this](const ViewOptions& options) {
    err_.str("");
    EXPECT_EQ(view(options, out_, err_), 1);
    return err_.str();
  };
  EXPECT_NE(error_of({.file = folder_ / "secret"}).find("it looks like plain text"),
            std::string::npos);
  EXPECT_NE(error_of({.file = folder_ / "none"}).find("none: No such file"), std::string::npos)
      << err_.str();
  EXPECT_NE(error_of({.file = folder_}).find("Is a directory"), std::string::npos) << err_.str();
  const auto other = serve_trace();
  EXPECT_NE(error_of({.file = trace(), .port = other->port()}).find("another program"),
            std::string::npos)
      << err_.str();
  ::setenv("LAYERTRACE_PERFETTO_UI", folder_.c_str(), 1);
  EXPECT_NE(error_of({.file = trace(), .offline = true}).find("no index.html"), std::string::npos)
      << err_.str();
  ::setenv("DISPLAY", ":0", 1);
  EXPECT_NE(error_of({.file = trace(), .port = 9002}).find("port 9001 only"), std::string::npos)
      << err_.str();
}

}  // namespace
}  // namespace layertrace::tools
