#include "controllers/service_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "controllers/proxy_connection.h"
#include "http/event_loop.h"

namespace trainyard::controllers {
namespace {

constexpr int kBacklog = 512;
constexpr absl::Duration kStarved = absl::Milliseconds(100);

absl::StatusOr<Fd> Listen(const std::string& ip, std::uint16_t port) {
  const std::string what = StrCat("cannot listen on ", ip, ":", port);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  if (::inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) {
    return absl::InvalidArgumentError(StrCat(what, ": that is no IPv4 address"));
  }
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, what);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    const absl::Status status = ErrnoStatus(error, what);
    if (error != EACCES) return status;
    return absl::Status(status.code(),
                        StrCat(Message(status),
                               "; ports below net.ipv4.ip_unprivileged_port_start are for root alone: use a "
                               "higher port"));
  }
  return fd;
}

class EpollProxy final : public ServiceProxy {
 public:
  EpollProxy(Options options, std::unique_ptr<http::EventLoop> loop)
      : options_(std::move(options)), loop_(std::move(loop)), mail_(*this) {
    loop_->AddWoken(mail_id_, mail_);
    loop_->SetTick([this](SteadyTime now) { return Tick(now); });
    thread_ = std::thread([this] { loop_->Run(); });
  }

  ~EpollProxy() override {
    loop_->Stop();
    thread_.join();
    connections_.clear();
    ports_.clear();
  }

  void Set(const kube::ObjectKey& service, std::vector<ProxyRule> rules) override {
    {
      MutexLock lock(mu_);
      changes_.emplace_back(service, std::move(rules));
    }
    loop_->waker()->Wake(mail_id_);
  }

  void Flush() override { Count(); }

  Counts Count() override {
    std::promise<Counts> counted;
    std::future<Counts> result = counted.get_future();
    {
      MutexLock lock(mu_);
      waiting_.push_back(std::move(counted));
    }
    loop_->waker()->Wake(mail_id_);
    return result.get();
  }

 private:
  using Address = std::pair<std::string, std::uint16_t>;

  class Mail final : public http::EventLoop::Handler {
   public:
    explicit Mail(EpollProxy& proxy) : proxy_(proxy) {}
    void OnReady(std::uint32_t) override {}
    void OnWake() override { proxy_.TakeMail(); }

   private:
    EpollProxy& proxy_;
  };

  // One address and port of a service.
  class Port final : public http::EventLoop::Handler {
   public:
    Port(EpollProxy& proxy, kube::ObjectKey service) : proxy_(proxy), service_(std::move(service)) {}
    ~Port() override { Close(); }

    const kube::ObjectKey& service() const { return service_; }
    bool listens() const { return fd_.valid(); }
    bool wants_retry() const { return !listens() && !rule_.backends.empty(); }

    void Apply(ProxyRule rule) {
      rule_ = std::move(rule);
      if (rule_.backends.empty()) {
        Close();
        told_ = false;
      } else {
        Open();
      }
    }

    void Open() {
      if (listens()) return;
      absl::StatusOr<Fd> fd = Listen(rule_.ip, rule_.port);
      absl::Status status = fd.status();
      if (fd.ok()) {
        fd_ = *std::move(fd);
        id_ = proxy_.loop_->NewId();
        status = proxy_.loop_->Add(id_, fd_.get(), EPOLLIN | EPOLLET, *this);
        if (!status.ok()) fd_.Reset();
      }
      if (status.ok()) {
        told_ = false;
        return;
      }
      proxy_.loop_->TickBy(proxy_.loop_->now() + proxy_.options_.retry);
      if (!std::exchange(told_, true) && proxy_.options_.on_failure != nullptr) {
        proxy_.options_.on_failure(service_, Message(status));
      }
    }

    void OnReady(std::uint32_t) override { Accept(); }

