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
  };
  Registry(kv::Store& store, JobKeys keys, Listener listener);
  ~Registry();

  std::optional<GraphPod> Find(std::string_view graph) const;
  std::map<std::string, GraphPod, std::less<>> All() const;
  // Waits until the graph is somewhere, in an incarnation later than `after`, or the time is over.
  std::optional<GraphPod> WaitFor(std::string_view graph, std::int64_t after, absl::Duration timeout) const;
  // Ends every wait.
  void Stop();

 private:
  void FollowPods();
  void FollowMeta();
  void Set(const std::string& graph, const std::optional<GraphPod>& pod);

  kv::Store& store_;
  const JobKeys keys_;
  const Listener listener_;
  mutable Mutex mu_;
  mutable CondVar changed_;
  std::map<std::string, GraphPod, std::less<>> pods_ TY_GUARDED_BY(mu_);
  std::atomic<bool> stopping_ = false;
  std::thread pods_thread_;
  std::thread meta_thread_;
};

}  // namespace trainyard::ps
