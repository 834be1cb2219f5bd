#include "http/pki.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "base/status.h"
#include "tests/support/temp_folder.h"

namespace trainyard::http {
namespace {

using ::testing::HasSubstr;

const absl::Time kPkiNow = absl::FromUnixSeconds(1'900'000'000);

// What openssl(1) says of the files; its exit code is put behind.
std::string Openssl(const testing_support::TempFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  auto child = Child::Spawn({.argv = std::move(arguments),
                             .working_dir = folder.path(),
                             .stdout_path = folder / "out",
                             .stderr_path = folder / "out"});
  EXPECT_TRUE(child.ok()) << child.status();
  const auto exit = child->Wait(absl::Seconds(30));
  EXPECT_TRUE(exit.ok()) << exit.status();
  std::ifstream file(folder / "out");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::ofstream(folder / "out").close();
  return text + PrintExit(*exit);
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(Pki, SignsServersForTheirNamesAndAddresses) {
  const KeyPair authority = *MakeAuthority("trainyard-ca", kPkiNow);
  const KeyPair server =
      *MakeServerCertificate(authority, {"localhost", "kubernetes.default.svc", "127.0.0.1", "::1"}, kPkiNow);
  const testing_support::TempFolder folder;
  WriteFile(folder / "ca", authority.certificate_pem);
  WriteFile(folder / "server", server.certificate_pem);
  const std::string at = std::to_string(absl::ToUnixSeconds(kPkiNow));
  for (const char* name : {"localhost", "kubernetes.default.svc"}) {
    EXPECT_THAT(Openssl(folder, {"verify", "-x509_strict", "-CAfile", "ca", "-attime", at, "-purpose",
                                 "sslserver", "-verify_hostname", name, "server"}),
                HasSubstr("exited 0"))
        << name;
  }
  for (const char* address : {"127.0.0.1", "::1"}) {
    EXPECT_THAT(Openssl(folder, {"verify", "-CAfile", "ca", "-attime", at, "-verify_ip", address, "server"}),
                HasSubstr("exited 0"))
        << address;
  }
  EXPECT_THAT(
      Openssl(folder, {"verify", "-CAfile", "ca", "-attime", at, "-verify_hostname", "other", "server"}),
      HasSubstr("hostname mismatch"));
  EXPECT_THAT(Openssl(folder, {"verify", "-CAfile", "ca", "-attime", at, "-purpose", "sslclient", "server"}),
              HasSubstr("exited 2"))
      << "not for a client";
}

TEST(Pki, SignsUsersWithTheirGroups) {
  const KeyPair authority = *MakeAuthority("trainyard-ca", kPkiNow);
  const KeyPair client = *MakeClientCertificate(authority, "jürgen", {"ops", "system:masters"}, kPkiNow);
  const testing_support::TempFolder folder;
  WriteFile(folder / "ca", authority.certificate_pem);
  WriteFile(folder / "client", client.certificate_pem);
  const std::string at = std::to_string(absl::ToUnixSeconds(kPkiNow));
  EXPECT_THAT(Openssl(folder, {"verify", "-x509_strict", "-CAfile", "ca", "-attime", at, "-purpose",
                               "sslclient", "client"}),
              HasSubstr("exited 0"));
  EXPECT_THAT(Openssl(folder, {"x509", "-in", "client", "-noout", "-subject", "-nameopt", "utf8"}),
              HasSubstr("O=ops, O=system:masters, CN=jürgen"));
}

TEST(Pki, EndsAfterTenYearsAndAfterOne) {
  const KeyPair authority = *MakeAuthority("trainyard-ca", kPkiNow);
  EXPECT_EQ(*CertificateEnd(authority.certificate_pem), kPkiNow + 3650 * absl::Hours(24));
  EXPECT_EQ(*CertificateEnd(MakeClientCertificate(authority, "u", {}, kPkiNow)->certificate_pem),
            kPkiNow + 365 * absl::Hours(24));
}

TEST(Pki, GivesEveryCertificateItsOwnSerial) {
  const KeyPair authority = *MakeAuthority("trainyard-ca", kPkiNow);
  EXPECT_NE(MakeClientCertificate(authority, "u", {}, kPkiNow)->certificate_pem,
            MakeClientCertificate(authority, "u", {}, kPkiNow)->certificate_pem);
}

TEST(Pki, SaysWhatCannotBePutInACertificate) {
  const KeyPair authority = *MakeAuthority("trainyard-ca", kPkiNow);
  const KeyPair other = *MakeAuthority("other", kPkiNow);
  for (const char* name : {"", "a,IP:1.2.3.4", "a b", "a\nb"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeServerCertificate(authority, {name}, kPkiNow).status())) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MakeServerCertificate(authority, {}, kPkiNow).status()));
  EXPECT_THAT(Message(MakeClientCertificate(authority, std::string(65, 'u'), {}, kPkiNow).status()),
              HasSubstr("64 characters"));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeClientCertificate(authority, "u", {""}, kPkiNow).status()));
  EXPECT_THAT(
      Message(MakeClientCertificate({authority.certificate_pem, other.key_pem}, "u", {}, kPkiNow).status()),
      HasSubstr("does not belong"));
  EXPECT_TRUE(absl::IsInvalidArgument(CertificateEnd("no certificate").status()));
}

}  // namespace
}  // namespace trainyard::http
