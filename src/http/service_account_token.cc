#include "http/service_account_token.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/access.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/text.h"

namespace trainyard::http {
namespace {

// "sa.NAMESPACE.NAME.SIGNATURE": names may hold dots, namespaces and signatures do not.
constexpr std::string_view kPrefix = "sa.";

std::string Sign(std::string_view secret, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const auto* made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  TY_CHECK(made != nullptr, "OpenSSL has no HMAC-SHA256");
  return HexBytes({reinterpret_cast<const char*>(digest), size});
}

}  // namespace

std::string ServiceAccountToken(std::string_view secret, std::string_view ns, std::string_view name) {
  std::string text = StrCat(kPrefix, ns, ".", name.empty() ? "default" : name);
  std::string signature = Sign(secret, text);
  return StrCat(text, ".", signature);
}

std::optional<Identity> FindServiceAccount(std::string_view secret, std::string_view token) {
  const std::size_t last = token.rfind('.');
  if (!token.starts_with(kPrefix) || last < kPrefix.size()) return std::nullopt;
  const std::string_view text = token.substr(0, last);
  if (!SameSecret(token.substr(last + 1), Sign(secret, text))) return std::nullopt;
  const std::string_view account = text.substr(kPrefix.size());
  const std::size_t dot = account.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view ns = account.substr(0, dot);
  return Identity{
      .user = StrCat("system:serviceaccount:", ns, ":", account.substr(dot + 1)),
      .groups = {"system:serviceaccounts", StrCat("system:serviceaccounts:", ns), "system:authenticated"}};
}

}  // namespace trainyard::http
