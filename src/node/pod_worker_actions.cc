// What a pod's worker does: sandboxes, containers, probes and hooks.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "node/pod_worker.h"

namespace trainyard::node {
namespace {

absl::Status MakeSources(const std::vector<LaunchMount>& mounts) {
  for (const LaunchMount& mount : mounts) {
    std::error_code code;
    if (!mount.make_source || std::filesystem::exists(mount.source, code)) continue;
    std::filesystem::create_directories(mount.source, code);
    if (code) return ErrnoStatus(code.value(), StrCat("cannot make ", mount.source));
  }
  return absl::OkStatus();
}

}  // namespace

// ---- the sandbox

absl::Status PodWorker::PrepareSandbox() {
  if (address_.empty()) return absl::ResourceExhaustedError("all addresses for pods are taken");
  TY_RETURN_IF_ERROR(MakePodFolder(folder_));
  TY_RETURN_IF_ERROR(SavePod(folder_, {.pod = pod_, .address = address_}));
  TY_RETURN_IF_ERROR(MakeVolumeFolders(spec_, folder_.Volumes()));
  TY_RETURN_IF_ERROR(RefreshVolumes());
  WriteHosts();
  const std::string& fqdn = spec_.Fqdn();
  const std::string hostname =
      spec_.hostname_is_fqdn && !fqdn.empty() && fqdn.size() < 64 ? fqdn : spec_.Hostname();
  return WriteShimConfig(folder_, {.machine = context_.machine,
                                   .hostname = spec_.host_network ? "" : hostname,
                                   .address = spec_.host_network ? "" : address_,
                                   .hosts = spec_.cluster_names});
}

absl::Status PodWorker::RefreshVolumes() {
  TY_ASSIGN_OR_RETURN(std::vector<VolumeContent> planned,
                      PlanVolumes(spec_, context_.objects, MakeFacts(), context_.options.token));
  for (VolumeContent& content : planned) {
    const auto known = volumes_.find(content.name);
    if (known != volumes_.end() && known->second == content) continue;
    TY_RETURN_IF_ERROR(WriteVolume(content, folder_.Volumes()));
    volumes_.insert_or_assign(content.name, std::move(content));
  }
  return absl::OkStatus();
}

void PodWorker::WriteHosts() {
  if (!spec_.cluster_names) return;
  std::string text = RenderHosts(spec_, address_, context_.names);
  if (text == hosts_) return;
  const absl::Status written = WriteInPlace(folder_.Hosts(), text);
  if (written.ok()) {
    hosts_ = std::move(text);
  } else {
    log::Warn("a pod's names are out of date",
              {{"pod", StrCat(spec_.ns, "/", spec_.name)}, {"error", written}});
  }
}

void PodWorker::Do(const StartSandbox&) {
  const auto fail = [this](const absl::Status& status) {
    NoteSandboxFailed(record_, std::string(Message(status)), Now());
    context_.plan_soon(*this);
  };
  if (const absl::Status prepared = PrepareSandbox(); !prepared.ok()) return fail(prepared);
  auto start =
      ShimStart::Begin(context_.loop, context_.shim, folder_, [this, fail](const absl::StatusOr<pid_t>& pid) {
        start_.reset();
        const absl::Status connected = pid.ok() ? Connect() : pid.status();
        if (!connected.ok()) return fail(connected);
        NoteSandboxReady(record_);
        context_.plan_soon(*this);
      });
  if (!start.ok()) return fail(start.status());
  start_ = *std::move(start);
}

absl::Status PodWorker::Connect() {
  TY_ASSIGN_OR_RETURN(client_,
                      ShimClient::Connect(context_.loop, folder_,
                                          {.event = [this](const StateEvent& event) { OnShimEvent(event); },
                                           .gone = [this] { OnShimGone(); }}));
  return absl::OkStatus();
}

void PodWorker::Adopt() {
  // Connected first: what happens from now on is told, what happened before is in the file.
  const bool alive = Connect().ok();
  const std::vector<StateEvent> events = ReadState(folder_);
  ReplayState(events, spec_, Now(), context_.options.back_off.reset, record_);
  if (alive) {
    record_.sandbox.state = SandboxState::kReady;
    WriteHosts();
  } else if (!events.empty()) {
    OnShimGone();
  }
  TakeOverStatus(record_, spec_, api_status_, Now());
  TakeOverEnd();
  for (const auto* list : {&spec_.init_containers, &spec_.containers}) {
    for (const ContainerSpec& container : *list) {
      ContainerRecord& known = *record_.Find(spec_, container.name);
      if (known.state != RunState::kEnded || !known.run.end->message.empty()) continue;
      known.run.end->message =
          ReadTerminationMessage(folder_, container, known.run.attempt, known.run.end->code != 0);
    }
  }
  context_.plan_soon(*this);
}

// What was running when the whole cluster was ended: a pod that somebody makes again has failed of that, and
// one that nobody does goes on by its restart policy.
void PodWorker::TakeOverEnd() {
  std::error_code error;
  if (!std::filesystem::exists(folder_.EndedMark(), error)) return;
  if (spec_.controlled) {
    record_.failure_reason = kEndedWithCluster;
    record_.failure_message = "the cluster was ended while the pod ran";
  } else {
    std::filesystem::remove(folder_.EndedMark(), error);
  }
}

void PodWorker::Do(const StopSandbox&) {
  if (client_ != nullptr) return client_->Shutdown();
  OnShimGone();
}

void PodWorker::KillShim() {
  if (client_ != nullptr) client_->Kill();
}

void PodWorker::OnShimGone() {
  client_.reset();
  std::vector<std::string> lost;
  for (const auto* list : {&spec_.init_containers, &spec_.containers}) {
    for (const ContainerSpec& container : *list) {
      const ContainerRecord& known = *record_.Find(spec_, container.name);
      if (known.active()) lost.push_back(RunId(container.name, known.run.attempt));
    }
  }
  if (!lost.empty()) {
    // So that whoever follows a log learns of its end.
    const absl::Status told = AppendLostRuns(folder_, lost, context_.clock.Now());
    if (!told.ok()) log::Warn("cannot note the end of runs", {{"error", told}});
  }
  NoteSandboxGone(record_, Now(), context_.options.back_off.reset);
  context_.plan_soon(*this);
}

// ---- containers

LaunchInput PodWorker::MakeLaunchInput(const ContainerSpec& container, int attempt) {
  return {.pod = spec_,
          .container = container,
          .objects = context_.objects,
          .facts = MakeFacts(),
          .machine = context_.machine,
          .image = LookAtImage(container.image, context_.options.work_folder),
          .machine_env = context_.options.machine_env,
          .default_folder = context_.options.work_folder,
          .volumes_folder = folder_.Volumes(),
          .termination_file = folder_.Termination(container.name, attempt)};
}

void PodWorker::FailRun(const std::string& container, int attempt, std::string why) {
  const PlanTime now = Now();
  NoteEnded(*record_.Find(spec_, container), attempt, EndOfFailedStart(std::move(why), now.wall, now.steady),
            context_.options.back_off.reset);
  context_.plan_soon(*this);
}

void PodWorker::Do(const StartContainer& action) {
  const ContainerSpec& container = *spec_.FindContainer(action.container);
  const std::string id = RunId(container.name, action.attempt);
  auto plan = PlanLaunch(MakeLaunchInput(container, action.attempt));
  if (auto* cannot = std::get_if<CannotStart>(&plan)) {
    return FailRun(action.container, action.attempt, std::move(cannot->message));
  }
  if (auto* problem = std::get_if<Problem>(&plan)) {
    return FailRun(action.container, action.attempt, std::move(problem->message));
  }
  Launch& launch = launches_[container.name];
  launch = std::get<Launch>(std::move(plan));
  absl::Status ready = PrepareRun(folder_, container.name, action.attempt);
  if (ready.ok()) ready = MakeSources(launch.mounts);
  if (!ready.ok() || client_ == nullptr) {
    return FailRun(action.container, action.attempt,
                   ready.ok() ? "the pod's shim is gone" : std::string(Message(ready)));
  }
  client_->Start(
      {.id = id,
       .launch = launch,
       .cgroups = context_.cgroups.Make(spec_.uid, id, FindLimits(container)),
       .log = folder_.Log(container.name, action.attempt),
       .log_bytes = context_.options.log_bytes,
       .log_files = context_.options.log_files},
      [this, action](std::string why) { FailRun(action.container, action.attempt, std::move(why)); });
}

void PodWorker::Do(const SignalContainer& action) {
  if (client_ != nullptr) client_->Signal(RunId(action.container, action.attempt), action.signal);
}

void PodWorker::OnShimEvent(const StateEvent& event) {
  const auto name = ParseRunId(event.id);
  const ContainerSpec* container = name ? spec_.FindContainer(name->container) : nullptr;
  if (container == nullptr) return;
  ContainerRecord& known = *record_.Find(spec_, container->name);
  if (event.kind == StateEvent::Kind::kStarted) {
    NoteStarted(known, name->attempt, event.at, Now());
  } else {
    RunEnd end = ToRunEnd(event, Now());
    end.seen = context_.clock.Steady();
    if (event.kind == StateEvent::Kind::kExited) {
      end.message = ReadTerminationMessage(folder_, *container, name->attempt, end.code != 0);
    }
    NoteEnded(known, name->attempt, std::move(end), context_.options.back_off.reset);
    context_.cgroups.Remove(spec_.uid, event.id);
  }
  context_.plan_soon(*this);
}

void PodWorker::Do(const FinishPod&) {
  finishing_ = true;
  context_.write_soon(*this);
}

// ---- probes and hooks

void PodWorker::RunAction(const Action& action, const std::string& container, int attempt,
                          absl::Duration timeout, std::function<void(ProbeOutcome)> done) {
  if (const auto* exec = std::get_if<ExecAction>(&action)) {
    if (client_ == nullptr) return;
    // A container that was adopted has not been launched by this agent.
    if (!launches_.contains(container)) {
      auto plan = PlanLaunch(MakeLaunchInput(*spec_.FindContainer(container), attempt));
      if (auto* launch = std::get_if<Launch>(&plan)) launches_[container] = std::move(*launch);
    }
    Launch launch = launches_[container];
    launch.args = ExpandVariables(exec->command, launch.env);
    return client_->Exec(RunId(container, attempt), launch, timeout,
                         [done = std::move(done)](ExecResult result) {
                           done({.ok = result.ok, .message = std::move(result.message)});
                         });
  }
  const ContainerSpec& spec = *spec_.FindContainer(container);
  NetworkProbe::Target target{.address = address_};
  if (const auto* http = std::get_if<HttpAction>(&action)) {
    if (!http->host.empty()) target.address = http->host;
    target.port = ResolvePort(http->port, spec);
    target.request = PrintHttpRequest(*http, target.address, target.port);
  } else if (const auto* tcp = std::get_if<TcpAction>(&action)) {
    if (!tcp->host.empty()) target.address = tcp->host;
    target.port = ResolvePort(tcp->port, spec);
  }
  const std::uint64_t number = next_action_++;
  network_[number] =
      NetworkProbe::Begin(context_.loop, std::move(target), std::min(timeout, absl::Minutes(10)),
                          [this, number, done = std::move(done)](ProbeOutcome outcome) {
                            const auto probe = network_.extract(number);
                            done(std::move(outcome));
                          });
}

void PodWorker::Do(const RunProbe& action) {
  const ProbeSpec& spec = *ProbeOf(*spec_.FindContainer(action.container), action.kind);
  RunAction(spec.action, action.container, action.attempt, spec.timeout,
            [this, action](const ProbeOutcome& outcome) { OnProbe(action, outcome); });
}

void PodWorker::OnProbe(const RunProbe& probe, const ProbeOutcome& outcome) {
  ContainerRecord& known = *record_.Find(spec_, probe.container);
  if (known.run.attempt != probe.attempt || known.state != RunState::kRunning) return;
  const ProbeSpec& spec = *ProbeOf(*spec_.FindContainer(probe.container), probe.kind);
  NoteProbe(known, probe.kind, spec, outcome.ok);
  // That a server is not ready the moment it starts is no news.
  const bool starting =
      !known.probe(probe.kind).ever_ok && context_.clock.Steady() - known.run.started < spec.period;
  if (!outcome.ok && !(probe.kind == ProbeKind::kReadiness && starting)) {
    Tell({.warning = true,
          .reason = "Unhealthy",
          .message = StrCat(PrintProbeKind(probe.kind), " probe failed: ", outcome.message),
          .container = probe.container});
  }
  context_.plan_soon(*this);
}

void PodWorker::Do(const RunHook& action) {
  const ContainerSpec& spec = *spec_.FindContainer(action.container);
  const Action& hook = action.kind == HookKind::kPostStart ? *spec.post_start : *spec.pre_stop;
  RunAction(hook, action.container, action.attempt, action.timeout,
            [this, action](const ProbeOutcome& outcome) { OnHook(action, outcome); });
}

void PodWorker::OnHook(const RunHook& hook, const ProbeOutcome& outcome) {
  ContainerRecord& known = *record_.Find(spec_, hook.container);
  if (known.run.attempt != hook.attempt) return;
  NoteHook(known, hook.kind, outcome.ok);
  if (!outcome.ok) {
    const bool start = hook.kind == HookKind::kPostStart;
    Tell({.warning = true,
          .reason = start ? "FailedPostStartHook" : "FailedPreStopHook",
          .message = StrCat(start ? "PostStartHook" : "PreStopHook", " failed: ", outcome.message),
          .container = hook.container});
  }
  context_.plan_soon(*this);
}

}  // namespace trainyard::node
