#include "apiserver/discovery.h"

#include <algorithm>
#include <map>
#include <set>

#include "apiserver/pod_metrics.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// The Kubernetes release whose API this is, as far as it goes; clients warn when theirs is far from it.

Array TextArray(const auto& texts) {
  Array array;
  for (const auto& text : texts) array.emplace_back(boost::json::string_view(text.data(), text.size()));
  return array;
}

// The versions of a group, the preferred first: what is stable before what is beta before what is alpha,
// newer first.
struct VersionOrder {
  // v1 > v1beta2 > v1beta1 > v1alpha1 > foo
  static std::tuple<int, int, int> Rank(std::string_view version) {
    if (!version.starts_with('v')) return {0, 0, 0};
    std::size_t end = 1;
    while (end < version.size() && version[end] >= '0' && version[end] <= '9') ++end;
    const int major = ParseNumber<int>(version.substr(1, end - 1)).value_or(0);
    const std::string_view rest = version.substr(end);
    if (rest.empty()) return {3, major, 0};
    const auto stage = [&](std::string_view word) {
      return ParseNumber<int>(rest.substr(word.size())).value_or(0);
    };
    if (rest.starts_with("beta")) return {2, major, stage("beta")};
    if (rest.starts_with("alpha")) return {1, major, stage("alpha")};
    return {0, 0, 0};
  }
  bool operator()(const std::string& a, const std::string& b) const {
    const auto rank_a = Rank(a);
    const auto rank_b = Rank(b);
    return rank_a != rank_b ? rank_a > rank_b : a < b;
  }
};
using Versions = std::set<std::string, VersionOrder>;

std::map<std::string, Versions> GroupsOf(const ResourceTable& table) {
  std::map<std::string, Versions> groups;
  for (const auto& resource : table.all()) {
    for (const ServedVersion& version : resource->versions) groups[resource->group].insert(version.name);
  }
  return groups;
}

Object GroupEntry(const std::string& group, const Versions& versions) {
  const auto entry = [&](const std::string& version) {
    return Object{{"groupVersion", StrCat(group, "/", version)}, {"version", version}};
  };
  Array list;
  for (const std::string& version : versions) list.emplace_back(entry(version));
  return {{"name", group}, {"versions", std::move(list)}, {"preferredVersion", entry(*versions.begin())}};
}

Object ResourceEntry(const ResourceInfo& resource, std::string_view subresource, std::string_view kind,
                     const auto& verbs) {
  Object entry{{"name", subresource.empty() ? resource.plural : StrCat(resource.plural, "/", subresource)},
               {"singularName", subresource.empty() ? resource.singular : ""},
               {"namespaced", resource.namespaced},
               {"kind", kind},
               {"verbs", TextArray(verbs)}};
  if (!subresource.empty()) return entry;
  if (!resource.short_names.empty()) entry["shortNames"] = TextArray(resource.short_names);
  if (!resource.categories.empty()) entry["categories"] = TextArray(resource.categories);
  return entry;
}

// What kind and which verbs a subresource has, and where that kind comes from if not from the resource's
// group.
struct SubresourceKind {
  std::string_view kind;
  std::string_view group;
  std::string_view version;
  std::vector<std::string_view> verbs;
};

SubresourceKind KindOf(const ResourceInfo& resource, std::string_view subresource) {
  if (subresource == "binding") return {"Binding", "", "", {"create"}};
  if (subresource == "eviction") return {"Eviction", "policy", "v1", {"create"}};
  if (subresource == "log") return {resource.kind, "", "", {"get"}};
  if (subresource == "scale") return {"Scale", "autoscaling", "v1", {"get", "patch", "update"}};
  if (subresource == "finalize") return {resource.kind, "", "", {"update"}};
  if (subresource == "proxy") {
    const std::string_view kind = resource.kind == "Pod" ? "PodProxyOptions" : "ServiceProxyOptions";
    return {kind, "", "", {"create", "delete", "get", "patch", "update"}};
  }
  if (subresource == "token") return {"TokenRequest", "authentication.k8s.io", "v1", {"create"}};
  return {resource.kind, "", "", {"get", "patch", "update"}};
}

