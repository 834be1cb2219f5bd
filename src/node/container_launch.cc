#include "node/container_launch.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

const VolumeSpec* FindVolume(const PodSpec& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.volumes, name, &VolumeSpec::name);
  return found == pod.volumes.end() ? nullptr : &*found;
}

std::string VolumeFolder(const VolumeSpec& volume, const std::string& volumes_folder) {
  if (const auto* host = std::get_if<HostPathSource>(&volume.sources[0])) return host->path;
  return StrCat(volumes_folder, "/", volume.name);
}

bool IsEmptyDir(const VolumeSpec& volume) {
  return std::holds_alternative<EmptyDirSource>(volume.sources[0]);
}

// A path below a volume, never beside it.
bool StaysInside(std::string_view path) {
  if (path.starts_with('/')) return false;
  const std::vector<std::string_view> parts = Split(path, '/');
  return std::ranges::count(parts, "..") == 0;
}

absl::StatusOr<std::string> SubPath(const VolumeMount& mount, const StringMap& env) {
  std::string path = mount.sub_path;
  if (mount.expand) {
    std::string missing;
    path = ExpandVariables(path, [&](std::string_view name) -> const std::string* {
      const auto found = env.find(name);
      if (found == env.end()) missing = name;
      return found == env.end() ? nullptr : &found->second;
    });
    if (!missing.empty()) {
      return absl::NotFoundError(
          StrCat("subPathExpr of volume mount ", mount.path, " needs variable ", missing));
    }
  }
  if (!StaysInside(path)) {
    return absl::InvalidArgumentError(
        StrCat("subPath '", path, "' of volume mount ", mount.path, " leaves its volume"));
  }
  return path;
}

absl::StatusOr<std::vector<LaunchMount>> PlanMounts(const LaunchInput& input, const StringMap& env) {
  std::vector<LaunchMount> mounts;
  for (const VolumeMount& mount : input.container.mounts) {
    const VolumeSpec* volume = FindVolume(input.pod, mount.volume);
    if (volume == nullptr) return absl::NotFoundError(StrCat("volume \"", mount.volume, "\" not found"));
    LaunchMount planned{.source = VolumeFolder(*volume, input.volumes_folder), .target = mount.path};
    // What comes from the API server is only read, whatever the mount says.
    const bool host = std::holds_alternative<HostPathSource>(volume->sources[0]);
    planned.read_only = mount.read_only || (!host && !IsEmptyDir(*volume));
    TY_ASSIGN_OR_RETURN(const std::string sub_path, SubPath(mount, env));
    if (!sub_path.empty()) {
      StrAppend(planned.source, "/", sub_path);
      planned.make_source = IsEmptyDir(*volume) || host;
    }
    mounts.push_back(std::move(planned));
  }
  std::ranges::stable_sort(mounts, {},
                           [](const LaunchMount& m) { return std::ranges::count(m.target, '/'); });
  return mounts;
}

void AddUser(const LaunchInput& input, Launch& launch) {
  const SecuritySpec& security = input.container.security;
  if (input.machine.uid != 0) return;
  if (security.user) {
    launch.uid = static_cast<uid_t>(*security.user);
    launch.gid = static_cast<gid_t>(security.group.value_or(0));
  } else if (security.group) {
    launch.gid = static_cast<gid_t>(*security.group);
  }
  for (const std::int64_t group : input.pod.supplemental_groups)
    launch.groups.push_back(static_cast<gid_t>(group));
  if (input.pod.fs_group) launch.groups.push_back(static_cast<gid_t>(*input.pod.fs_group));
  // A process that leaves root leaves root's groups too.
  if (launch.uid && launch.groups.empty()) launch.groups.push_back(*launch.gid);
}

std::optional<Problem> CheckUser(const LaunchInput& input) {
  const SecuritySpec& security = input.container.security;
  const std::int64_t user = security.user.value_or(input.machine.uid);
  const auto problem = [](std::string message) {
    return Problem{.reason = "CreateContainerConfigError", .message = std::move(message)};
  };
  if (security.non_root.value_or(false) && user == 0) {
    return problem(StrCat("container has runAsNonRoot and would run as root (container: ",
                          input.container.name, "): give runAsUser, or start the cluster as another user"));
  }
  if (input.machine.uid != 0 && user != static_cast<std::int64_t>(input.machine.uid)) {
    return problem(StrCat("runAsUser ", user, " of container ", input.container.name,
                          " needs root, and this cluster runs as user ", input.machine.uid,
                          ": start `trainyard up` as root, or leave runAsUser out"));
  }
  return std::nullopt;
}

StringMap WholeEnvironment(const LaunchInput& input, const StringMap& declared) {
  StringMap env = input.machine_env;
  if (!input.image.folder.empty()) {
    const auto path = env.find("PATH");
    env["PATH"] =
        StrCat(input.image.folder, ":", path == env.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second);
  }
  env["HOSTNAME"] = input.pod.Hostname();
  env["TRAINYARD_POD_IP"] = input.facts.pod_ip;
  if (input.pod.mount_token && !input.machine.has_namespaces()) {
    env["TRAINYARD_SERVICE_ACCOUNT"] = StrCat(input.volumes_folder, "/", kTokenVolume);
  }
  for (const auto& [name, value] : declared) env[name] = value;
  return env;
}

// What runs: the command, or the image's entry, with the arguments behind it.
std::vector<std::string> PlanArgs(const LaunchInput& input, const StringMap& declared) {
  std::vector<std::string> args = ExpandVariables(input.container.command, declared);
  if (args.empty()) {
    if (input.image.entry.empty()) return {};
    args.push_back(input.image.entry);
  }
  for (std::string& arg : ExpandVariables(input.container.args, declared)) args.push_back(std::move(arg));
  return args;
}

