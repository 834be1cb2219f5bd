#include "local/access.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "base/access.h"
#include "base/base64.h"
#include "base/document.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"

namespace trainyard::local {
namespace {

constexpr std::size_t kMaxPem = std::size_t{64} * 1024;
constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);
constexpr std::size_t kShortestToken = 32;

absl::StatusOr<http::KeyPair> ReadPair(const std::string& stem) {
  TY_ASSIGN_OR_RETURN(std::string certificate, ReadFile(stem + ".crt", kMaxPem));
  TY_ASSIGN_OR_RETURN(std::string key, ReadFile(stem + ".key", kMaxPem));
  return http::KeyPair{.certificate_pem = std::move(certificate), .key_pem = std::move(key)};
}

// The key first: a certificate without its key would look whole at the next start.
absl::Status WritePair(const std::string& stem, const http::KeyPair& pair) {
  TY_RETURN_IF_ERROR(ReplaceFile(stem + ".key", pair.key_pem, 0600, Durability::kPower));
  return ReplaceFile(stem + ".crt", pair.certificate_pem, 0600, Durability::kPower);
}

bool LastsPast(const http::KeyPair& pair, absl::Time when) {
  const auto end = http::CertificateEnd(pair.certificate_pem);
  return end.ok() && *end > when;
}

// What is stored, if it is there and lasts; else what `make` gives, stored.
template <typename Make>
absl::StatusOr<http::KeyPair> Keep(const std::string& stem, bool renew, absl::Time now, Make make) {
  if (!renew) {
    if (auto pair = ReadPair(stem); pair.ok() && LastsPast(*pair, now + kRenewBefore)) return pair;
  }
  TY_ASSIGN_OR_RETURN(http::KeyPair pair, make());
  TY_RETURN_IF_ERROR(WritePair(stem, pair));
  return pair;
}

absl::StatusOr<std::string> KeepToken(const std::string& path) {
  if (auto token = ReadToken(path); token.ok() && token->size() >= kShortestToken) return token;
  TY_ASSIGN_OR_RETURN(const std::string token, NewToken());
  TY_RETURN_IF_ERROR(ReplaceFile(path, token, 0600, Durability::kPower));
  return token;
}

}  // namespace

absl::StatusOr<Access> OpenAccess(const Home& home, absl::Time now) {
  const std::string authority_stem = home.Pki() + "/ca";
  bool made = false;
  TY_ASSIGN_OR_RETURN(const http::KeyPair authority, Keep(authority_stem, false, now, [&] {
                        made = true;
                        return http::MakeAuthority("trainyard", now);
                      }));
  Access access{.authority_pem = authority.certificate_pem};
  TY_ASSIGN_OR_RETURN(access.server, Keep(home.Pki() + "/server", made, now, [&] {
                        return http::MakeServerCertificate(
                            authority,
                            {"127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default",
                             "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "127.96.0.1"},
                            now);
                      }));
  TY_ASSIGN_OR_RETURN(access.admin, Keep(home.Pki() + "/admin", made, now, [&] {
                        return MakeClientCertificate(authority, "trainyard-admin", {"system:masters"}, now);
                      }));
  TY_ASSIGN_OR_RETURN(access.token, KeepToken(home.Pki() + "/token"));
  return access;
}

absl::Status WriteKubeconfig(const Home& home, const Access& access, const std::string& server) {
  constexpr std::string_view kName = "trainyard";
  const Document config = Object{
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"current-context", kName},
      {"clusters", Array{Object{{"name", kName},
                                {"cluster", Object{{"server", server},
                                                   {"certificate-authority-data",
                                                    EncodeBase64(access.authority_pem)}}}}}},
      {"contexts",
       Array{Object{{"name", kName},
                    {"context", Object{{"cluster", kName}, {"user", kName}, {"namespace", "default"}}}}}},
      {"users",
       Array{Object{{"name", kName},
                    {"user", Object{{"client-certificate-data", EncodeBase64(access.admin.certificate_pem)},
                                    {"client-key-data", EncodeBase64(access.admin.key_pem)},
                                    {"token", access.token}}}}}}};
  return ReplaceFile(home.Kubeconfig(), PrintYaml(config), 0600, Durability::kPower);
}

absl::Status PublishApiServer(kube::Api& api, std::uint16_t port) {
  const kube::ObjectKey key{.ns = "default", .name = "kubernetes"};
  const auto metadata = [&key] {
    return Object{{"name", key.name},
                  {"namespace", key.ns},
                  {"labels", Object{{"component", "apiserver"}, {"provider", "kubernetes"}}}};
  };
  const Object service{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", metadata()},
      {"spec", Object{{"clusterIP", "127.0.0.1"},
                      {"ports",
                       Array{Object{
                           {"name", "https"}, {"port", port}, {"protocol", "TCP"}, {"targetPort", port}}}}}}};
  const Object endpoints{
      {"apiVersion", "v1"},
      {"kind", "Endpoints"},
      {"metadata", metadata()},
      {"subsets",
       Array{Object{{"addresses", Array{Object{{"ip", "127.0.0.1"}}}},
                    {"ports", Array{Object{{"name", "https"}, {"port", port}, {"protocol", "TCP"}}}}}}}};
  const kube::PatchOptions apply{
      .type = kube::PatchType::kApply, .field_manager = "trainyard", .force = true};
  std::vector<kube::Operation> operations;
  operations.push_back(kube::PatchOperation(kube::Resource::Services(), key, PrintJson(service), apply));
  operations.push_back(kube::PatchOperation(kube::Resource::Endpoints(), key, PrintJson(endpoints), apply));
  for (const auto& done : api.Do(std::move(operations))) TY_RETURN_IF_ERROR(done);
  return absl::OkStatus();
}

}  // namespace trainyard::local