std::optional<std::string> ResourceList(const ResourceTable& table, std::string_view group,
                                        std::string_view version) {
  Array entries;
  for (const auto& resource : table.all()) {
    if (resource->group != group) continue;
    const ServedVersion* served = resource->Version(version);
    if (served == nullptr) continue;
    entries.emplace_back(ResourceEntry(*resource, "", resource->kind, VerbsOf(*resource)));
    std::vector<std::string> subresources = resource->subresources;
    if (served->has_status) subresources.emplace_back("status");
    if (served->scale) subresources.emplace_back("scale");
    std::sort(subresources.begin(), subresources.end());
    for (const std::string& subresource : subresources) {
      const SubresourceKind kind = KindOf(*resource, subresource);
      Object entry = ResourceEntry(*resource, subresource, kind.kind, kind.verbs);
      if (!kind.group.empty()) {
        entry["group"] = kind.group;
        entry["version"] = kind.version;
      }
      entries.emplace_back(std::move(entry));
    }
  }
  if (entries.empty()) return std::nullopt;
  return PrintJson(
      Object{{"kind", "APIResourceList"},
             {"apiVersion", "v1"},
             {"groupVersion", group.empty() ? std::string(version) : StrCat(group, "/", version)},
             {"resources", std::move(entries)}});
}

std::string MetricsList() {
  return PrintJson(Object{{"kind", "APIResourceList"},
                          {"apiVersion", "v1"},
                          {"groupVersion", StrCat(kMetricsGroup, "/", kMetricsVersion)},
                          {"resources", Array{Object{{"name", "pods"},
                                                     {"singularName", ""},
                                                     {"namespaced", true},
                                                     {"kind", "PodMetrics"},
                                                     {"verbs", Array{"list"}}}}}});
}

}  // namespace

std::vector<std::string_view> VerbsOf(const ResourceInfo& resource) {
  if (!resource.readable) return {"create"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

std::optional<std::string> Discover(const ResourceTable& table, const std::vector<std::string>& parts,
                                    bool metrics) {
  if (parts.size() == 1 && parts[0] == "api") {
    return PrintJson(
        Object{{"kind", "APIVersions"}, {"versions", Array{"v1"}}, {"serverAddressByClientCIDRs", Array{}}});
  }
  if (parts.size() == 2 && parts[0] == "api") return ResourceList(table, "", parts[1]);
  if (parts.empty() || parts[0] != "apis" || parts.size() > 3) return std::nullopt;
  if (parts.size() == 3 && metrics && parts[1] == kMetricsGroup && parts[2] == kMetricsVersion)
    return MetricsList();
  if (parts.size() == 3) return ResourceList(table, parts[1], parts[2]);
  std::map<std::string, Versions> groups = GroupsOf(table);
  if (metrics) groups[std::string(kMetricsGroup)].emplace(kMetricsVersion);
  if (parts.size() == 2) {
    const auto group = groups.find(parts[1]);
    if (group == groups.end() || group->first.empty()) return std::nullopt;
    Object entry = GroupEntry(group->first, group->second);
    entry["kind"] = "APIGroup";
    entry["apiVersion"] = "v1";
    return PrintJson(std::move(entry));
  }
  Array list;
  for (const auto& [group, versions] : groups) {
    if (!group.empty()) list.emplace_back(GroupEntry(group, versions));
  }
  return PrintJson(Object{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}});
}

std::string VersionInfo(std::string_view release) {
  return PrintJson(Object{{"major", "1"},
                          {"minor", kApiMinor},
                          {"gitVersion", StrCat("v1.", kApiMinor, ".0+trainyard.", release)},
                          {"gitCommit", ""},
                          {"gitTreeState", "clean"},
                          {"buildDate", "1970-01-01T00:00:00Z"},
                          {"goVersion", ""},
                          {"compiler", "c++"},
                          {"platform", "linux/amd64"}});
}

}  // namespace trainyard::apiserver
