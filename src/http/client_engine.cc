#include "http/client_engine.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::http {
namespace {

constexpr std::size_t kSpareStreams = 4;

// A write to a connection that the server has closed is an error, not the end of the process.
void BlockSigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Of what fails for want of memory only.
void Check(CURLMcode code) { TY_CHECK(code == CURLM_OK, curl_multi_strerror(code)); }

// What epoll gives back: the descriptor, and which pool's it is.
epoll_event EventOf(int fd, bool stream) {
  const std::uint64_t data = static_cast<std::uint64_t>(stream) << 32 | static_cast<std::uint32_t>(fd);
  return {.events = 0, .data = {.u64 = data}};
}
int FdOf(const epoll_event& event) { return static_cast<int>(event.data.u64 & 0xffffffff); }
bool IsStream(const epoll_event& event) { return event.data.u64 >> 32 != 0; }

absl::Status Cancelled(const Endpoint& endpoint) {
  return absl::CancelledError(StrCat("the exchange with ",
                                     endpoint.remote.server.empty() ? "a server" : endpoint.remote.server,
                                     " was cancelled"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<ClientEngine>> ClientEngine::Start(Endpoint endpoint) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) {
    return absl::InternalError(StrCat("libcurl does not initialise: ", curl_easy_strerror(initialised)));
  }
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "epoll_create1");
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  epoll_event event = EventOf(wake.get(), false);
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return ErrnoStatus(errno, "epoll_ctl");
  std::shared_ptr<ClientEngine> engine(
      new ClientEngine(std::move(endpoint), std::move(epoll), std::move(wake)));
  engine->thread_ = std::thread([raw = engine.get()] { raw->Run(); });
  return engine;
}

ClientEngine::ClientEngine(Endpoint endpoint, Fd epoll, Fd wake)
    : endpoint_(std::move(endpoint)), epoll_(std::move(epoll)), wake_(std::move(wake)) {
  SetUp(exchanges_, false);
  SetUp(streams_, true);
}

void ClientEngine::SetUp(Pool& pool, bool stream) {
  pool.engine = this;
  pool.stream = stream;
  pool.multi.reset(curl_multi_init());
  CURLM* multi = pool.multi.get();
  TY_CHECK(multi != nullptr, "out of memory");
  Check(curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &ClientEngine::OnSocket));
  Check(curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, &pool));
  Check(curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &ClientEngine::OnTimer));
  Check(curl_multi_setopt(multi, CURLMOPT_TIMERDATA, &pool));
  Check(curl_multi_setopt(multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX)));
  Check(curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(endpoint_.options.max_in_flight)));
}

ClientEngine::~ClientEngine() { TY_CHECK(!thread_.joinable(), "an engine is stopped before it goes"); }

void ClientEngine::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

// ---- from any thread

bool ClientEngine::Post(std::vector<Command> commands) {
  bool wake = false;
  {
    MutexLock lock(mu_);
    if (stopping_) return false;
    wake = commands_.empty();
    std::ranges::move(commands, std::back_inserter(commands_));
  }
  const std::uint64_t one = 1;
  if (wake) (void)!::write(wake_.get(), &one, sizeof one);
  return true;
}

void ClientEngine::Begin(const std::vector<std::shared_ptr<ClientExchange>>& exchanges) {
  std::vector<Command> commands;
  commands.reserve(exchanges.size());
  for (const auto& exchange : exchanges) commands.push_back({Command::Kind::kBegin, exchange});
  if (Post(std::move(commands))) return;
  for (const auto& exchange : exchanges) exchange->OnEnd(Cancelled(endpoint_));
}

void ClientEngine::Cancel(std::shared_ptr<ClientExchange> exchange) {
  std::vector<Command> commands;
  commands.push_back({Command::Kind::kCancel, std::move(exchange)});
  Post(std::move(commands));
}

