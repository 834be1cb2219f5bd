// Where a server's answer to one request goes: to an HTTP connection or to a caller in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/message.h"
#include "http/request_body.h"

namespace trainyard::http {

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
  // `room` is called once, without a lock held, when no more than `bytes` wait any longer; at once if that is
  // so. A later one takes the place of an earlier one. Not called when the reader has gone: OnGone() tells
  // it.
  virtual void OnRoom(std::size_t bytes, std::function<void()> room) = 0;
  // The body is complete.
  virtual void Close() = 0;
  // `gone` is called once, when the reader has gone away or the server stops; at once if that has happened
  // already. Not called after Close().
  virtual void OnGone(std::function<void()> gone) = 0;
};

// Exactly one of the first two is called, once, from any thread.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(Response response) = 0;
  // A Content-Length among the head's headers says how many bytes will be written, where that is known.
  virtual std::shared_ptr<BodyWriter> Stream(Response head) = 0;
  // `gone` is called once if whoever asked goes away before there is an answer; at once if it has. Never
  // where they wait whatever comes.
  virtual void OnGone(std::function<void()> gone) { std::function<void()>().swap(gone); }
};

// Who asks.
struct Identity {
  std::string user;
  std::vector<std::string> groups;
};

// What is asked; the HTTP server and the in-process transport both fill it.
struct ServerRequest {
  Request request;
  Identity identity;
  std::string user_agent;
  // Of a request that is carried on to somebody else, beside the above: all its headers as they came, and its
  // body as it comes, with its length where that is known. A null body: all of it is in `request`.
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<RequestBody> body;
  std::optional<std::uint64_t> body_length;
};

// Handles one request; the answer comes through the responder, now or later. From any thread.
using RequestHandler = std::function<void(ServerRequest, std::unique_ptr<Responder>)>;

}  // namespace trainyard::http