    // Also called from time to time after descriptors have run out.
    void Accept() {
      while (listens()) {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        Fd client(
            ::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (client.valid()) {
          proxy_.Begin(std::move(client), Order(peer));
          continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        starved = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (starved) proxy_.loop_->TickBy(proxy_.loop_->now() + kStarved);
        return;
      }
    }

    bool starved = false;  // nobody was let in for want of descriptors

   private:
    void Close() {
      if (!fd_.valid()) return;
      proxy_.loop_->Remove(id_, fd_.get());
      fd_.Reset();
    }

    // The backends in the order in which they are tried.
    std::vector<Backend> Order(const sockaddr_in& peer) {
      std::vector<Backend> order = rule_.backends;
      std::size_t first = next_++ % order.size();
      if (rule_.affinity) {
        char text[INET_ADDRSTRLEN] = "";
        ::inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text);
        first = ChooseFor(text, order);
      }
      std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(first));
      return order;
    }

    EpollProxy& proxy_;
    const kube::ObjectKey service_;
    ProxyRule rule_;
    Fd fd_;
    http::EventLoop::Id id_ = 0;
    std::size_t next_ = 0;
    bool told_ = false;
  };

  void TakeMail() {
    std::vector<std::pair<kube::ObjectKey, std::vector<ProxyRule>>> changes;
    std::vector<std::promise<Counts>> waiting;
    {
      MutexLock lock(mu_);
      changes.swap(changes_);
      waiting.swap(waiting_);
    }
    for (auto& [service, rules] : changes) ApplyRules(service, std::move(rules));
    const auto listeners =
        std::ranges::count_if(ports_, [](const auto& port) { return port.second->listens(); });
    for (std::promise<Counts>& counted : waiting) {
      counted.set_value(
          {.listeners = static_cast<std::size_t>(listeners), .connections = connections_.size()});
    }
  }

  void ApplyRules(const kube::ObjectKey& service, std::vector<ProxyRule> rules) {
    std::set<Address> wanted;
    for (const ProxyRule& rule : rules) wanted.emplace(rule.ip, rule.port);
    for (const Address& address : std::exchange(by_service_[service], wanted)) {
      const auto port = ports_.find(address);
      if (!wanted.contains(address) && port != ports_.end() && port->second->service() == service) {
        ports_.erase(port);
      }
    }
    if (wanted.empty()) by_service_.erase(service);
    for (ProxyRule& rule : rules) {
      std::unique_ptr<Port>& port = ports_[{rule.ip, rule.port}];
      // An address that went from one service to another begins anew.
      if (port == nullptr || port->service() != service) port = std::make_unique<Port>(*this, service);
      port->Apply(std::move(rule));
    }
  }

  SteadyTime Tick(SteadyTime now) {
    SteadyTime next = SteadyTime::Never();
    for (auto& [address, port] : ports_) {
      if (port->wants_retry()) {
        port->Open();
        if (port->wants_retry()) next = std::min(next, now + options_.retry);
      }
      if (!std::exchange(port->starved, false)) continue;
      port->Accept();
      if (port->starved) next = std::min(next, now + kStarved);
    }
    return next;
  }

  void Begin(Fd client, std::vector<Backend> backends) {
    const std::uint64_t id = ++last_connection_;
    auto connection = std::make_unique<ProxyConnection>(*loop_, std::move(client), std::move(backends),
                                                        [this, id] { connections_.erase(id); });
    ProxyConnection& begun = *connection;
    connections_[id] = std::move(connection);
    begun.Start();
  }

  const Options options_;
  const std::unique_ptr<http::EventLoop> loop_;
  Mail mail_;
  const http::EventLoop::Id mail_id_ = loop_->NewId();

  Mutex mu_;
  std::vector<std::pair<kube::ObjectKey, std::vector<ProxyRule>>> changes_ TY_GUARDED_BY(mu_);
  std::vector<std::promise<Counts>> waiting_ TY_GUARDED_BY(mu_);

  // Below: the loop's thread alone.
  std::map<Address, std::unique_ptr<Port>> ports_;
  std::map<kube::ObjectKey, std::set<Address>> by_service_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<ProxyConnection>> connections_;
  std::uint64_t last_connection_ = 0;

  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServiceProxy>> ServiceProxy::Start(Options options) {
  TY_ASSIGN_OR_RETURN(std::unique_ptr<http::EventLoop> loop, http::EventLoop::Make());
  return std::make_unique<EpollProxy>(std::move(options), std::move(loop));
}

}  // namespace trainyard::controllers
