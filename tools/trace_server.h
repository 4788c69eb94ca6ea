// A loopback HTTP server for one trace file, and, if asked, for a copy of Perfetto UI beside it.
//
// A browser opens no file of the local disk by itself: the page at ui.perfetto.dev, or a local copy
// of it, has to be handed the trace over HTTP. A trace can be larger than memory, is often on a
// machine that others share, and any page that the user has open could ask for it. So this server
//   - listens on 127.0.0.1 only, and answers only to a loopback Host (a foreign name that resolves
//   here is refused);
//   - lets one foreign origin read the trace, the one it is told;
//   - sends files from disk piece by piece, and nothing outside the trace and the folder of the UI;
//   - knows when the trace was sent to its last byte, so that a command can end by itself.
//
//   auto server = TraceServer::start({.trace = "run.pftrace", .port = 9001, .allow_origin =
//   kPerfettoUi}); if (!server) return fail(server.error()); open_browser(perfetto_url(kPerfettoUi,
//   (*server)->trace_url()));
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <layertrace/result.h>

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace layertrace::tools {

inline constexpr std::string_view kPerfettoUi = "https://ui.perfetto.dev";

// The one port of this machine that the content policy of ui.perfetto.dev lets its page read from.
inline constexpr int kPerfettoPort = 9001;

// Percent-encodes every byte but letters, digits, `-._~` and those in `keep`: with an empty `keep`
// the result is one path segment or one query value, whatever the bytes of a file name are.
std::string percent_encode(std::string_view bytes, std::string_view keep = {});

// The address at which the UI at `ui_origin` opens the trace at `trace_url`. The UI decodes its
// `url` argument once and fetches the result, so that the `%` of an encoded file name is itself
// encoded here.
std::string perfetto_url(std::string_view ui_origin, std::string_view trace_url);

// Fails, with a reason, on anything but a regular file with something in it that this user may
// read.
Result<void> check_trace_file(const std::filesystem::path& file);

struct TraceServerOptions {
  std::filesystem::path trace;
  std::filesystem::path
      ui;  // a folder that holds Perfetto UI's index.html; empty: serve the trace alone
  int port = kPerfettoPort;  // 0: any free one
  std::string allow_origin;  // the foreign origin that may read the trace; empty: none
};

// Thread-safe but for stop(), which is the owner's. Not movable: the request handlers hold `this`.
class TraceServer {
 public:
  // Binds, starts to answer, and returns. Fails if the trace or the UI cannot be read or the port
  // cannot be had.
  static Result<std::unique_ptr<TraceServer>> start(TraceServerOptions options);

  TraceServer(const TraceServer&) = delete;
  TraceServer& operator=(const TraceServer&) = delete;
  ~TraceServer();

  int port() const { return port_; }
  std::string origin() const;     // http://127.0.0.1:9001
  std::string trace_url() const;  // http://127.0.0.1:9001/run.pftrace

  // Whether the whole trace was sent at least once and nobody is being sent it now.
  bool trace_was_sent() const { return sent_.load() > 0 && sending_.load() == 0; }

  // Ends open downloads and joins the threads. Takes about a second where a browser keeps its
  // connections open, longer where one has stopped reading.
  void stop();

 private:
  explicit TraceServer(TraceServerOptions options);

  Result<void> bind();
  Result<void> listen();
  void handle(const httplib::Request& request, httplib::Response& response);
  void send_trace(httplib::Response& response);
  void send_ui_file(std::string_view path, httplib::Response& response);

  const TraceServerOptions options_;
  const std::string trace_path_;  // "/run.pftrace", as it is after decoding
  std::unique_ptr<httplib::Server> server_;
  std::thread listener_;
  std::atomic<bool> ended_{false};
  int port_ = 0;
  std::atomic<int> sent_{0};
  std::atomic<int> sending_{0};
};

}  // namespace layertrace::tools
