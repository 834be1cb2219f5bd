// Where graphs are, as the store tells: kept up to date in the background.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

// All calls from any thread. A store that cannot be reached changes nothing: what was known stays known.
class Registry {
 public:
  struct Listener {
    // A graph has come, has come again, or (no pod) its lease has ended. On a thread of the registry's.
    std::function<void(const std::string& graph, const std::optional<GraphPod>& pod)> on_pod;
    std::function<void(const JobMeta& meta)> on_meta;
    // The job was deleted.
    std::function<void()> on_deleted;
    // The key of the job's client is not there, or not any more.
    std::function<void()> on_client_gone;
  };
  Registry(kv::Store& store, JobKeys keys, Listener listener);
  ~Registry();

  // Once, when whoever listens is ready to. Returns when it is known which graphs there are. Unavailable: the
  // store does not tell.
  absl::Status Start();

  std::optional<GraphPod> Find(std::string_view graph) const;
  std::map<std::string, GraphPod, std::less<>> All() const;
  // Waits until the graph is somewhere, in an incarnation later than `after`, or the time is over.
  std::optional<GraphPod> WaitFor(std::string_view graph, std::int64_t after, absl::Duration timeout) const;
  // Ends every wait, and returns when nobody is told of anything any more. Not from a listener.
  void Stop();

 private:
  // What happens to a range of keys, until the end.
  struct Ears {
    std::function<void(const kv::KeyValue& kv)> on_put;
    std::function<void(const std::string& key)> on_gone;
    // All that the range has: what is not among it is gone.
    std::function<void(const std::vector<kv::KeyValue>& kvs)> on_list;
  };
  void Follow(const kv::KeyRange& range, const Ears& ears);
  void FollowPods();
  void FollowMeta();
  void FollowClient();
  void Put(const kv::KeyValue& kv);
  void Set(const std::string& graph, const std::optional<GraphPod>& pod);

  kv::Store& store_;
  const JobKeys keys_;
  const Listener listener_;
  mutable Mutex mu_;
  mutable CondVar changed_;
  std::map<std::string, GraphPod, std::less<>> pods_ TY_GUARDED_BY(mu_);
  bool listed_ TY_GUARDED_BY(mu_) = false;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::ps
