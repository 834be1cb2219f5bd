// What a run of a container is: program, environment, user, mounts. Pure: the pod, the objects that it refers
// to and the machine go in; what the shim is asked, or why it cannot be, comes out.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "node/environment.h"
#include "node/image.h"
#include "node/machine.h"
#include "node/pod_plan.h"

namespace trainyard::node {

struct LaunchInput {
  const PodSpec& pod;
  const ContainerSpec& container;
  const ClusterObjects& objects;
  PodFacts facts;
  const Machine& machine;
  ImageFacts image;
  const StringMap& machine_env;  // what every process gets from the machine: PATH, HOME, LANG, …
  std::string default_folder;    // where a container without a working directory runs
  std::string volumes_folder;    // of the pod: FOLDER/NAME is the volume NAME
  std::string termination_file;  // what is seen at the container's terminationMessagePath
};

struct LaunchMount {
  std::string source;
  std::string target;
  bool read_only = false;
  bool make_source = false;  // a subPath of a volume that the pod may write: made if it is not there
  bool operator==(const LaunchMount&) const = default;
};

struct Launch {
  std::vector<std::string> args;
  StringMap env;
  std::string cwd;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::vector<gid_t> groups;
  std::vector<LaunchMount> mounts;  // outer ones before those inside them
  bool no_new_privileges = false;
};

// There is nothing to start, and never will be: the run fails.
struct CannotStart {
  std::string message;
};

// Problem: not as things are; it is tried again when they change.
std::variant<Launch, Problem, CannotStart> PlanLaunch(const LaunchInput& input);

// Why this machine cannot run such a pod at all; empty: it can.
std::string FindRefusal(const PodSpec& pod, const Machine& machine);

// Of this process's variables those that a process of the machine expects to have.
StringMap PickMachineEnv(const char* const* environment);

}  // namespace trainyard::node
