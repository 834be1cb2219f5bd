#include "cli/launch_common.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "base/access.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/worker_process.h"
#include "client/cluster.h"
#include "client/manifests.h"
#include "client/pod_parts.h"
#include "kube/error.h"
#include "kube/pod.h"

namespace trainyard::cli {
namespace {

constexpr std::string_view kName = "trainyard-launcher";  // of its job and its secret
constexpr std::string_view kLauncherGroup = "launcher";
constexpr int kDefaultLauncherPort = 7897;
constexpr absl::Duration kLauncherStartTimeout = absl::Seconds(30);
constexpr absl::Duration kKindTimeout = absl::Seconds(5);
constexpr absl::Duration kHealthTimeout = absl::Seconds(2);
constexpr absl::Duration kStartPollInterval = absl::Milliseconds(10);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(30);

absl::Status StatusOf(const http::Answer& answer) {
  const std::string error = http::ErrorOf(answer);
  switch (answer.code) {
    case 400:
      return absl::InvalidArgumentError(error);
    case 401:
      return absl::UnauthenticatedError(error);
    case 404:
      return absl::NotFoundError(error);
    case 409:
      return absl::AlreadyExistsError(error);
    default:
      return absl::UnavailableError(error);
  }
}

Document LauncherJob(std::string_view ns) {
  Object container{{"name", "aitj-launcher"},
                   {"image", "trainyard"},
                   {"command", client::UnderAgent("trainyard", {"trainyard", "launcher", "--log-level",
                                                                "info", "--namespace", ns})},
                   {"env", Array{client::FromField("TRAINYARD_POD_IP", "status.podIP"),
                                 client::FromSecret("TRAINYARD_LAUNCHER_TOKEN", kName)}}};
  // Two of them for a moment do no harm: what one stores, the other must have seen.
  return client::ServiceJob(
      ns, kName, kLauncherGroup,
      {{"automountServiceAccountToken", true}, {"containers", Array{std::move(container)}}},
      Object{{"trainyard.dev/fenced", "true"}});
}

// The launcher's Secret and its job, as far as they are missing.
absl::Status CreateLauncher(kube::Api& api, const kube::ObjectKey& key) {
  TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
  const SteadyTime deadline = Clock::System().Steady() + kKindTimeout;
  for (;; absl::SleepFor(kStartPollInterval)) {
    absl::Status failed;
    for (const auto& made :
         api.Do({kube::CreateOperation(kube::Resource::Secrets(), key.ns,
                                       PrintJson(client::TokenSecret(key.ns, kName, token))),
                 kube::CreateOperation(client::AITrainingJobs(), key.ns, PrintJson(LauncherJob(key.ns)))})) {
      if (!made.ok() && !kube::IsAlreadyExists(made.status())) failed = made.status();
    }
    // A cluster that has just been started may not have its kinds yet.
    if (!kube::IsNotFound(failed)) return failed;
    if (Clock::System().Steady() > deadline)
      return absl::FailedPreconditionError(
          "the cluster has no AITrainingJobs: start it without --no-operator, or `kubectl apply -k deploy/`");
  }
}

// The launcher's token. `start`: the launcher is started if it is not there.
absl::StatusOr<std::string> EnsureLauncher(kube::Api& api, bool start) {
  const kube::ObjectKey key{"default", std::string(kName)};
  if (start) TY_RETURN_IF_ERROR(CreateLauncher(api, key));
  const absl::StatusOr<std::string> secret = api.Get(kube::Resource::Secrets(), key);
  if (kube::IsNotFound(secret.status()))
    return absl::FailedPreconditionError("no launcher runs: `trainyard launch` starts one");
  TY_RETURN_IF_ERROR(secret);
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(*secret));
  return DecodeBase64(StringAt(document, {"data", client::kTokenKey}));
}

// The address of its pod, if that runs; else why not.
absl::StatusOr<std::string> FindAddress(kube::Api& api) {
  TY_ASSIGN_OR_RETURN(
      const kube::ListPage pods,
      api.List(kube::Resource::Pods(), "default", {.label_selector = StrCat("TrainingJobName=", kName)}));
  std::string why = StrCat("see `kubectl describe aitj ", kName, "`");
  for (const std::string& item : pods.items) {
    TY_ASSIGN_OR_RETURN(const kube::CompactPod pod, kube::ParsePod(item));
    if (!pod.unscheduled.empty()) why = std::string(pod.unscheduled.view());
    if (pod.IsFinished() || pod.IsBeingDeleted() || pod.pod_ip.empty()) continue;
    return StrCat("http://", pod.pod_ip, ":", kDefaultLauncherPort);
  }
  return absl::UnavailableError(StrCat("the launcher's pod does not start: ", why));
}

}  // namespace

http::Call LauncherClient::Call(std::string method, const std::string& path) const {
  return {.method = std::move(method), .url = url_ + path, .token = token_, .timeout = kAnswerTimeout};
}