void ClientEngine::Resume(std::shared_ptr<ClientExchange> exchange) {
  std::vector<Command> commands;
  commands.push_back({Command::Kind::kResume, std::move(exchange)});
  Post(std::move(commands));
}

// ---- the thread

void ClientEngine::Run() {
  BlockSigpipe();
  while (TakeCommands()) {
    BeginWaiting();
    Wait();
    for (Pool* pool : {&exchanges_, &streams_}) {
      TakeEnded(*pool);
      Restart(*pool);
    }
    GiveUpIdleStreams();
  }
  EndAll();
}

// False: it is time to end.
bool ClientEngine::TakeCommands() {
  std::vector<Command> commands;
  bool stopping = false;
  {
    MutexLock lock(mu_);
    commands.swap(commands_);
    stopping = stopping_;
  }
  for (Command& command : commands) Carry(command);
  return !stopping;
}

void ClientEngine::Carry(Command& command) {
  switch (command.kind) {
    case Command::Kind::kBegin:
      if (command.exchange->due > Clock::System().Steady()) {
        later_.emplace(command.exchange->due, std::move(command.exchange));
      } else if (command.exchange->stream) {
        BeginOne(std::move(command.exchange));
      } else {
        waiting_.push_back(std::move(command.exchange));
      }
      return;
    case Command::Kind::kCancel:
      if (auto handle = Remove(command.exchange.get())) {
        handle->Finish(Cancelled(endpoint_));
        Recycle(std::move(handle));
      } else if (std::erase(waiting_, command.exchange) +
                     std::erase_if(later_, [&](const auto& one) { return one.second == command.exchange; }) >
                 0) {
        command.exchange->OnEnd(Cancelled(endpoint_));
      }
      return;
    case Command::Kind::kResume:
      if (const auto found = active_.find(command.exchange.get()); found != active_.end()) {
        found->second->Resume(Clock::System().Steady());
        next_give_up_ = std::min(next_give_up_, found->second->GiveUpAt());
      }
      return;
  }
}

void ClientEngine::BeginWaiting() {
  const SteadyTime now = later_.empty() ? SteadyTime() : Clock::System().Steady();
  while (!later_.empty() && later_.begin()->first <= now) {
    std::shared_ptr<ClientExchange> exchange = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    if (exchange->stream) {
      BeginOne(std::move(exchange));
    } else {
      waiting_.push_back(std::move(exchange));
    }
  }
  while (!waiting_.empty() && in_flight_ < endpoint_.options.max_in_flight) {
    std::shared_ptr<ClientExchange> exchange = std::move(waiting_.front());
    waiting_.pop_front();
    BeginOne(std::move(exchange));
  }
}

void ClientEngine::BeginOne(std::shared_ptr<ClientExchange> exchange) {
  Pool& pool = PoolOf(exchange->stream);
  std::unique_ptr<ClientHandle> handle;
  if (pool.spare.empty()) {
    handle = std::make_unique<ClientHandle>(endpoint_, pool.stream);
    curl_easy_setopt(handle->easy(), CURLOPT_OPENSOCKETFUNCTION, &ClientEngine::OnOpen);
    curl_easy_setopt(handle->easy(), CURLOPT_OPENSOCKETDATA, &pool);
    // Connections keep these of the handle that they are made for, and outlive it.
    curl_easy_setopt(handle->easy(), CURLOPT_CLOSESOCKETFUNCTION, &ClientEngine::OnClose);
    curl_easy_setopt(handle->easy(), CURLOPT_CLOSESOCKETDATA, &pool);
  } else {
    handle = std::move(pool.spare.back());
    pool.spare.pop_back();
  }
  const ClientExchange* key = exchange.get();
  if (absl::Status prepared = handle->Prepare(std::move(exchange), Clock::System().Steady());
      !prepared.ok()) {
    handle->Finish(std::move(prepared));
    return;
  }
  if (pool.stream) {
    next_give_up_ = std::min(next_give_up_, handle->LookAgainAt());
  } else {
    ++in_flight_;
  }
  Note(pool, curl_multi_add_handle(pool.multi.get(), handle->easy()));
  active_.emplace(key, std::move(handle));
}

