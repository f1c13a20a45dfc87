// The server over cpp-httplib, which parses requests, matches routes and writes replies. The
// socket, the threads and the time-outs are ours: the library's own pool has eight threads, which
// eight clients that stream would keep, its stop() cuts off who is still being answered, and
// nothing bounds how long the headers of a request may be or take.
#include "cli/serve/http.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "cli/serve/connection.h"

namespace tl::cli::serve {

namespace {

// What the library reads and writes by.
class LibraryStream final : public httplib::Stream {
 public:
  explicit LibraryStream(Connection& connection) : connection_(connection) {}

  bool is_readable() const override { return connection_.is_readable(); }
  bool is_writable() const override { return connection_.is_writable(); }
  ssize_t read(char* to, std::size_t size) override { return connection_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override {
    return connection_.write(from, size);
  }
  // Nobody asks who it is.
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return connection_.file(); }

 private:
  Connection& connection_;
};

// The connection that this thread serves: the library's handlers are not told.
thread_local Connection* at_work = nullptr;

HttpRequest basic(const httplib::Request& from) {
  HttpRequest request;
  request.method = from.method;
  request.path = from.path;
  request.header = [&from](const std::string& name) { return from.get_header_value(name); };
  request.is_gone = [connection = at_work] { return connection->is_gone(); };
  return request;
}

// Whether the request says in one way only how long it is.
bool is_length_clear(const httplib::Request& request) {
  const std::size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths == 0) return true;
  const std::string text = request.get_header_value("Content-Length");
  return lengths == 1 && !request.has_header("Transfer-Encoding") && !text.empty() &&
         text.size() < 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void put(const HttpReply& reply, httplib::Response& to) {
  to.status = reply.status;
  for (const auto& [name, value] : reply.headers) to.set_header(name, value);
  if (at_work->must_close) to.set_header("Connection", "close");
  if (!reply.stream) return to.set_content(reply.body, reply.type);
  to.set_chunked_content_provider(
      reply.type, [stream = reply.stream](std::size_t, httplib::DataSink& sink) {
        bool is_well = true;
        try {
          stream([&](std::string_view part) {
            return is_well = is_well && !at_work->is_gone() && sink.write(part.data(), part.size());
          });
        } catch (...) {
          is_well = false;  // half a reply is sent: all that is left is to end the connection
        }
        if (is_well) sink.done();
        return is_well;
      });
}

// What the library keeps to itself.
class Library : public httplib::Server {
 public:
  int socket() const { return svr_sock_; }
  using httplib::Server::process_request;
};

// Every connection has a thread of its own.
class LibraryServer {
 public:
  LibraryServer(const HttpOptions& options, HttpRoutes routes);
  LibraryServer(const LibraryServer&) = delete;
  LibraryServer& operator=(const LibraryServer&) = delete;
  ~LibraryServer();