absl::StatusOr<Document> LauncherClient::Ask(std::string method, const std::string& path, std::string body) {
  http::Call call = Call(std::move(method), path);
  call.body = std::move(body);
  absl::StatusOr<http::Answer> answer = std::move(calls_->DoAll({std::move(call)}).front());
  if (!answer.ok())
    return absl::UnavailableError(
        StrCat("the launcher does not answer: ", Message(answer.status()), "; is --master right?"));
  if (answer->code / 100 != 2) return StatusOf(*answer);
  return ParseJson(answer->body);
}

absl::Status TakeVariables(const std::vector<std::string>& texts, std::map<std::string, std::string>& env) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return UsageError(StrCat("--env must be NAME=VALUE, and is '", Escaped(text), "'"));
    env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return absl::OkStatus();
}

absl::Status TakeInt(std::string_view flag, const std::optional<std::int64_t>& given, int& bound) {
  if (!given) return absl::OkStatus();
  if (!std::in_range<int>(*given)) return UsageError(StrCat(flag, " is too large"));
  bound = static_cast<int>(*given);
  return absl::OkStatus();
}

bool TakeImageFolder(std::string& image) {
  std::error_code error;
  if (image.empty()) image = std::filesystem::current_path(error).string();
  if (!std::filesystem::is_directory(image, error)) return false;
  image = std::filesystem::absolute(image, error).string();
  return true;
}

void LauncherFlags::Declare(Flags& flags) {
  flags.Text(
      {.name = "--master",
       .value = "URL",
       .help =
           "Where the launcher is, as http://HOST:7897 (the embedded cluster's, which is started if need be)",
       .everywhere = false,
       .group = "Launcher"},
      master_);
  flags.Text({.name = "--master-token-file",
              .value = "FILE",
              .help = "The token of that launcher ($TRAINYARD_LAUNCHER_TOKEN)",
              .group = "Launcher"},
             token_file_);
  home_.Declare(flags);
}

absl::Status LauncherFlags::EnsureCluster(const local::Home& home, bool start) const {
  TY_ASSIGN_OR_RETURN(const auto running, local::FindRunning(home));
  if (running && !running->server.empty()) return absl::OkStatus();
  if (!start)
    return absl::FailedPreconditionError(
        StrCat("no cluster is running on ", home.root, ": trainyard up starts one"));
  std::cerr << "starting the embedded cluster on " << home.root << " (`trainyard down` ends it)" << std::endl;
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
    return absl::InternalError("where is this program?");
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn({.argv = {self, "up", "--detach", "--home", home.root},
                                                 .stdout_fd = STDERR_FILENO,
                                                 .stderr_fd = STDERR_FILENO}));
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, child.Wait());
  const auto* const exited = std::get_if<Exited>(&ended);
  if (exited == nullptr || exited->code != 0)
    return absl::FailedPreconditionError(
        StrCat("the embedded cluster could not be started: trainyard up ", PrintExit(ended)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LauncherClient>> LauncherFlags::ConnectTo(std::string url, std::string token,
                                                                         bool embedded) const {
  TY_ASSIGN_OR_RETURN(auto calls, http::Calls::Start());
  return std::make_unique<LauncherClient>(std::move(calls), std::move(url), std::move(token), embedded);
}

absl::StatusOr<std::unique_ptr<LauncherClient>> LauncherFlags::Connect(bool start) {
  if (!master_.empty()) {
    while (master_.ends_with('/')) master_.pop_back();
    if (!master_.starts_with("http://"))
      return UsageError(StrCat("--master must be http://HOST:PORT, and is '", Escaped(master_), "'"));
    TY_ASSIGN_OR_RETURN(std::string token, FindToken(token_file_, "TRAINYARD_LAUNCHER_TOKEN"));
    return ConnectTo(master_, std::move(token), false);
  }
  TY_ASSIGN_OR_RETURN(const local::Home home, home_.Open());
  TY_RETURN_IF_ERROR(EnsureCluster(home, start));
  TY_ASSIGN_OR_RETURN(ClusterClient cluster, ClusterClient::Connect(home));
  TY_ASSIGN_OR_RETURN(std::string token, EnsureLauncher(cluster.api(), start));
  const SteadyTime deadline = Clock::System().Steady() + kLauncherStartTimeout;
  for (;; absl::SleepFor(kStartPollInterval)) {
    absl::StatusOr<std::string> url = FindAddress(cluster.api());
    // It may have an address a moment before it listens, and another one when its node is lost.
    if (url.ok()) {
      TY_ASSIGN_OR_RETURN(auto client, ConnectTo(*std::move(url), token, true));
      http::Call healthy = client->Call("GET", "/healthz");
      healthy.timeout = kHealthTimeout;
      if (client->calls().DoAll({std::move(healthy)}).front().ok()) return client;
      url = absl::UnavailableError(
          StrCat("the launcher does not answer: see `kubectl logs ", kName, "-", kLauncherGroup, "-0`"));
    }
    if (!absl::IsUnavailable(url.status())) return url.status();
    if (Clock::System().Steady() > deadline)
      return absl::DeadlineExceededError(StrCat(Message(url.status())));
  }
}

}  // namespace trainyard::cli
