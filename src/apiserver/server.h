// The Kubernetes API over a kv::Store: what the embedded cluster, its controllers and every client talk to.
// It knows nothing of connections: http/ carries requests to it from other processes, DirectTransport
// from this one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apiserver/backend_proxy.h"
#include "apiserver/call.h"
#include "apiserver/compactor.h"
#include "apiserver/openapi_documents.h"
#include "apiserver/pod_metrics.h"
#include "apiserver/proxy_target.h"
#include "apiserver/reader.h"
#include "apiserver/resources.h"
#include "apiserver/watch_hub.h"
#include "apiserver/writer.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "http/responder.h"
#include "kv/store.h"

namespace trainyard::apiserver {

struct ApiServerOptions {
  kv::Store* store = nullptr;
  Clock* clock = &Clock::System();
  std::optional<std::uint64_t> seed;  // of ids and generated names; unset: the system's entropy
  PodLogs* logs = nullptr;            // null: there are none to be had
  PodMetrics* metrics = nullptr;      // null: what pods use is not known
  BackendProxy* proxy = nullptr;      // null: the proxy subresources are not served
  std::string release = "0";          // Trainyard's version, told at /version
  // Without threads everything happens in the calls, and what the store tells of is delivered by Pump(): for
  // simulation.
  bool threads = true;
  HistoryLimits history;  // how far back a watch can begin
  std::size_t most_events = Writer::Options().most_events;
};

class ApiServer {
 public:
  // Reads the custom resources that are defined, and makes the namespaces that are always there.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start(ApiServerOptions options);
  ~ApiServer();

  // From any thread; never blocks for long.
  void Handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder);
  // Delivers what has happened to watches. For a server without threads.
  void PumpIfNeeded() {
    if (!options_.threads) hub_->Pump();
  }

  std::shared_ptr<const ResourceTable> resources() const;

 private:
  explicit ApiServer(ApiServerOptions options);

  absl::Status LoadDefinitions();
  absl::Status MakeSystemNamespaces();
  void Dispatch(const CallPtr& call);
  void DispatchNow(const CallPtr& call);
  void Read(const CallPtr& call);
  void Write(const CallPtr& call);
  bool HandleElsewhere(const CallPtr& call, const std::shared_ptr<const ResourceTable>& table);
  void Subresource(const CallPtr& call);
  void Log(const CallPtr& call);
  void Proxy(const CallPtr& call, ProxyTarget target);
  void Review(const CallPtr& call);
  void Metrics(const CallPtr& call);
  void DeleteAll(const CallPtr& call);
  void SendOpenApi(const CallPtr& call, const std::shared_ptr<const ResourceTable>& table);
  const ApiServerOptions options_;
  IdSource ids_;

  mutable Mutex mu_;
  std::shared_ptr<const ResourceTable> resources_ TY_GUARDED_BY(mu_);

  OpenApiDocuments openapi_;
  std::atomic<std::size_t> proxied_ = 0;  // requests

  std::unique_ptr<Executor> retries_;
  std::unique_ptr<Executor> slow_;   // lists
  std::unique_ptr<Executor> large_;  // changes of large objects
  std::unique_ptr<WatchHub> hub_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Compactor> compactor_;
};

}  // namespace trainyard::apiserver
