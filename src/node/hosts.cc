#include "node/hosts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

// "name.ns name.ns.svc name.ns.svc.cluster.local"
void AppendFull(std::string& line, std::string_view name, std::string_view ns) {
  StrAppend(line, " ", name, ".", ns, ".svc.", kClusterDomain, " ", name, ".", ns, ".svc ", name, ".", ns);
}

void AddAddress(const kube::ObjectKey& service, const EndpointAddress& address, ClusterNames& names) {
  std::string& own = names.short_names[service.ns];
  StrAppend(names.full, address.ip);
  if (!address.hostname.empty())
    AppendFull(names.full, StrCat(address.hostname, ".", service.name), service.ns);
  AppendFull(names.full, service.name, service.ns);
  StrAppend(own, address.ip);
  if (!address.hostname.empty()) StrAppend(own, " ", address.hostname, ".", service.name);
  StrAppend(own, " ", service.name, "\n");
  StrAppend(names.full, "\n");
}

}  // namespace

ClusterNames RenderNames(const ClusterObjects& objects) {
  ClusterNames names;
  for (const auto& [key, service] : objects.services) {
    if (service.has_ip()) {
      AddAddress(key, {.ip = service.cluster_ip}, names);
      continue;
    }
    const auto endpoints = objects.endpoints.find(key);
    if (service.cluster_ip != "None" || endpoints == objects.endpoints.end()) continue;
    for (const EndpointAddress& address : endpoints->second.addresses) AddAddress(key, address, names);
  }
  return names;
}

std::string RenderHosts(const PodSpec& pod, std::string_view pod_ip, const ClusterNames& names) {
  const std::string hostname = pod.Hostname();
  const std::string fqdn = pod.Fqdn();
  std::string out = StrCat("# Written by trainyard for pod ", pod.ns, "/", pod.name, ".\n");
  StrAppend(out, pod_ip, " localhost\n::1 ip6-localhost ip6-loopback\n");
  StrAppend(out, pod_ip, fqdn.empty() ? "" : " ", fqdn, " ", hostname, "\n");
  for (const HostAlias& alias : pod.host_aliases) {
    StrAppend(out, alias.address);
    for (const std::string& name : alias.names) StrAppend(out, " ", name);
    out += '\n';
  }
  if (const auto own = names.short_names.find(pod.ns); own != names.short_names.end()) out += own->second;
  return out += names.full;
}

absl::Status WriteInPlace(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot write ", path));
  off_t at = 0;
  while (!text.empty()) {
    const ssize_t written = ::pwrite(file.get(), text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrnoStatus(errno, StrCat("cannot write ", path));
    at += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::ftruncate(file.get(), at) != 0) return ErrnoStatus(errno, StrCat("cannot shorten ", path));
  return absl::OkStatus();
}

}  // namespace trainyard::node
