#include "ps/registry.h"

#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "kv/follower.h"

namespace trainyard::ps {
namespace {

constexpr absl::Duration kLook =
    absl::Milliseconds(200);  // how long a thread sleeps in the store before it looks whether to stop

}  // namespace

Registry::Registry(kv::Store& store, JobKeys keys, Listener listener)
    : store_(store),
      keys_(std::move(keys)),
      listener_(std::move(listener)),
      pods_thread_([this] { FollowPods(); }),
      meta_thread_([this] { FollowMeta(); }) {}

Registry::~Registry() {
  Stop();
  pods_thread_.join();
  meta_thread_.join();
}

void Registry::Stop() {
  stopping_ = true;
  const MutexLock lock(mu_);
  changed_.SignalAll();
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

void Registry::FollowPods() {
  const std::string prefix = keys_.Pod("");
  kv::Follower follower(store_, kv::KeyRange::Prefix(prefix));
  while (!stopping_) {
    absl::StatusOr<kv::Follower::Update> update = follower.Next(kLook);
    if (!update.ok()) {
      if (!absl::IsDeadlineExceeded(update.status()))
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    const auto put = [&](const kv::KeyValue& kv) {
      const absl::StatusOr<GraphPod> pod = DecodePod(kv.value);
      if (!pod.ok())
        return log::Warn("an entry of graph_pod cannot be read", {{"key", kv.key}, {"error", pod.status()}});
      Set(kv.key.substr(prefix.size()), *pod);
    };
    if (const auto* snapshot = std::get_if<kv::Snapshot>(&*update)) {
      std::set<std::string, std::less<>> listed;
      for (const kv::KeyValue& kv : snapshot->kvs) listed.insert(kv.key.substr(prefix.size()));
      for (const auto& [graph, unused] : All()) {
        if (!listed.contains(graph)) Set(graph, std::nullopt);
      }
      for (const kv::KeyValue& kv : snapshot->kvs) put(kv);
      continue;
    }
    for (const kv::WatchEvent& event : std::get<kv::WatchBatch>(*update).events) {
      if (event.type == kv::WatchEvent::Type::kPut) {
        put(event.kv);
      } else {
        Set(event.kv.key.substr(prefix.size()), std::nullopt);
      }
    }
  }
}

void Registry::FollowMeta() {
  if (!listener_.on_meta) return;
  kv::Follower follower(store_, kv::KeyRange::Key(keys_.Meta()));
  const auto tell = [this](const kv::KeyValue& kv) {
    const absl::StatusOr<JobMeta> meta = DecodeMeta(kv.value);
    if (!meta.ok())
      return log::Warn("the job's meta cannot be read", {{"key", kv.key}, {"error", meta.status()}});
    listener_.on_meta(*meta);
  };
  while (!stopping_) {
    absl::StatusOr<kv::Follower::Update> update = follower.Next(kLook);
    if (!update.ok()) {
      if (!absl::IsDeadlineExceeded(update.status()))
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    if (const auto* snapshot = std::get_if<kv::Snapshot>(&*update)) {
      for (const kv::KeyValue& kv : snapshot->kvs) tell(kv);
      continue;
    }
    for (const kv::WatchEvent& event : std::get<kv::WatchBatch>(*update).events) {
      if (event.type == kv::WatchEvent::Type::kPut) tell(event.kv);
    }
  }
}

}  // namespace trainyard::ps
