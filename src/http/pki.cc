#include "http/pki.h"

#include <memory>

#include "base/access.h"
#include "base/status.h"
#include "base/text.h"
#include "http/openssl.h"

namespace trainyard::http {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
// Clocks of two machines differ; a certificate is good a little before it was made.
constexpr absl::Duration kSkew = absl::Minutes(10);

struct Subject {
  std::string common_name;
  std::vector<std::string> organizations;
};

struct Issue {
  Subject subject;
  absl::Time now;
  absl::Duration life;
  std::vector<std::pair<int, std::string>> extensions;  // NID and OpenSSL's notation of the value
};

struct Issuer {
  X509* certificate = nullptr;  // null: signs itself
  EVP_PKEY* key = nullptr;
};

absl::Status SetSubject(X509* certificate, const Subject& subject) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto add = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  for (const std::string& organization : subject.organizations) {
    if (!add("O", organization)) {
      return OpensslError(StrCat("cannot put the group \"", Escaped(organization),
                                 "\" in a certificate (1 to 64 characters)"));
    }
  }
  if (!add("CN", subject.common_name)) {
    return OpensslError(StrCat("cannot put the name \"", Escaped(subject.common_name),
                               "\" in a certificate (1 to 64 characters)"));
  }
  return absl::OkStatus();
}

absl::Status SetExtensions(X509* certificate, const Issue& issue, X509* issuer) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [nid, value] : issue.extensions) {
    std::unique_ptr<X509_EXTENSION, Freed<&X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpensslError(StrCat("cannot put \"", value, "\" in a certificate"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetSerialAndTimes(X509* certificate, const Issue& issue) {
  constexpr std::size_t kDigits = 32;
  TY_ASSIGN_OR_RETURN(std::string random, NewToken());
  random.resize(kDigits);
  random[0] = '4';  // positive, and of a fixed length
  BIGNUM* parsed = nullptr;
  BN_hex2bn(&parsed, random.c_str());
  const std::unique_ptr<BIGNUM, Freed<&BN_free>> number(parsed);
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr ||
      ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(issue.now - kSkew)) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(issue.now + issue.life)) == nullptr) {
    return OpensslError("cannot set a certificate's serial and times");
  }
  return absl::OkStatus();
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

absl::StatusOr<KeyPair> Make(const Issue& issue, const Issuer& issuer) {
  const PkeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate(X509_new());
  if (key == nullptr || certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return OpensslError("cannot make a key");
  }
  X509* signer = issuer.certificate != nullptr ? issuer.certificate : certificate.get();
  TY_RETURN_IF_ERROR(SetSerialAndTimes(certificate.get(), issue));
  TY_RETURN_IF_ERROR(SetSubject(certificate.get(), issue.subject));
  if (X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer)) != 1) {
    return OpensslError("cannot name a certificate's issuer");
  }
  TY_RETURN_IF_ERROR(SetExtensions(certificate.get(), issue, signer));
  EVP_PKEY* signing = issuer.key != nullptr ? issuer.key : key.get();
  if (X509_sign(certificate.get(), signing, EVP_sha256()) == 0) {
    return OpensslError("cannot sign a certificate");
  }
  const BioPtr certificate_text(BIO_new(BIO_s_mem()));
  const BioPtr key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("cannot print a certificate");
  }
  return KeyPair{.certificate_pem = Written(certificate_text.get()), .key_pem = Written(key_text.get())};
}

absl::StatusOr<X509Ptr> ReadCertificate(std::string_view pem) {
  X509Ptr certificate(PEM_read_bio_X509(MemoryBio(pem).get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return OpensslError("cannot read a certificate");
  return certificate;
}

absl::StatusOr<KeyPair> MakeSigned(const Issue& issue, const KeyPair& authority) {
  TY_ASSIGN_OR_RETURN(const X509Ptr certificate, ReadCertificate(authority.certificate_pem));
  const PkeyPtr key(PEM_read_bio_PrivateKey(MemoryBio(authority.key_pem).get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return OpensslError("cannot read the authority's key");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return OpensslError("the authority's key does not belong to its certificate");
  }
  return Make(issue, {.certificate = certificate.get(), .key = key.get()});
}

bool IsAddress(const std::string& name) {
  ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str());
  ASN1_OCTET_STRING_free(address);
  ERR_clear_error();
  return address != nullptr;
}

// The notation separates by commas; a name with one in it would be two.
absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (name.empty() || name.find_first_of(", \t\r\n\"\\") != std::string::npos) {
      return absl::InvalidArgumentError(
          StrCat("\"", Escaped(name), "\" is neither a DNS name nor an IP address"));
    }
    StrAppend(text, text.empty() ? "" : ",", IsAddress(name) ? "IP:" : "DNS:", name);
  }
  if (text.empty()) return absl::InvalidArgumentError("a server's certificate needs a name");
  return text;
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(std::string_view common_name, absl::Time now) {
  return Make({.subject = {.common_name = std::string(common_name)},
               .now = now,
               .life = 3650 * kDay,
               .extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                              {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
                              {NID_subject_key_identifier, "hash"}}},
              {});
}

absl::StatusOr<KeyPair> MakeServerCertificate(const KeyPair& authority, const std::vector<std::string>& names,
                                              absl::Time now) {
  TY_ASSIGN_OR_RETURN(const std::string alternatives, AlternativeNames(names));
  return MakeSigned({.subject = {.common_name = "trainyard-apiserver"},
                     .now = now,
                     .life = 365 * kDay,
                     .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                    {NID_key_usage, "critical,digitalSignature"},
                                    {NID_ext_key_usage, "serverAuth"},
                                    {NID_authority_key_identifier, "keyid"},
                                    {NID_subject_alt_name, alternatives}}},
                    authority);
}

absl::StatusOr<KeyPair> MakeClientCertificate(const KeyPair& authority, std::string_view user,
                                              const std::vector<std::string>& groups, absl::Time now) {
  return MakeSigned({.subject = {.common_name = std::string(user), .organizations = groups},
                     .now = now,
                     .life = 365 * kDay,
                     .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                    {NID_key_usage, "critical,digitalSignature"},
                                    {NID_ext_key_usage, "clientAuth"},
                                    {NID_authority_key_identifier, "keyid"}}},
                    authority);
}

absl::StatusOr<absl::Time> CertificateEnd(std::string_view certificate_pem) {
  TY_ASSIGN_OR_RETURN(const X509Ptr certificate, ReadCertificate(certificate_pem));
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return OpensslError("cannot read a certificate's end");
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

}  // namespace trainyard::http
