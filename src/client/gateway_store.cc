#include "client/gateway_store.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "client/gateway_client.h"
#include "client/gateway_json.h"
#include "client/gateway_watch.h"
#include "kube/credentials.h"
#include "kube/curl_transport.h"

namespace trainyard::client {
namespace {

using Kind = GatewayClient::Kind;

// Credentials for the server, and a header for the store behind it.
class WithToken final : public kube::Credentials {
 public:
  WithToken(std::shared_ptr<kube::Credentials> server, std::string token)
      : server_(std::move(server)), header_("token", std::move(token)) {}

  absl::StatusOr<kube::Credential> Get() override {
    TY_ASSIGN_OR_RETURN(kube::Credential credential, server_->Get());
    credential.headers.push_back(header_);
    return credential;
  }
  void Refuse(const kube::Credential& refused) override {
    kube::Credential without = refused;
    std::erase(without.headers, header_);
    server_->Refuse(without);
  }

 private:
  const std::shared_ptr<kube::Credentials> server_;
  const std::pair<std::string, std::string> header_;
};

// Threads that end by themselves, joined at the latest when this goes.
class Threads {
 public:
  ~Threads() {
    for (Entry& entry : entries_) entry.thread.join();
  }
  void Start(std::function<void()> work) {
    MutexLock lock(mu_);
    std::erase_if(entries_, [](Entry& entry) {
      if (!entry.ended) return false;
      entry.thread.join();
      return true;
    });
    Entry& entry = entries_.emplace_back();
    entry.thread = std::thread([&entry, work = std::move(work)] {
      work();
      entry.ended = true;
    });
  }

 private:
  struct Entry {
    std::thread thread;
    std::atomic<bool> ended = false;
  };
  Mutex mu_;
  std::list<Entry> entries_ TY_GUARDED_BY(mu_);
};

class GatewayWatcher final : public kv::Watcher {
 public:
  explicit GatewayWatcher(std::shared_ptr<GatewayWatch> watch) : watch_(std::move(watch)) {}
  ~GatewayWatcher() override {
    watch_->Cancel();
    watch_->AwaitQuiet();
  }
  absl::StatusOr<kv::WatchBatch> Next(absl::Duration timeout) override { return watch_->Next(timeout); }
  void Cancel() override { watch_->Cancel(); }

 private:
  const std::shared_ptr<GatewayWatch> watch_;
};

absl::StatusOr<kv::TxnResult> ReadTxnOf(const absl::StatusOr<Document>& answer) {
  TY_RETURN_IF_ERROR(answer);
  return ReadTxn(*answer);
}

GatewayClient::Question TxnQuestion(const kv::TxnRequest& request) {
  return {.kind = Kind::kWrite, .path = "/v3/kv/txn", .body = PrintTxn(request)};
}

// Transactions that nobody waits for: what has gathered while some were under way goes together.
class AsyncTxns {
 public:
  explicit AsyncTxns(GatewayClient& client) : client_(client), thread_([this] { Run(); }) {}
  ~AsyncTxns() {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.Signal();
    }
    thread_.join();
  }
  void Begin(const kv::TxnRequest& request, kv::TxnDone done) {
    MutexLock lock(mu_);
    waiting_.emplace_back(TxnQuestion(request), std::move(done));
    changed_.Signal();
  }

 private:
  static constexpr std::size_t kMostTogether = 64;

  void Run() {
    while (true) {
      std::vector<GatewayClient::Question> questions;
      std::vector<kv::TxnDone> dones;
      {
        MutexLock lock(mu_);
        while (waiting_.empty() && !stopping_) changed_.Wait(mu_);
        if (waiting_.empty()) return;
        for (; !waiting_.empty() && questions.size() < kMostTogether; waiting_.pop_front()) {
          questions.push_back(std::move(waiting_.front().first));
          dones.push_back(std::move(waiting_.front().second));
        }
      }
      const auto answers = client_.CallAll(questions);
      for (std::size_t i = 0; i < dones.size(); ++i) dones[i](ReadTxnOf(answers[i]));
    }
  }