std::string NothingToRun(const LaunchInput& input) {
  if (input.image.folder.empty()) {
    return StrCat("no command for container ", input.container.name,
                  ": there is no container engine here, image ", input.container.image,
                  " is not run; say what to run with `command:`, or give a folder as image");
  }
  return StrCat("no command for container ", input.container.name,
                ": say what to run with `command:`, or put an ", "executable file named entrypoint into ",
                input.image.folder);
}

bool IsUnsupported(const std::optional<Action>& action) {
  if (!action) return false;
  const auto* http = std::get_if<HttpAction>(&*action);
  return std::holds_alternative<UnsupportedAction>(*action) || (http != nullptr && http->scheme == "HTTPS");
}

std::string RefuseProbes(const ContainerSpec& container) {
  const std::pair<std::string_view, const std::optional<ProbeSpec>*> probes[] = {
      {"startupProbe", &container.startup},
      {"livenessProbe", &container.liveness},
      {"readinessProbe", &container.readiness}};
  for (const auto& [name, probe] : probes) {
    if (*probe && IsUnsupported((*probe)->action)) {
      return StrCat(
          name, " of container ", container.name,
          ": gRPC and HTTPS probes are not supported here; use exec, httpGet with HTTP, or tcpSocket");
    }
  }
  for (const auto* hook : {&container.post_start, &container.pre_stop}) {
    if (IsUnsupported(*hook))
      return StrCat("a hook of container ", container.name, " is neither exec nor HTTP");
  }
  return "";
}

std::string RefuseMounts(const PodSpec& pod, const ContainerSpec& container, const Machine& machine) {
  if (machine.has_namespaces()) return "";
  for (const VolumeMount& mount : container.mounts) {
    const VolumeSpec* volume = FindVolume(pod, mount.volume);
    const auto* host = volume == nullptr ? nullptr : std::get_if<HostPathSource>(&volume->sources[0]);
    if (host != nullptr && host->path == mount.path && mount.sub_path.empty()) continue;
    if (pod.mount_token && mount.path == kServiceAccountFolder) continue;  // a variable says where it is
    return StrCat(
        "volume ", mount.volume, " cannot be seen at ", mount.path, " in container ", container.name,
        ": this machine permits no mount namespaces to this user; run `trainyard up` as root, or permit ",
        "user namespaces");
  }
  return "";
}

}  // namespace

std::variant<Launch, Problem, CannotStart> PlanLaunch(const LaunchInput& input) {
  if (!input.image.folder.empty() && !input.image.exists) {
    return Problem{.reason = "ErrImagePull",
                   .message = StrCat("image folder ", input.image.folder, " does not exist on this machine")};
  }
  if (auto problem = CheckUser(input)) return *std::move(problem);
  const auto declared = BuildEnvironment(input.pod, input.container, input.objects, input.facts);
  if (!declared.ok()) {
    return Problem{.reason = "CreateContainerConfigError",
                   .message = std::string(Message(declared.status()))};
  }
  Launch launch{.args = PlanArgs(input, *declared), .env = WholeEnvironment(input, *declared)};
  if (launch.args.empty()) return CannotStart{.message = NothingToRun(input)};
  if (input.machine.has_namespaces()) {
    auto mounts = PlanMounts(input, *declared);
    if (!mounts.ok()) {
      return Problem{.reason = "CreateContainerConfigError",
                     .message = std::string(Message(mounts.status()))};
    }
    launch.mounts = *std::move(mounts);
    if (!input.termination_file.empty()) {
      launch.mounts.push_back({.source = input.termination_file, .target = input.container.termination_path});
    }
  }
  launch.cwd = !input.container.working_dir.empty() ? input.container.working_dir
               : !input.image.folder.empty()        ? input.image.folder
                                                    : input.default_folder;
  launch.no_new_privileges = !input.container.security.allow_escalation.value_or(true);
  AddUser(input, launch);
  return launch;
}

std::string FindRefusal(const PodSpec& pod, const Machine& machine) {
  for (const VolumeSpec& volume : pod.volumes) {
    for (const VolumeSpec::Source& source : volume.sources) {
      if (const auto* unsupported = std::get_if<UnsupportedSource>(&source)) {
        return StrCat(
            "volume ", volume.name, " is of kind ", unsupported->kind,
            ": only emptyDir, hostPath, configMap, secret, downwardAPI and projected are supported here");
      }
    }
  }
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const ContainerSpec& container : *list) {
      if (std::string why = RefuseProbes(container); !why.empty()) return why;
      if (std::string why = RefuseMounts(pod, container, machine); !why.empty()) return why;
    }
  }
  return "";
}

StringMap PickMachineEnv(const char* const* environment) {
  constexpr std::array<std::string_view, 14> kNames = {
      "PATH",         "HOME",       "USER",      "LOGNAME",         "SHELL",
      "LANG",         "TZ",         "TMPDIR",    "LD_LIBRARY_PATH", "VIRTUAL_ENV",
      "CONDA_PREFIX", "PYTHONPATH", "CUDA_HOME", "XDG_RUNTIME_DIR"};
  StringMap picked;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    if (std::ranges::find(kNames, name) != kNames.end() || name.starts_with("LC_")) {
      picked.emplace(name, entry.substr(equals + 1));
    }
  }
  return picked;
}

}  // namespace trainyard::node
