// Where the API server's answer to one request goes: to an HTTP connection or to a caller in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kube/http.h"

namespace trainyard::local {

// The body of an answer that goes out in pieces: a watch, or a log that is followed. All calls from any
// thread, none of them blocks.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  // Pieces are shared, because one event goes to many watchers. False: the reader is gone or has fallen too
  // far behind, and nothing more will be sent.
  virtual bool Write(std::shared_ptr<const std::string> piece) = 0;
  // How many bytes wait for the reader to take them. Who can wait writes less while there are many.
  virtual std::size_t Backlog() = 0;
  // The body is complete.
  virtual void Close() = 0;
  // `gone` is called once, when the reader has gone away or the server stops; at once if that has happened
  // already. Not called after Close().
  virtual void OnGone(std::function<void()> gone) = 0;
};

// Exactly one of the two is called, once, from any thread.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(kube::Response response) = 0;
  virtual std::shared_ptr<BodyWriter> Stream(kube::Response head) = 0;
};

// Who asks.
struct Identity {
  std::string user;
  std::vector<std::string> groups;
};

// What is asked; the HTTP server and the in-process transport both fill it.
struct ApiRequest {
  kube::Request request;
  Identity identity;
  std::string user_agent;
};

// Handles one request; the answer comes through the responder, now or later. From any thread.
using ApiHandler = std::function<void(ApiRequest, std::unique_ptr<Responder>)>;

}  // namespace trainyard::local