  GatewayClient& client_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::pair<GatewayClient::Question, kv::TxnDone>> waiting_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class GatewayStore final : public kv::Store {
 public:
  GatewayStore(std::unique_ptr<kube::Transport> transport, std::string path, absl::Duration timeout)
      : client_(std::move(transport), std::move(path), timeout), async_(client_) {}

  absl::StatusOr<kv::GetResult> Get(std::string_view key, kv::Revision revision) override {
    TY_RETURN_IF_ERROR(kv::ValidateKey(key));
    TY_ASSIGN_OR_RETURN(kv::RangeResult range,
                        Range({.range = kv::KeyRange::Key(key), .revision = revision}));
    kv::GetResult result{.revision = range.revision};
    if (!range.kvs.empty()) result.kv = std::move(range.kvs.front());
    return result;
  }

  absl::StatusOr<kv::RangeResult> Range(const kv::RangeRequest& request) override {
    TY_RETURN_IF_ERROR(kv::Validate(request));
    TY_ASSIGN_OR_RETURN(
        const Document answer,
        client_.Call({.path = "/v3/kv/range", .body = PrintRange(request), .asked = request.revision}));
    return ReadRange(answer);
  }

  absl::StatusOr<kv::TxnResult> Txn(const kv::TxnRequest& request) override {
    TY_RETURN_IF_ERROR(kv::Validate(request));
    return ReadTxnOf(client_.Call(TxnQuestion(request)));
  }

  void TxnAsync(kv::TxnRequest request, kv::TxnDone done) override {
    if (const absl::Status valid = kv::Validate(request); !valid.ok()) return done(valid);
    async_.Begin(request, std::move(done));
  }

  absl::StatusOr<std::unique_ptr<kv::Watcher>> Watch(kv::WatchRequest request) override {
    TY_RETURN_IF_ERROR(kv::Validate(request));
    auto watch = std::make_shared<GatewayWatch>(client_, std::move(request));
    threads_.Start([watch] { watch->Run(); });
    auto watcher = std::make_unique<GatewayWatcher>(watch);
    TY_RETURN_IF_ERROR(watch->AwaitConfirmed());
    return watcher;
  }

  absl::StatusOr<kv::Lease> GrantLease(absl::Duration ttl) override {
    TY_RETURN_IF_ERROR(kv::ValidateTtl(ttl));
    const std::int64_t seconds = absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1)));
    TY_ASSIGN_OR_RETURN(
        const Document answer,
        client_.Call({.kind = Kind::kWrite, .path = "/v3/lease/grant", .body = PrintNumber("TTL", seconds)}));
    const kv::Lease lease{.id = NumberAt(answer, {"ID"}), .ttl = absl::Seconds(NumberAt(answer, {"TTL"}))};
    if (lease.id == kv::kNoLease)
      return absl::InternalError(StrCat(client_.where(), " granted a lease without an id"));
    return lease;
  }

  absl::StatusOr<absl::Duration> KeepAlive(kv::LeaseId lease) override {
    // It may be sent twice: it only makes the lease last longer.
    TY_ASSIGN_OR_RETURN(const Document answer,
                        client_.Call({.path = "/v3/lease/keepalive", .body = PrintNumber("ID", lease)}));
    if (Find(answer, {"result"}) == nullptr) {
      return absl::UnavailableError(StrCat(client_.where(), " did not keep lease ", lease,
                                           " alive: ", StringAt(answer, {"error", "message"}, "no result")));
    }
    const std::int64_t seconds = NumberAt(answer, {"result", "TTL"});
    if (seconds <= 0) return kv::LeaseNotFoundError(lease);
    return absl::Seconds(seconds);
  }

  absl::Status RevokeLease(kv::LeaseId lease) override {
    return client_.Call({.kind = Kind::kWrite, .path = "/v3/lease/revoke", .body = PrintNumber("ID", lease)})
        .status();
  }

  absl::Status Compact(kv::Revision revision) override {
    return client_
        .Call({.kind = Kind::kWrite,
               .path = "/v3/kv/compaction",
               .body = PrintNumber("revision", revision),
               .asked = revision})
        .status();
  }

  std::string Url() const override { return client_.url(); }

 private:
  GatewayClient client_;
  Threads threads_;  // of watches; these must have gone before the store
  AsyncTxns async_;
};

bool CanBeHeader(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::string ServiceProxyPath(std::string_view ns, std::string_view service, std::string_view port) {
  return StrCat("/api/v1/namespaces/", kube::PercentEncoded(ns), "/services/", kube::PercentEncoded(service),
                ":", kube::PercentEncoded(port), "/proxy");
}

absl::StatusOr<std::unique_ptr<kv::Store>> OpenGatewayStore(GatewayStoreOptions options) {
  if (!CanBeHeader(options.token))
    return absl::InvalidArgumentError("the store's token has characters that a header may not have");
  kube::ClusterConfig server = std::move(options.server);
  if (server.credentials == nullptr) server.credentials = kube::NewFixedCredentials({});
  if (!options.token.empty())
    server.credentials = std::make_shared<WithToken>(server.credentials, std::move(options.token));
  TY_ASSIGN_OR_RETURN(std::unique_ptr<kube::Transport> transport, kube::NewCurlTransport(std::move(server)));
  return NewGatewayStore(std::move(transport), std::move(options.path), options.timeout);
}

std::unique_ptr<kv::Store> NewGatewayStore(std::unique_ptr<kube::Transport> transport, std::string path,
                                           absl::Duration timeout) {
  return std::make_unique<GatewayStore>(std::move(transport), std::move(path), timeout);
}

}  // namespace trainyard::client
