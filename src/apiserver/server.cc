#include "apiserver/server.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "apiserver/crd.h"
#include "apiserver/direct_transport.h"
#include "apiserver/discovery.h"
#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kSystemNamespaces[] = {"default", "kube-system", "kube-public", "kube-node-lease"};

bool IsNamespaces(const ResourceInfo& resource) {
  return !resource.custom && resource.plural == "namespaces";
}
bool IsSystemNamespace(std::string_view name) {
  return std::ranges::find(kSystemNamespaces, name) != std::end(kSystemNamespaces);
}

}  // namespace

ApiServer::ApiServer(ApiServerOptions options)
    : options_(std::move(options)),
      ids_(options_.seed ? IdSource(*options_.seed) : IdSource::Random()),
      resources_(ResourceTable::BuiltIn()) {}

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(ApiServerOptions options) {
  auto server = std::unique_ptr<ApiServer>(new ApiServer(std::move(options)));
  const ApiServerOptions& given = server->options_;
  if (given.threads) {
    server->retries_ = std::make_unique<Executor>();
    server->slow_ = std::make_unique<Executor>();
    server->large_ = std::make_unique<Executor>();
  }
  TY_ASSIGN_OR_RETURN(server->hub_,
                      WatchHub::Start({.store = given.store, .clock = given.clock, .thread = given.threads}));
  server->reader_ = std::make_unique<Reader>(*given.store, *server->hub_, *given.clock, server->slow_.get());
  server->writer_ = std::make_unique<Writer>(
      Writer::Options{.store = given.store,
                      .clock = given.clock,
                      .ids = &server->ids_,
                      .retries = server->retries_.get(),
                      .large = server->large_.get(),
                      .most_events = given.most_events,
                      .definitions_changed = [raw = server.get()] {
                        if (const absl::Status loaded = raw->LoadDefinitions(); !loaded.ok()) {
                          log::Error("cannot read the custom resource definitions", {{"error", loaded}});
                        }
                      }});
  TY_RETURN_IF_ERROR(server->LoadDefinitions());
  TY_RETURN_IF_ERROR(server->MakeSystemNamespaces());
  if (given.threads)
    server->compactor_ = std::make_unique<Compactor>(*given.store, *given.clock, given.history);
  return server;
}

ApiServer::~ApiServer() {
  compactor_.reset();
  slow_.reset();
  retries_.reset();
  large_.reset();
  hub_.reset();
}

std::shared_ptr<const ResourceTable> ApiServer::resources() const {
  MutexLock lock(mu_);
  return resources_;
}

absl::Status ApiServer::LoadDefinitions() {
  TY_ASSIGN_OR_RETURN(
      const kv::RangeResult stored,
      options_.store->Range({.range = kv::KeyRange::Prefix(
                                 StoreKey("apiextensions.k8s.io", "customresourcedefinitions", "", ""))}));
  std::vector<std::shared_ptr<const ResourceInfo>> custom;
  for (const kv::KeyValue& kv : stored.kvs) {
    TY_ASSIGN_OR_RETURN(
        const Document definition,
        DecodeStored("apiextensions.k8s.io/v1", "CustomResourceDefinition", kv.value, kv.mod_revision));
    auto resource = ResourceOf(definition);
    if (resource.ok()) {
      custom.push_back(*std::move(resource));
    } else {
      log::Error("a stored custom resource definition cannot be served",
                 {{"key", kv.key}, {"error", resource.status()}});
    }
  }
  MutexLock lock(mu_);
  resources_ = ResourceTable::BuiltIn()->WithCustom(std::move(custom));
  return absl::OkStatus();
}

absl::Status ApiServer::MakeSystemNamespaces() {
  DirectTransport transport(*this, "trainyard");
  std::vector<kube::Request> requests;
  for (const std::string_view name : kSystemNamespaces) {
    requests.push_back({.method = "POST",
                        .target = "/api/v1/namespaces",
                        .body = StrCat(R"({"metadata":{"name":")", name, R"("}})")});
  }
  for (const auto& response : transport.DoAll(std::move(requests))) {
    TY_RETURN_IF_ERROR(response);
    const absl::Status status = kube::ToStatus(*response);
    if (!status.ok() && !kube::IsAlreadyExists(status))
      return Annotate(status, "making the first namespaces");
  }
  return absl::OkStatus();
}