void ClientEngine::Wait() {
  int milliseconds = -1;
  const SteadyTime next = later_.empty() ? SteadyTime::Never() : later_.begin()->first;
  const SteadyTime until = std::min({exchanges_.timer, streams_.timer, next_give_up_, next});
  if (until != SteadyTime::Never()) {
    const absl::Duration left = absl::Ceil(until - Clock::System().Steady(), absl::Milliseconds(1));
    milliseconds =
        static_cast<int>(absl::ToInt64Milliseconds(std::clamp(left, absl::ZeroDuration(), absl::Hours(1))));
  }
  std::array<epoll_event, 64> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds);
  TY_CHECK(ready >= 0 || errno == EINTR, "epoll_wait");
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int fd = FdOf(event);
    if (fd == wake_.get()) {
      std::uint64_t count = 0;
      (void)!::read(fd, &count, sizeof count);
      continue;
    }
    Serve(PoolOf(IsStream(event)), fd, event.events);
  }
  RunTimer(exchanges_);
  RunTimer(streams_);
}

void ClientEngine::Serve(Pool& pool, curl_socket_t socket, std::uint32_t events) {
  const auto found = pool.sockets.find(socket);
  if (found == pool.sockets.end()) return;  // closed since
  if (!found->second.in_use) {
    // The server closes a connection that nobody uses; libcurl finds out when it wants it again.
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
    pool.sockets.erase(found);
    return;
  }
  int what = 0;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) what |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
  if ((events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
  int running = 0;
  Note(pool, curl_multi_socket_action(pool.multi.get(), socket, what, &running));
}

void ClientEngine::RunTimer(Pool& pool) {
  if (Clock::System().Steady() < pool.timer) return;
  pool.timer = SteadyTime::Never();
  int running = 0;
  Note(pool, curl_multi_socket_action(pool.multi.get(), CURL_SOCKET_TIMEOUT, 0, &running));
}

void ClientEngine::Note(Pool& pool, CURLMcode code) {
  if (code != CURLM_OK && pool.broken.ok()) {
    pool.broken = absl::UnavailableError(StrCat("the HTTP client broke: ", curl_multi_strerror(code)));
  }
}

void ClientEngine::Restart(Pool& pool) {
  const absl::Status why = std::exchange(pool.broken, absl::OkStatus());
  if (why.ok()) return;
  log::Warn("the HTTP client begins again; what was in flight has failed", {{"error", why}});
  std::vector<const ClientExchange*> failed;
  for (const auto& [exchange, handle] : active_) {
    if (handle->stream() == pool.stream) failed.push_back(exchange);
  }
  for (const ClientExchange* exchange : failed) Remove(exchange)->Finish(why);
  pool.spare.clear();
  pool.multi.reset();
  for (const auto& [socket, known] : pool.sockets)
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  pool.sockets.clear();
  pool.timer = SteadyTime::Never();
  SetUp(pool, pool.stream);
}

void ClientEngine::TakeEnded(Pool& pool) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(pool.multi.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    ClientHandle* ended = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &ended);
    std::unique_ptr<ClientHandle> handle = Remove(ended->exchange().get());
    handle->Finish(code);
    Recycle(std::move(handle));
  }
}

void ClientEngine::GiveUpIdleStreams() {
  const SteadyTime now = Clock::System().Steady();
  if (now < next_give_up_) return;
  next_give_up_ = SteadyTime::Never();
  std::vector<const ClientExchange*> idle;
  for (const auto& [exchange, handle] : active_) {
    if (!handle->stream()) continue;
    const SteadyTime at = handle->GiveUpAt();
    if (at <= now) {
      idle.push_back(exchange);
    } else {
      next_give_up_ = std::min(next_give_up_, at);
    }
  }
  for (const ClientExchange* exchange : idle) {
    std::unique_ptr<ClientHandle> handle = Remove(exchange);
    handle->Finish(handle->GiveUpStatus());
    Recycle(std::move(handle));
  }
}

