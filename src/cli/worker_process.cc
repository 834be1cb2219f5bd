#include "cli/worker_process.h"

#include <unistd.h>

#include <cstdlib>
#include <future>
#include <utility>

#include "base/access.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/ending_signals.h"

namespace trainyard::cli {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::string> JobToken(const std::string& file) {
  return FindToken(file, "TRAINYARD_JOB_TOKEN");
}

std::string PodAddress(int port) {
  const std::string ip = Variable("TRAINYARD_POD_IP");
  const bool six = ip.find(':') != std::string::npos;
  return StrCat(six ? "[" : "", ip.empty() ? "127.0.0.1" : ip, six ? "]" : "", ":", port);
}

std::string HostName() {
  char host[256] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "unknown";
}

absl::Status SignalStopper::Run(
    const std::function<absl::Status(const std::function<void(Stop)>& on_running)>& work) {
  const EndingSignals signals;  // before the first thread
  std::future<absl::Status> running =
      std::async(std::launch::async, [&] { return work([this](Stop stop) { Set(std::move(stop)); }); });
  while (running.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (signals.AwaitFor(absl::Milliseconds(20))) Ask();
  }
  return running.get();
}

void SignalStopper::Set(Stop stop) {
  const MutexLock lock(mu_);
  stop_ = std::move(stop);
  if (asked_) stop_();
}

void SignalStopper::Ask() {
  const MutexLock lock(mu_);
  asked_ = true;
  changed_.SignalAll();
  if (stop_) stop_();
}

bool SignalStopper::AwaitFor(absl::Duration time) {
  const SteadyTime deadline = Clock::System().Steady() + time;
  const MutexLock lock(mu_);
  while (!asked_ && changed_.WaitUntil(mu_, deadline)) {
  }
  return asked_;
}

}  // namespace trainyard::cli