void ApiServer::Handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
  auto call = std::make_shared<Call>();
  call->in = std::move(request);
  call->responder = std::move(responder);
  auto proxied = ParseProxyTarget(call->in.request.target);
  if (!proxied.ok()) return call->Fail(proxied.status());
  if (*proxied) return Proxy(call, **std::move(proxied));
  auto target = ParseTarget(call->in.request.target);
  if (!target.ok()) return call->Fail(BadRequest(Message(target.status())));
  call->target = *std::move(target);
  const auto info = ParseResourceRequest(call->in.request.method, call->target);
  if (!info.ok()) return call->Fail(info.status());
  const std::shared_ptr<const ResourceTable> table = resources();
  if (!*info) {
    if (!HandleElsewhere(call, table)) call->Fail(NoSuchPath(call->target.path));
    return;
  }
  call->info = **info;
  if (options_.metrics != nullptr && call->info.group == kMetricsGroup) return Metrics(call);
  call->resource = table->Find(call->info.group, call->info.plural);
  if (call->resource != nullptr) call->version = call->resource->Version(call->info.version);
  const bool placed = call->version != nullptr && (call->resource->namespaced || call->info.ns.empty());
  if (!placed) return call->Fail(NoSuchPath(call->target.path));
  if (call->version->deprecated) {
    call->warnings.push_back(!call->version->deprecation_warning.empty()
                                 ? call->version->deprecation_warning
                                 : StrCat(call->ApiVersion(), " ", call->resource->kind, " is deprecated"));
  }
  auto format = Negotiate(call->in.request.accept, call->query());
  if (call->info.subresource == "log") format = OutputFormat{};  // text, whatever is asked for
  if (!format.ok()) return call->Fail(format.status());
  call->format = *std::move(format);
  Dispatch(call);
}

void ApiServer::Metrics(const CallPtr& call) {
  const RequestInfo& info = call->info;
  if (info.version != kMetricsVersion || info.plural != "pods" || !info.name.empty())
    return call->Fail(NoSuchPath(call->target.path));
  if (info.verb != Verb::kList) return call->Fail(MethodNotAllowed(call->in.request.method, info.plural));
  call->Send(200, PrintPodMetrics(options_.metrics->Measure(), info.ns, options_.clock->Now()));
}

void ApiServer::Dispatch(const CallPtr& call) {
  call->large = large_ != nullptr && call->in.request.body.size() > kLargeBytes;
  if (!call->large) return DispatchNow(call);
  large_->Post([this, call] { DispatchNow(call); });
}

void ApiServer::DispatchNow(const CallPtr& call) {
  const RequestInfo& info = call->info;
  if (const absl::Status wrong = CheckParameters(call->query()); !wrong.ok()) return call->Fail(wrong);
  const bool needs_namespace = call->resource->namespaced && info.ns.empty() && info.verb != Verb::kList &&
                               info.verb != Verb::kWatch && info.verb != Verb::kDeleteCollection;
  if (needs_namespace) {
    return call->Fail(
        BadRequest(StrCat("a namespace is needed to ", PrintVerb(info.verb), " ", call->resource->plural)));
  }
  if (!call->resource->readable) {
    if (info.verb != Verb::kCreate) return call->Fail(MethodNotAllowed(call->in.request.method, info.plural));
    return Review(call);
  }
  if (!info.subresource.empty() && info.subresource != "status") return Subresource(call);
  if (info.subresource == "status" && !call->version->has_status)
    return call->Fail(NoSuchPath(call->target.path));
  switch (info.verb) {
    case Verb::kGet:
      return reader_->Get(call);
    case Verb::kList:
      return reader_->List(call);
    case Verb::kWatch:
      return reader_->Watch(call);
    case Verb::kCreate:
      return writer_->Create(call);
    case Verb::kUpdate:
      return writer_->Update(call);
    case Verb::kPatch:
      return writer_->Patch(call);
    case Verb::kDelete:
      if (IsNamespaces(*call->resource) && IsSystemNamespace(info.name)) {
        return call->Fail(Forbidden(*call->resource, info.name, "this namespace may not be deleted"));
      }
      return writer_->Delete(call);
    case Verb::kDeleteCollection:
      // All of a cluster's objects at once is more than anybody means.
      if (IsNamespaces(*call->resource))
        return call->Fail(MethodNotAllowed(call->in.request.method, info.plural));
      return DeleteAll(call);
  }
}

bool ApiServer::HandleElsewhere(const CallPtr& call, const std::shared_ptr<const ResourceTable>& table) {
  const std::string& path = call->target.path;
  const bool reads = call->in.request.method == "GET" || call->in.request.method == "HEAD";
  if (!reads) return false;
  if (path == "/livez" || path == "/readyz" || path == "/healthz") {
    kube::Response response{.code = 200, .content_type = "text/plain; charset=utf-8", .body = "ok"};
    call->responder->Send(std::move(response));
    return true;
  }
  if (path == "/version") {
    call->Send(200, VersionInfo(options_.release));
    return true;
  }
  if (path.starts_with("/openapi/")) {
    SendOpenApi(call, table);
    return true;
  }
  auto discovered = Discover(*table, call->target.parts, options_.metrics != nullptr);
  if (!discovered) return false;
  call->Send(200, *std::move(discovered));
  return true;
}

}  // namespace trainyard::apiserver