std::unique_ptr<ClientHandle> ClientEngine::Remove(const ClientExchange* exchange) {
  const auto found = active_.find(exchange);
  if (found == active_.end()) return nullptr;
  std::unique_ptr<ClientHandle> handle = std::move(found->second);
  active_.erase(found);
  if (!handle->stream()) --in_flight_;
  curl_multi_remove_handle(PoolOf(handle->stream()).multi.get(), handle->easy());
  return handle;
}

void ClientEngine::Recycle(std::unique_ptr<ClientHandle> handle) {
  auto& spare = PoolOf(handle->stream()).spare;
  const std::size_t most = handle->stream() ? kSpareStreams : endpoint_.options.max_in_flight;
  if (spare.size() < most) spare.push_back(std::move(handle));
}

void ClientEngine::EndAll() {
  while (!active_.empty()) Remove(active_.begin()->first)->Finish(Cancelled(endpoint_));
  for (const std::shared_ptr<ClientExchange>& exchange : waiting_) exchange->OnEnd(Cancelled(endpoint_));
  waiting_.clear();
  for (const auto& [due, exchange] : later_) exchange->OnEnd(Cancelled(endpoint_));
  later_.clear();
  for (Pool* pool : {&exchanges_, &streams_}) {
    pool->spare.clear();
    pool->multi.reset();
  }
}

int ClientEngine::OnSocket(CURL*, curl_socket_t socket, int what, void* of_pool, void*) {
  auto& pool = *static_cast<Pool*>(of_pool);
  const auto [found, added] = pool.sockets.try_emplace(socket);
  Socket& known = found->second;
  const bool was_in_use = known.in_use;
  known.in_use = what != CURL_POLL_REMOVE;
  if (!known.in_use) {
    if (added) pool.sockets.erase(found);
    return 0;
  }
  std::uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  // One that was put aside may have been closed since, and this be another with its number.
  if (was_in_use && known.events == events) return 0;
  known.events = events;
  pool.engine->Watch(pool, socket, events);
  return 0;
}

// libcurl does not tell us of every socket that it closes: one that never connected, or a resolver's, just
// goes, and epoll forgets it. So what epoll knows is found out, not assumed.
void ClientEngine::Watch(Pool& pool, curl_socket_t socket, std::uint32_t events) {
  epoll_event event = EventOf(socket, pool.stream);
  event.events = events;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return;
  if (errno == ENOENT && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0) return;
  if (pool.broken.ok()) pool.broken = ErrnoStatus(errno, "the HTTP client cannot wait for a socket");
}

// A new socket with the number of one that went unnoticed: libcurl takes it for known, and will not say again
// what it waits for.
curl_socket_t ClientEngine::OnOpen(void* of_pool, curlsocktype, curl_sockaddr* address) {
  auto& pool = *static_cast<Pool*>(of_pool);
  const int socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  const auto known = pool.sockets.find(socket);
  if (known == pool.sockets.end()) return socket;
  if (known->second.in_use) {
    pool.engine->Watch(pool, socket, known->second.events);
  } else {
    pool.sockets.erase(known);
  }
  return socket;
}

// Its number may be another socket's in a moment.
int ClientEngine::OnClose(void* of_pool, curl_socket_t socket) {
  static_cast<Pool*>(of_pool)->sockets.erase(socket);
  return ::close(socket);
}

int ClientEngine::OnTimer(CURLM*, long milliseconds, void* of_pool) {
  static_cast<Pool*>(of_pool)->timer =
      milliseconds < 0 ? SteadyTime::Never() : Clock::System().Steady() + absl::Milliseconds(milliseconds);
  return 0;
}

}  // namespace trainyard::http
