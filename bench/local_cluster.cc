#include "bench/local_cluster.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "base/base64.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"

namespace trainyard::bench {
namespace {

constexpr absl::Duration kLocalClusterPatience = absl::Seconds(30);
constexpr std::size_t kMostOutputBytes = std::size_t{1} << 20;

absl::StatusOr<HttpsTarget> ReadTarget(const std::string& kubeconfig) {
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(kubeconfig, kMostOutputBytes));
  TY_ASSIGN_OR_RETURN(const auto documents, ParseYaml(text));
  const Array* clusters = documents.empty() ? nullptr : ArrayAt(documents[0], {"clusters"});
  const Array* users = documents.empty() ? nullptr : ArrayAt(documents[0], {"users"});
  if (clusters == nullptr || users == nullptr || clusters->empty() || users->empty()) {
    return absl::InvalidArgumentError(StrCat(kubeconfig, " names no cluster or no user"));
  }
  const std::string_view server = StringAt((*clusters)[0], {"cluster", "server"});
  HttpsTarget target{.token = std::string(StringAt((*users)[0], {"user", "token"}))};
  target.port = ParseNumber<std::uint16_t>(server.substr(server.rfind(':') + 1)).value_or(0);
  TY_ASSIGN_OR_RETURN(target.ca_pem,
                      DecodeBase64(StringAt((*clusters)[0], {"cluster", "certificate-authority-data"})));
  return target;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const std::string& trainyard,
                                                                  const std::string& home,
                                                                  const std::vector<std::string>& flags) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(trainyard, home));
  std::filesystem::create_directories(home);
  std::filesystem::permissions(home, std::filesystem::perms::owner_all);
  const std::string log = home + "/bench.log";
  std::vector<std::string> argv = {trainyard, "up", "--home", home};
  argv.insert(argv.end(), flags.begin(), flags.end());
  const SteadyTime begin = Clock::System().Steady();
  TY_ASSIGN_OR_RETURN(Child child,
                      Child::Spawn({.argv = std::move(argv), .stdout_path = log, .stderr_path = log}));
  cluster->process_.emplace(std::move(child));
  TY_RETURN_IF_ERROR(cluster->AwaitReady());
  cluster->start_time_ = Clock::System().Steady() - begin;
  return cluster;
}

// The kubeconfig is written when the server listens.
absl::Status LocalCluster::AwaitReady() {
  const SteadyTime end = Clock::System().Steady() + kLocalClusterPatience;
  while (Clock::System().Steady() < end) {
    if (process_->Wait(absl::Milliseconds(1)).ok()) {
      const auto log = ReadFile(home_ + "/bench.log", kMostOutputBytes);
      return absl::UnavailableError(StrCat("`trainyard up` has ended: ", log.ok() ? *log : ""));
    }
    if (!std::filesystem::exists(kubeconfig())) continue;
    auto target = ReadTarget(kubeconfig());
    if (!target.ok()) continue;
    auto client = HttpsLoad::Connect(*target, 1);
    if (!client.ok()) continue;
    const auto answer = (*client)->Ask(0, "GET", "/api/v1/namespaces/default");
    if (!answer.ok() || answer->code != 200) continue;
    target_ = *std::move(target);
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError("`trainyard up` is not ready");
}

LocalCluster::~LocalCluster() {
  auto down = Child::Spawn({.argv = {trainyard_, "down", "--home", home_, "--grace", "0s"}});
  if (down.ok()) (void)down->Wait(kLocalClusterPatience);
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(home_, ignored);
}

absl::StatusOr<double> LocalCluster::ResidentMiB() const { return bench::ResidentMiB(process_->pid()); }

absl::StatusOr<double> ResidentMiB(pid_t process) {
  std::ifstream status(StrCat("/proc/", process, "/status"));
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib / 1024;
  }
  return absl::NotFoundError(StrCat("process ", process, " has ended"));
}

double Quantile(std::vector<double> numbers, double q) {
  std::ranges::sort(numbers);
  return numbers[std::min(numbers.size() - 1,
                          static_cast<std::size_t>(q * static_cast<double>(numbers.size())))];
}

}  // namespace trainyard::bench
