#include "tests/support/kube_apiserver.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/curl_transport.h"
#include "kube/kubeconfig.h"
#include "tests/support/http_server.h"

namespace trainyard::testing_support {

absl::StatusOr<std::unique_ptr<KubeApiServer>> KubeApiServer::Start() {
  const char* assets = ::getenv("KUBEBUILDER_ASSETS");
  if (assets == nullptr) return absl::NotFoundError("KUBEBUILDER_ASSETS is not set");
  const std::string program = StrCat(assets, "/kube-apiserver");
  if (!std::filesystem::exists(program)) return absl::NotFoundError(StrCat("there is no ", program));
  std::unique_ptr<KubeApiServer> server(new KubeApiServer());
  TY_ASSIGN_OR_RETURN(server->etcd_, EtcdCluster::Start({}));
  TY_RETURN_IF_ERROR(server->Spawn(program));
  TY_RETURN_IF_ERROR(server->AwaitReady());
  return server;
}

absl::Status KubeApiServer::Spawn(const std::string& program) {
  const Certificates& certificates = Certificates::Get();
  port_ = FreePort();
  const std::string url = StrCat("https://127.0.0.1:", port_);
  std::ofstream(folder_ / "tokens") << kToken << ",admin,1,\"system:masters\"\n";
  std::ofstream(folder_ / "kubeconfig")
      << "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" << url
      << "\", certificate-authority: " << certificates.ca_path
      << "}}]\nusers: [{name: u, user: {token: " << kToken << "}}]\n"
      << "contexts: [{name: test, context: {cluster: c, user: u}}]\ncurrent-context: test\n";
  ProcessSpec spec{.argv = {program, StrCat("--etcd-servers=http://", etcd_->endpoints()),
                            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                            StrCat("--secure-port=", port_), StrCat("--cert-dir=", folder_ / "certs"),
                            StrCat("--tls-cert-file=", certificates.server_certificate_path),
                            StrCat("--tls-private-key-file=", certificates.server_key_path),
                            StrCat("--client-ca-file=", certificates.ca_path),
                            StrCat("--token-auth-file=", folder_ / "tokens"),
                            StrCat("--service-account-issuer=", url),
                            StrCat("--service-account-key-file=", certificates.server_certificate_path),
                            StrCat("--service-account-signing-key-file=", certificates.server_key_path),
                            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
                            "--disable-admission-plugins=ServiceAccount"}};
  spec.stdout_path = spec.stderr_path = folder_ / "log";
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  process_ = std::move(child);
  return absl::OkStatus();
}

absl::Status KubeApiServer::AwaitReady() {
  TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadConfig({.path = kubeconfig()}));
  TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
  const SteadyTime deadline = Clock::System().Steady() + absl::Seconds(120);
  while (true) {
    // The namespace is the last thing that it makes for itself.
    const auto answers = transport->DoAll(
        {kube::Request{.target = "/readyz"}, kube::Request{.target = "/api/v1/namespaces/default"}});
    const auto good = [](const auto& answer) { return answer.ok() && answer->code == 200; };
    if (good(answers[0]) && good(answers[1])) return absl::OkStatus();
    const bool ended = process_->Wait(absl::Milliseconds(100)).ok();
    if (ended || Clock::System().Steady() >= deadline) {
      const auto log = ReadFile(folder_ / "log", std::size_t{16} << 20);
      return absl::UnavailableError(
          StrCat("kube-apiserver did not start: ", log.ok() ? *log : "it logs nothing"));
    }
  }
}

}  // namespace trainyard::testing_support
