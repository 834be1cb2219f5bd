// The controllers of the embedded cluster: what makes objects do something. One thread for all of them, and
// one for the service proxy.
//
//   garbage    what belongs to nobody is deleted            namespaces   end with all that is in them
//   nodes      the lost are marked, their pods leave        definitions  end after their objects
//   endpoints  follow services and pods                     basics       of every namespace
//   proxy      forwards connections to services
//
//   watches ──▶ caches and queues of keys ──▶ passes: look, decide, write
//
// Everything happens in Step(), which waits for nothing but the API server's answers: the thread calls it
// when something has happened or a time has come, and a simulation calls it instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apiserver/resources.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "controllers/node_health.h"
#include "kube/http.h"

namespace trainyard::controllers {

struct ControllerOptions {
  std::string authority_pem;  // of the cluster; every namespace gets it. Empty: there is none
  controllers::NodeTimes nodes;
  bool proxy = true;                  // with Start(): services are listened on
  std::optional<std::uint64_t> seed;  // of back-offs and event names; unset: the system's entropy
  // Notified by the transport when a watch has something to tell (DirectTransport does so). Start() needs it.
  std::shared_ptr<Alarm> wake;
};

class Controllers {
 public:
  // The transport speaks with the API server of this process, whose resources `served` yields. Both, and the
  // clock, must outlive it.
  Controllers(kube::Transport& transport, Clock& clock, ControllerOptions options,
              std::function<std::shared_ptr<const apiserver::ResourceTable>()> served);
  ~Controllers();  // Stop()
  Controllers(const Controllers&) = delete;
  Controllers& operator=(const Controllers&) = delete;

  // Starts the threads; once. ResourceExhausted: the system gives none, or no descriptors.
  absl::Status Start();
  // Ends them, as soon as a request that is under way is over. May be called twice.
  void Stop();

  // Does what is due now, in this thread, and returns when it is to be called again at the latest: time
  // passed beyond that counts as our own sleep, and no node is blamed for it. Call it also after every change
  // that is to be seen at once. Not together with Start().
  SteadyTime Step();

 private:
  struct Parts;

  void Run();
  void FollowResources(SteadyTime now);
  void TellFailures();

  Clock& clock_;
  const ControllerOptions options_;
  const std::function<std::shared_ptr<const apiserver::ResourceTable>()> served_;
  const std::unique_ptr<Parts> parts_;
  std::shared_ptr<const apiserver::ResourceTable> followed_;
  // A definition is seen before the table has it: so often it is looked at again.
  int checks_left_ = 0;
  SteadyTime next_check_ = SteadyTime::Never();

  std::thread thread_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace trainyard::controllers
