#include "controllers/controllers.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "controllers/definition_ending.h"
#include "controllers/endpoints_controller.h"
#include "controllers/garbage_collector.h"
#include "controllers/namespace_basics.h"
#include "controllers/namespace_ending.h"
#include "controllers/node_lifecycle.h"
#include "controllers/proxy_feed.h"
#include "controllers/service_proxy.h"
#include "controllers/watches.h"
#include "kube/api.h"
#include "kube/event_recorder.h"

namespace trainyard::controllers {

using controllers::Note;
using controllers::Tell;

namespace {

// So much is taken from the watches before something is done about it.
constexpr int kStepsAtOnce = 20'000;
constexpr std::array<absl::Duration, 3> kChecks = {absl::Seconds(1), absl::Milliseconds(250),
                                                   absl::Milliseconds(50)};

// Nothing is tried twice within a pass: it would hold up all others. The queues come back to it.
constexpr kube::RetryPolicy kOnce{.attempts = 1};

IdSource MakeIds(const std::optional<std::uint64_t>& seed) {
  return seed ? IdSource(*seed) : IdSource::Random();
}

}  // namespace

struct Controllers::Parts {
  Parts(kube::Transport& transport, Clock& clock, const ControllerOptions& options,
        const controllers::ServedResources& served)
      : ids(MakeIds(options.seed)),
        api(transport, clock, NewIds(), kOnce),
        recorder(api, clock, NewIds(), {.component = "trainyard-controllers"}),
        tell([this](const Note& note) { Record(note); }),
        watches(api, clock, NewIds()),
        basics(api, watches, clock, NewIds(), options.authority_pem),
        definitions(api, watches, clock, NewIds(), served),
        namespaces(api, watches, clock, NewIds(), served),
        garbage(api, watches, clock, NewIds(), tell),
        endpoints(api, watches, clock, NewIds()),
        nodes({.api = api, .watches = watches, .clock = clock, .tell = tell}, NewIds(), options.nodes),
        feed(watches, tell) {}

  IdSource NewIds() { return IdSource(ids.Next()); }

  void Record(const Note& note) {
    recorder.Record({.api_version = note.resource.ApiVersion(),
                     .kind = note.resource.kind,
                     .key = note.key,
                     .uid = note.uid},
                    note.warning ? kube::EventType::kWarning : kube::EventType::kNormal, note.reason,
                    note.message);
  }

  std::array<controllers::Loop*, 6> Loops() {
    return {&basics.loop(),  &definitions.loop(), &namespaces.loop(),
            &garbage.loop(), &endpoints.loop(),   &nodes.loop()};
  }

  IdSource ids;
  kube::Api api;
  kube::EventRecorder recorder;
  const Tell tell;
  controllers::Watches watches;
  controllers::NamespaceBasics basics;
  controllers::DefinitionEnding definitions;
  controllers::NamespaceEnding namespaces;
  controllers::GarbageCollector garbage;
  controllers::EndpointsController endpoints;
  controllers::NodeLifecycle nodes;
  controllers::ProxyFeed feed;

  Mutex mu;
  std::vector<std::pair<kube::ObjectKey, std::string>> failures TY_GUARDED_BY(mu);  // of the proxy
  std::unique_ptr<controllers::ServiceProxy> proxy;
};

Controllers::Controllers(kube::Transport& transport, Clock& clock, ControllerOptions options,
                         std::function<std::shared_ptr<const apiserver::ResourceTable>()> served)
    : clock_(clock),
      options_(std::move(options)),
      served_(std::move(served)),
      parts_(std::make_unique<Parts>(transport, clock, options_, served_)) {
  parts_->watches.AddHandler(
      [this](const controllers::Watch& watch, const kube::ObjectMeta*, const kube::ObjectMeta*) {
        if (watch.resource() != kube::Resource::CustomResourceDefinitions()) return;
        checks_left_ = static_cast<int>(kChecks.size());
        next_check_ = clock_.Steady();
      });
}

Controllers::~Controllers() { Stop(); }

absl::Status Controllers::Start() {
  TY_CHECK(!thread_.joinable(), "the controllers start once");
  TY_CHECK(options_.wake != nullptr, "the thread must be woken when a watch has something to tell");
  if (options_.proxy) {
    controllers::ServiceProxy::Options proxy;
    proxy.on_failure = [this](const kube::ObjectKey& service, std::string_view message) {
      {
        MutexLock lock(parts_->mu);
        parts_->failures.emplace_back(service, message);
      }
      options_.wake->Notify();
    };
    auto started = controllers::ServiceProxy::Start(std::move(proxy));
    if (!started.ok()) return Annotate(started.status(), "starting the service proxy");
    parts_->proxy = *std::move(started);
    parts_->feed.Connect(*parts_->proxy);
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Controllers::Stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    options_.wake->Notify();
    thread_.join();
  }
  parts_->proxy.reset();
}

void Controllers::Run() {
  while (!stopping_) {
    const SteadyTime next = Step();
    if (!stopping_) options_.wake->WaitUntil(next);
  }
}

SteadyTime Controllers::Step() {
  Parts& parts = *parts_;
  const SteadyTime now = clock_.Steady();
  parts.nodes.BeginPass();
  FollowResources(now);
  parts.watches.Pump(kStepsAtOnce);
  TellFailures();
  bool worked = false;
  for (controllers::Loop* loop : parts.Loops()) worked |= loop->Run();
  parts.recorder.Flush();

  // What was written is seen before anything else is decided.
  SteadyTime next = worked ? now : parts.watches.NextTime();
  for (controllers::Loop* loop : parts.Loops()) next = std::min(next, loop->NextTime());
  return std::max(std::min({next, next_check_, parts.nodes.NextPass()}), now);
}

void Controllers::FollowResources(SteadyTime now) {
  if (now >= next_check_) {
    next_check_ =
        checks_left_ > 0 ? now + kChecks[static_cast<std::size_t>(--checks_left_)] : SteadyTime::Never();
  }
  std::shared_ptr<const apiserver::ResourceTable> table = served_();
  if (table == followed_) return;
  followed_ = std::move(table);
  if (parts_->watches.Follow(*followed_)) parts_->garbage.ResourcesChanged();
}

void Controllers::TellFailures() {
  std::vector<std::pair<kube::ObjectKey, std::string>> failures;
  {
    MutexLock lock(parts_->mu);
    failures.swap(parts_->failures);
  }
  for (const auto& [key, message] : failures) {
    const auto service = parts_->watches.services().cache().Get(key);
    log::Warn("a service's port is not served", {{"service", key.Str()}, {"error", message}});
    if (service == nullptr) continue;
    parts_->tell({.resource = kube::Resource::Services(),
                  .key = key,
                  .uid = service->meta.uid,
                  .warning = true,
                  .reason = "PortNotServed",
                  .message = message});
  }
}

}  // namespace trainyard::controllers
