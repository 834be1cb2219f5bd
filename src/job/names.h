// What the objects of a job are called.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::job {

// "<job>-<role>-<index>-<suffix>": of the pod and of its service. The suffix comes from the job's uid, so
// that a job that is deleted and made again under its name never meets its predecessor's pods, while the
// names of a job stay valid for as long as it lives.
std::string PodName(std::string_view job, std::string_view uid, std::string_view role, int index);
// The longest of the names that a role of so many replicas has.
std::size_t LongestPodName(std::string_view job, std::string_view role, int replicas);

// "worker-1": what messages call it.
std::string ShortName(std::string_view role, int index);

}  // namespace trainyard::job
