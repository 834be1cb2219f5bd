// The Kubernetes client against the same requests made by bare libcurl at the same server.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <thread>
#include <unordered_map>

#include <curl/curl.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/report.h"
#include "kube/api.h"
#include "kube/curl_transport.h"

namespace trainyard::bench {
namespace {

constexpr std::size_t kClientBatch = 64;  // as many as the client keeps in flight
constexpr int kWorkers = 2;

// An HTTP/1.1 server that does as little as one can: it says "created" to every request, with the object
// back.
class TinyServer {
 public:
  TinyServer()
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    TY_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 ::listen(listener_.get(), 1024) == 0 &&
                 ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
             "loopback has no free port");
    port_ = ntohs(address.sin_port);
    Add(listener_.get());
    Add(stop_.get());
    thread_ = std::thread([this] { Run(); });
  }
  ~TinyServer() {
    const std::uint64_t one = 1;
    TY_CHECK(::write(stop_.get(), &one, sizeof one) == sizeof one, "eventfd");
    thread_.join();
  }
  std::string url() const { return StrCat("http://127.0.0.1:", port_); }

 private:
  struct Connection {
    Fd fd;
    std::string input;
  };

  void Add(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    TY_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  }

  void Run() {
    std::array<epoll_event, 64> events{};
    while (true) {
      const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < ready; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == stop_.get()) return;
        if (fd == listener_.get()) {
          Accept();
        } else {
          Serve(fd);
        }
      }
    }
  }

  void Accept() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int number = fd.get();
    Add(number);
    connections_[number].fd = std::move(fd);
  }

  void Serve(int fd) {
    Connection& connection = connections_[fd];
    std::array<char, 16384> buffer{};
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      connections_.erase(fd);
      return;
    }
    std::string& input = connection.input;
    input.append(buffer.data(), static_cast<std::size_t>(got));
    std::string output;
    for (std::size_t head = input.find("\r\n\r\n"); head != std::string::npos;
         head = input.find("\r\n\r\n")) {
      const std::size_t length_at = input.find("Content-Length: ");
      const std::size_t length =
          length_at < head ? std::strtoul(input.c_str() + length_at + 16, nullptr, 10) : 0;
      if (input.size() < head + 4 + length) break;
      StrAppend(output, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: ", length,
                "\r\n\r\n", std::string_view(input).substr(head + 4, length));
      input.erase(0, head + 4 + length);
    }
    if (!output.empty()) TY_CHECK(::write(fd, output.data(), output.size()) > 0, "write");
  }

  Fd listener_;
  Fd epoll_;
  Fd stop_{::eventfd(0, EFD_CLOEXEC)};
  int port_ = 0;
  std::unordered_map<int, Connection> connections_;
  std::thread thread_;
};

std::string MakePod(std::uint64_t number) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job-worker-)", number,
      R"(","namespace":"default","labels":{"job":"job","type":"worker"}},"spec":{"restartPolicy":"Never",)",
      R"("containers":[{"name":"main","image":"registry.example/train:1","command":["python","train.py"],)",
      R"("env":[{"name":"TF_CONFIG","value":"{\"task\":{\"type\":\"worker\"}}"}]}]}})");
}

// The same by libcurl alone, as its manual has it: handles that are used again, and no thread but the
// caller's.
class BareCurl {
 public:
  explicit BareCurl(const std::string& url) : multi_(curl_multi_init()) {
    headers_ = curl_slist_append(headers_, "Accept: application/json");
    headers_ = curl_slist_append(headers_, "Content-Type: application/json");
    headers_ = curl_slist_append(headers_, "Expect:");
    for (Slot& slot : slots_) {
      slot.easy = curl_easy_init();
      curl_easy_setopt(slot.easy, CURLOPT_NOSIGNAL, 1L);
      curl_easy_setopt(slot.easy, CURLOPT_USERAGENT, "trainyard");
      curl_easy_setopt(slot.easy, CURLOPT_ACCEPT_ENCODING, "gzip");
      curl_easy_setopt(slot.easy, CURLOPT_TIMEOUT_MS, 30000L);
      curl_easy_setopt(slot.easy, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
      curl_easy_setopt(slot.easy, CURLOPT_HTTPHEADER, headers_);
      curl_easy_setopt(slot.easy, CURLOPT_URL, StrCat(url, "/api/v1/namespaces/default/pods").c_str());
      curl_easy_setopt(slot.easy, CURLOPT_WRITEFUNCTION, &BareCurl::Write);
      curl_easy_setopt(slot.easy, CURLOPT_WRITEDATA, &slot.answer);
    }
  }
  ~BareCurl() {
    for (const Slot& slot : slots_) curl_easy_cleanup(slot.easy);
    curl_multi_cleanup(multi_);
    curl_slist_free_all(headers_);
  }
  BareCurl(const BareCurl&) = delete;
  BareCurl& operator=(const BareCurl&) = delete;

  void CreateAll(std::atomic<std::uint64_t>& number) {
    for (Slot& slot : slots_) {
      slot.body = MakePod(number++);
      slot.answer.clear();
      curl_easy_setopt(slot.easy, CURLOPT_POSTFIELDS, slot.body.data());
      curl_easy_setopt(slot.easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(slot.body.size()));
      curl_multi_add_handle(multi_, slot.easy);
    }
    int running = 1;
    while (running > 0) {
      TY_CHECK(curl_multi_perform(multi_, &running) == CURLM_OK, "curl_multi_perform");
      if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    for (const Slot& slot : slots_) {
      TY_CHECK(slot.answer == slot.body, "the server gives back what it got");
      curl_multi_remove_handle(multi_, slot.easy);
    }
  }

 private:
  struct Slot {
    CURL* easy = nullptr;
    std::string body;
    std::string answer;
  };
  static std::size_t Write(char* data, std::size_t, std::size_t size, void* answer) {
    static_cast<std::string*>(answer)->append(data, size);
    return size;
  }
  CURLM* multi_;
  curl_slist* headers_ = nullptr;
  std::array<Slot, kClientBatch> slots_;
};

}  // namespace

void ClientRows(const Settings& settings, std::vector<Row>& rows) {
  const TinyServer server;
  const auto transport = kube::NewCurlTransport({.server = server.url()});
  TY_CHECK(transport.ok(), Message(transport.status()));
  kube::Api api(**transport, Clock::System(), IdSource(1));
  BareCurl bare(server.url());
  std::atomic<std::uint64_t> number = 0;
  const auto client = [&] {
    return kClientBatch * Rate(kWorkers, settings.time, [&](int) {
             std::vector<kube::Operation> creates;
             creates.reserve(kClientBatch);
             for (std::size_t i = 0; i < kClientBatch; ++i) {
               creates.push_back(kube::CreateOperation(kube::Resource::Pods(), "default", MakePod(number++)));
             }
             for (const auto& created : api.Do(std::move(creates))) {
               TY_CHECK(created.ok(), Message(created.status()));
             }
           });
  };
  const auto raw = [&] {
    return kClientBatch * Rate(1, settings.time, [&](int) { bare.CreateAll(number); });
  };
  client();  // connections are made once
  const Pair creates = Alternate(settings.rounds, client, raw);
  rows.push_back({.name = "client: creates, 2 workers, batches of 64",
                  .figure = creates.figure,
                  .unit = "creates/s",
                  .limit_name = "bare libcurl, batches of 64",
                  .limit = creates.limit,
                  .least_ratio = 0.9});
}

}  // namespace trainyard::bench
