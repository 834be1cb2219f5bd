#include "ps/registry.h"

#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "kv/follower.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);  // how long a thread sleeps in the store before it
                                                           // looks whether to stop

constexpr absl::Duration kPatience = absl::Seconds(30);  // with a store that does not answer

}  // namespace

Registry::Registry(kv::Store& store, JobKeys keys, Listener listener)
    : store_(store), keys_(std::move(keys)), listener_(std::move(listener)) {}

Registry::~Registry() { Stop(); }

absl::Status Registry::Start() {
  threads_.emplace_back([this] { FollowPods(); });
  if (listener_.on_meta || listener_.on_deleted) threads_.emplace_back([this] { FollowMeta(); });
  if (listener_.on_client_gone) threads_.emplace_back([this] { FollowClient(); });
  const SteadyTime until = Clock::System().Steady() + kPatience;
  const MutexLock lock(mu_);
  while (!listed_) {
    if (!changed_.WaitUntil(mu_, until))
      return absl::UnavailableError(
          StrCat("the store ", store_.Url(), " does not say where the graphs of job ", keys_.job, " are"));
  }
  return absl::OkStatus();
}

void Registry::Stop() {
  stopping_ = true;
  {
    const MutexLock lock(mu_);
    changed_.SignalAll();
  }
  for (std::thread& thread : std::exchange(threads_, {})) thread.join();
}

std::optional<GraphPod> Registry::Find(std::string_view graph) const {
  const MutexLock lock(mu_);
  const auto found = pods_.find(graph);
  return found == pods_.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, GraphPod, std::less<>> Registry::All() const {
  const MutexLock lock(mu_);
  return pods_;
}

std::optional<GraphPod> Registry::WaitFor(std::string_view graph, std::int64_t after,
                                          absl::Duration timeout) const {
  const SteadyTime until = Clock::System().Steady() + timeout;
  const MutexLock lock(mu_);
  for (;;) {
    const auto found = pods_.find(graph);
    if (found != pods_.end() && found->second.incarnation > after) return found->second;
    if (stopping_ || !changed_.WaitUntil(mu_, until)) return std::nullopt;
  }
}

void Registry::Set(const std::string& graph, const std::optional<GraphPod>& pod) {
  {
    const MutexLock lock(mu_);
    if (pod) {
      pods_[graph] = *pod;
    } else {
      pods_.erase(graph);
    }
    changed_.SignalAll();
  }
  if (listener_.on_pod) listener_.on_pod(graph, pod);
}

void Registry::Put(const kv::KeyValue& kv) {
  const absl::StatusOr<GraphPod> pod = DecodePod(kv.value);
  if (!pod.ok())
    return log::Warn("an entry of graph_pod cannot be read", {{"key", kv.key}, {"error", pod.status()}});
  Set(kv.key.substr(keys_.Pod("").size()), *pod);
}

void Registry::Follow(const kv::KeyRange& range, const Ears& ears) {
  kv::Follower follower(store_, range);
  while (!stopping_) {
    absl::StatusOr<kv::Follower::Update> update = follower.Next(kLook);
    if (!update.ok()) {
      if (!absl::IsDeadlineExceeded(update.status()))
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    if (const auto* snapshot = std::get_if<kv::Snapshot>(&*update)) {
      ears.on_list(snapshot->kvs);
      continue;
    }
    for (const kv::WatchEvent& event : std::get<kv::WatchBatch>(*update).events) {
      if (event.type == kv::WatchEvent::Type::kPut) {
        ears.on_put(event.kv);
      } else {
        ears.on_gone(event.kv.key);
      }
    }
  }
}

void Registry::FollowPods() {
  const std::string prefix = keys_.Pod("");
  Follow(kv::KeyRange::Prefix(prefix),
         {.on_put = [this](const kv::KeyValue& kv) { Put(kv); },
          .on_gone = [&](const std::string& key) { Set(key.substr(prefix.size()), std::nullopt); },
          .on_list =
              [&](const std::vector<kv::KeyValue>& kvs) {
                std::set<std::string, std::less<>> listed;
                for (const kv::KeyValue& kv : kvs) listed.insert(kv.key.substr(prefix.size()));
                for (const auto& [graph, unused] : All()) {
                  if (!listed.contains(graph)) Set(graph, std::nullopt);
                }
                for (const kv::KeyValue& kv : kvs) Put(kv);
                const MutexLock lock(mu_);
                listed_ = true;
                changed_.SignalAll();
              }});
}

void Registry::FollowMeta() {
  const auto put = [this](const kv::KeyValue& kv) {
    const absl::StatusOr<JobMeta> meta = DecodeMeta(kv.value);
    if (!meta.ok())
      return log::Warn("the job's meta cannot be read", {{"key", kv.key}, {"error", meta.status()}});
    if (listener_.on_meta) listener_.on_meta(*meta);
  };
  const auto gone = [this] {
    if (listener_.on_deleted) listener_.on_deleted();
  };
  Follow(kv::KeyRange::Key(keys_.Meta()), {.on_put = put,
                                           .on_gone = [&](const std::string&) { gone(); },
                                           .on_list =
                                               [&](const std::vector<kv::KeyValue>& kvs) {
                                                 if (kvs.empty()) return gone();
                                                 for (const kv::KeyValue& kv : kvs) put(kv);
                                               }});
}

void Registry::FollowClient() {
  Follow(kv::KeyRange::Key(keys_.Client()),
         {.on_put = [](const kv::KeyValue&) {},
          .on_gone = [this](const std::string&) { listener_.on_client_gone(); },
          .on_list =
              [this](const std::vector<kv::KeyValue>& kvs) {
                if (kvs.empty()) listener_.on_client_gone();
              }});
}

}  // namespace trainyard::ps
