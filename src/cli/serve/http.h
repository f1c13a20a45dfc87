// HTTP as the rest of `tl serve` sees it: a request in, a reply out. Only http.cpp knows the
// library behind it, and is a shared object that the first server opens: that library brings
// OpenSSL, which the start of every other command would wait for.
//
// Every connection has a thread of its own, up to a limit, so a client that streams never waits for
// another's thread. Threads that wait cost nothing but their stack; the work is done by the one
// thread that steps the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tl::cli::serve {

struct HttpRequest {
  std::string method, path, body;
  std::function<std::string(const std::string& name)> header;  // empty where there is none
  std::function<bool()> is_gone;  // has the client closed the connection?
};

// Writes a part of a reply; false when nobody is there to read it.
using HttpWrite = std::function<bool(std::string_view part)>;

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Instead of a body: called once, on the connection's thread, and writes part by part.
  std::function<void(const HttpWrite& write)> stream;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: one that is free
  std::uint64_t body_bytes = std::uint64_t{8} << 20;
  std::size_t connections = 512;
  double read_seconds = 30;   // for a whole request, from its first byte
  double write_seconds = 30;  // for a part of a reply that the client does not take
  double idle_seconds = 60;   // between two requests
};

struct HttpRoutes {
  using Handler = std::function<HttpReply(const HttpRequest& request)>;
  struct Route {
    std::string method, path;
    Handler handler;
  };
  std::vector<Route> routes;
  // Looks at a request before its body is read; what it gives is the reply. Also for paths that are
  // no route.
  std::function<std::optional<HttpReply>(const HttpRequest& request)> admit;
  // The reply to what cannot be understood (400), is too large (413) or throws (500).
  std::function<HttpReply(int status, const std::string& message)> refuse;
  // Adds headers to every reply.
  std::function<void(const HttpRequest& request, HttpReply& reply)> finish;
};

// What http.cpp gives. Functions and not a class: two halves of a program that are linked apart
// need not agree on more.
struct HttpCalls {
  std::function<int()> port;
  std::function<std::size_t()> connections;
  std::function<void(int stop)> accept_until;
  std::function<void()> close;
  std::function<bool(double seconds)> wait_idle;
  std::function<void()> cut;
  std::function<void()> join;
};

class HttpServer {
 public:
  // Binds the port. Throws BadArgument where that cannot be done.
  HttpServer(const HttpOptions& options, HttpRoutes routes);

  int port() const { return calls_.port(); }
  std::size_t connections() const { return calls_.connections(); }

  // Accepts connections until `stop` (a file) can be read.
  void accept_until(int stop) { calls_.accept_until(stop); }
  // No more connections, and no more requests on those there are; who is at work goes on.
  void close() { calls_.close(); }
  // Until no connection is left; false when that takes longer.
  bool wait_idle(double seconds) { return calls_.wait_idle(seconds); }
  void cut() { calls_.cut(); }    // what is left is cut off
  void join() { calls_.join(); }  // waits for the threads

 private:
  HttpCalls calls_;
};

// The one symbol of the shared object. Throws std::runtime_error where the port cannot be had.
extern "C" void tl_http_server(const HttpOptions& options, HttpRoutes& routes, HttpCalls& calls);

}  // namespace tl::cli::serve
