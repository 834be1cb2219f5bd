// The thread that drives all exchanges of a client, and the only one that touches libcurl. Nothing that a
// server or the network does ends the process: an exchange ends with a status, or, if libcurl itself fails,
// all of them do and the engine begins again.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "http/client_handle.h"

namespace trainyard::http {

class ClientEngine {
 public:
  static absl::StatusOr<std::shared_ptr<ClientEngine>> Start(Endpoint endpoint);
  ~ClientEngine();
  ClientEngine(const ClientEngine&) = delete;
  ClientEngine& operator=(const ClientEngine&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }

  // All from any thread. After Stop() an exchange ends at once, and the others do nothing.
  void Begin(const std::vector<std::shared_ptr<ClientExchange>>& exchanges);
  // Ends it with Cancelled, if it has not ended.
  void Cancel(std::shared_ptr<ClientExchange> exchange);
  // Lets the body of a stream come that said "not now".
  void Resume(std::shared_ptr<ClientExchange> exchange);
  // Ends everything in flight with Cancelled and the thread with it. Once.
  void Stop();

 private:
  struct Command {
    enum class Kind { kBegin, kCancel, kResume } kind;
    std::shared_ptr<ClientExchange> exchange;
  };

  // A socket that epoll knows. One that libcurl puts aside for the next request stays there as it is: most
  // often it is wanted again at once.
  struct Socket {
    std::uint32_t events = 0;
    bool in_use = false;
  };

  // Exchanges and streams each have connections of their own: this libcurl, once it has seen HTTP/2 at a
  // server, takes its connections of HTTP/1.1 for ones to share as well.
  struct Pool {
    ClientEngine* engine = nullptr;
    bool stream = false;
    MultiPointer multi;
    SteadyTime timer = SteadyTime::Never();
    std::vector<std::unique_ptr<ClientHandle>> spare;
    std::unordered_map<curl_socket_t, Socket> sockets;
    absl::Status broken;  // it must begin again
  };

  ClientEngine(Endpoint endpoint, Fd epoll, Fd wake);
  void SetUp(Pool& pool, bool stream);
  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* pool, void*);
  static curl_socket_t OnOpen(void* pool, curlsocktype purpose, curl_sockaddr* address);
  static int OnClose(void* pool, curl_socket_t socket);
  static int OnTimer(CURLM* multi, long milliseconds, void* pool);
  Pool& PoolOf(bool stream) { return stream ? streams_ : exchanges_; }

  bool Post(std::vector<Command> commands);
  void Run();
  bool TakeCommands();
  void Carry(Command& command);
  void BeginWaiting();
  void BeginOne(std::shared_ptr<ClientExchange> exchange);
  void Wait();
  void Watch(Pool& pool, curl_socket_t socket, std::uint32_t events);
  void Note(Pool& pool, CURLMcode code);
  void Restart(Pool& pool);
  void Serve(Pool& pool, curl_socket_t socket, std::uint32_t events);
  void RunTimer(Pool& pool);
  void TakeEnded(Pool& pool);
  void GiveUpIdleStreams();
  std::unique_ptr<ClientHandle> Remove(const ClientExchange* exchange);
  void Recycle(std::unique_ptr<ClientHandle> handle);
  void EndAll();

  const Endpoint endpoint_;
  const Fd epoll_;
  const Fd wake_;
  Mutex mu_;
  std::vector<Command> commands_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;

  // Of the thread alone, once it runs.
  Pool exchanges_;
  Pool streams_;
  std::deque<std::shared_ptr<ClientExchange>> waiting_;  // for others to end
  std::multimap<SteadyTime, std::shared_ptr<ClientExchange>> later_;
  std::unordered_map<const ClientExchange*, std::unique_ptr<ClientHandle>> active_;
  std::size_t in_flight_ = 0;  // streams not counted
  SteadyTime next_give_up_ = SteadyTime::Never();

  std::thread thread_;
};

}  // namespace trainyard::http
