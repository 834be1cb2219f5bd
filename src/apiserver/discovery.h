// What the server tells clients about itself: which groups, versions and resources it serves. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request_info.h"
#include "apiserver/resources.h"

namespace trainyard::apiserver {

// The version of Kubernetes whose API this is: 1.MINOR.
inline constexpr std::string_view kApiMinor = "30";

// The answer to a discovery path (/api, /api/v1, /apis, /apis/GROUP, /apis/GROUP/VERSION) as JSON text.
// Nothing: it is no discovery path, or nothing of that group and version is served.
// `metrics`: what pods use is served too.
std::optional<std::string> Discover(const ResourceTable& table, const std::vector<std::string>& parts,
                                    bool metrics = false);

// The answer to /version. `release` is Trainyard's own.
std::string VersionInfo(std::string_view release);

// The verbs that a resource answers to, as discovery spells them.
std::vector<std::string_view> VerbsOf(const ResourceInfo& resource);

}  // namespace trainyard::apiserver