  int port() const noexcept;
  std::size_t connections() const;
  void accept_until(int stop);
  void close();
  bool wait_idle(double seconds);
  void cut();
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct LibraryServer::State {
  struct Client {
    Client(int opened, const HttpOptions& options) : file(opened), connection(opened, options) {}
    int file;
    Connection connection;
    std::thread thread;
    bool is_done = false;
  };

  State(const HttpOptions& how, HttpRoutes what) : options(how), routes(std::move(what)) {}

  void bind();
  void add_routes();
  HttpReply answer(const HttpRoutes::Handler& handler, const HttpRequest& request) const;
  void accept();
  void turn_away(int file) const;
  void serve(Client& client);
  void reap();

  HttpOptions options;
  HttpRoutes routes;
  Library library;
  int port = 0;
  int listening = -1;
  std::atomic<bool> is_closing{false};

  mutable std::mutex mutex;
  std::condition_variable ended;
  std::list<Client> clients;
  std::size_t open = 0;
};

void LibraryServer::State::bind() {
  library.set_socket_options([](socket_t file) {
    // Not SO_REUSEPORT, the library's choice: a second server on the same port is a mistake that
    // should be seen.
    const int on = 1;
    ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  errno = 0;
  port = options.port;
  bool is_bound = true;
  if (port == 0) {
    port = library.bind_to_any_port(options.host);
    is_bound = port > 0;
  } else {
    is_bound = library.bind_to_port(options.host, port);
  }
  if (!is_bound) {
    throw std::runtime_error("cannot listen on " + options.host + ":" +
                             std::to_string(options.port) + ": " +
                             (errno != 0 ? std::strerror(errno) : "there is no such address here"));
  }
  listening = library.socket();
  ::listen(listening, 1024);  // the library lets five wait
}

HttpReply LibraryServer::State::answer(const HttpRoutes::Handler& handler,
                                       const HttpRequest& request) const {
  try {
    return handler(request);
  } catch (const std::exception& error) {
    return routes.refuse(500, error.what());
  }
}

void LibraryServer::State::add_routes() {
  library.set_payload_max_length(options.body_bytes);
  library.set_keep_alive_timeout(static_cast<time_t>(std::max(1.0, options.idle_seconds)));
  library.set_keep_alive_max_count(1 << 20);  // it only goes into a header; nothing counts
  library.set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
    const HttpRequest request = basic(from);
    std::optional<HttpReply> reply;
    if (!is_length_clear(from)) {
      reply = routes.refuse(400, "the length of the request is not clear");
    } else if (from.has_header("Content-Length") &&
               std::stoull(from.get_header_value("Content-Length")) > options.body_bytes) {
      reply =
          routes.refuse(413, "the request is larger than the " +
                                 std::to_string(options.body_bytes) + " bytes that are allowed");
    } else if (is_closing) {
      reply = routes.refuse(503, "the server is stopping");
    } else {
      reply = routes.admit(request);
    }
    if (!reply) return httplib::Server::HandlerResponse::Unhandled;
    if (from.get_header_value("Content-Length") != "0")
      at_work->must_close = true;  // the body was not read
    routes.finish(request, *reply);
    put(*reply, to);
    return httplib::Server::HandlerResponse::Handled;
  });
  for (const HttpRoutes::Route& route : routes.routes) {
    if (route.method == "GET") {
      library.Get(route.path, [this, &route](const httplib::Request& from, httplib::Response& to) {
        const HttpRequest request = basic(from);
        HttpReply reply = answer(route.handler, request);
        routes.finish(request, reply);
        put(reply, to);
      });
      continue;
    }
    library.Post(route.path, [this, &route](const httplib::Request& from, httplib::Response& to,
                                            const httplib::ContentReader& read) {
      HttpRequest request = basic(from);
      HttpReply reply;
      bool is_large = false;
      const auto take = [&](const char* data, std::size_t size) {
        is_large = request.body.size() + size > options.body_bytes;
        if (!is_large) request.body.append(data, size);
        return !is_large;
      };
      if (from.is_multipart_form_data()) {
        at_work->must_close = true;
        reply = routes.refuse(415, "send JSON, not a form");
      } else if (read(take)) {
        reply = answer(route.handler, request);
      } else {
        at_work->must_close = true;
        reply =
            routes.refuse(is_large ? 413 : 400, is_large ? "the request is larger than is allowed"
                                                         : "the body of the request did not come");
      }
      routes.finish(request, reply);
      put(reply, to);
    });
  }
  // Only what the library itself refuses has no body.
  library.set_error_handler([this](const httplib::Request& from, httplib::Response& to) {
    if (!to.body.empty() || to.content_provider_) return;
    at_work->must_close = true;
    HttpReply reply = routes.refuse(to.status, "the request is not understood");
    routes.finish(basic(from), reply);
    put(reply, to);
  });
}

void LibraryServer::State::serve(Client& client) {
  Connection& connection = client.connection;
  at_work = &connection;
  const auto setup = [&](httplib::Request& request) {
    connection.headers_are_read();
    request.ranges.clear();  // parts of an answer are nobody's wish
    if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
      request.set_header("Content-Length", "0");  // else all that ever comes would be the body
    }
  };
  LibraryStream stream(connection);
  try {
    while (connection.wait_for_request(is_closing)) {
      bool is_last = false;
      if (!library.process_request(stream, is_closing, is_last, setup) || is_last ||
          connection.must_close)
        break;
    }
    connection.linger();
  } catch (...) {  // no memory for a request: the connection is all that can be given up
  }
  at_work = nullptr;
  const std::lock_guard lock(mutex);
  ::close(client.file);
  client.file = -1;
  client.is_done = true;
  --open;
  ended.notify_all();
}

void LibraryServer::State::reap() {
  std::list<Client> done;
  {
    const std::lock_guard lock(mutex);
    for (auto at = clients.begin(); at != clients.end();) {
      const auto next = std::next(at);
      if (at->is_done) done.splice(done.end(), clients, at);
      at = next;
    }
  }
  for (Client& client : done) {
    if (client.thread.joinable()) client.thread.join();
  }
}

void LibraryServer::State::turn_away(int file) const {
  constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: "
      "0\r\n\r\n";
  [[maybe_unused]] const ssize_t sent =
      ::send(file, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(file, SHUT_WR);
  std::array<char, 4096> waste{};
  while (::recv(file, waste.data(), waste.size(), MSG_DONTWAIT) > 0) {
  }
  ::close(file);
}

void LibraryServer::State::accept() {
  const int file = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (file < 0) {
    if (errno == EMFILE || errno == ENFILE)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return;
  }
  reap();
  const std::lock_guard lock(mutex);
  if (open >= options.connections) return turn_away(file);
  Client& client = clients.emplace_back(file, options);
  try {
    client.thread = std::thread([this, &client] { serve(client); });
    ++open;
  } catch (const std::system_error&) {  // no thread can be had
    clients.pop_back();
    turn_away(file);
  }
}

LibraryServer::LibraryServer(const HttpOptions& options, HttpRoutes routes)
    : state_(std::make_unique<State>(options, std::move(routes))) {
  state_->bind();
  state_->add_routes();
}

LibraryServer::~LibraryServer() {
  close();
  cut();
  join();
}

int LibraryServer::port() const noexcept { return state_->port; }

std::size_t LibraryServer::connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->open;
}

void LibraryServer::accept_until(int stop) {
  while (true) {
    std::array<pollfd, 2> both{pollfd{state_->listening, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (::poll(both.data(), both.size(), 1000) < 0 && errno != EINTR) return;
    if (both[1].revents != 0) return;
    if (both[0].revents != 0) {
      state_->accept();
    } else {
      state_->reap();
    }
  }
}

void LibraryServer::close() {
  state_->is_closing = true;
  if (state_->listening >= 0) ::close(state_->listening);
  state_->listening = -1;
  const std::lock_guard lock(state_->mutex);
  for (State::Client& client : state_->clients) {
    if (!client.is_done && client.connection.is_idle) ::shutdown(client.file, SHUT_RD);
  }
}

bool LibraryServer::wait_idle(double seconds) {
  std::unique_lock lock(state_->mutex);
  return state_->ended.wait_for(lock, std::chrono::duration<double>(seconds),
                                [&] { return state_->open == 0; });
}

void LibraryServer::cut() {
  const std::lock_guard lock(state_->mutex);
  for (State::Client& client : state_->clients) {
    if (!client.is_done) ::shutdown(client.file, SHUT_RDWR);
  }
}

void LibraryServer::join() {
  {
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [&] { return state_->open == 0; });
  }
  state_->reap();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void tl_http_server(const HttpOptions& options,
                                                                      HttpRoutes& routes,
                                                                      HttpCalls& calls) {
  const auto server = std::make_shared<LibraryServer>(options, std::move(routes));
  calls.port = [server] { return server->port(); };
  calls.connections = [server] { return server->connections(); };
  calls.accept_until = [server](int stop) { server->accept_until(stop); };
  calls.close = [server] { server->close(); };
  calls.wait_idle = [server](double seconds) { return server->wait_idle(seconds); };
  calls.cut = [server] { server->cut(); };
  calls.join = [server] { server->join(); };
}

}  // namespace tl::cli::serve
