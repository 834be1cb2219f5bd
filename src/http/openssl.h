// OpenSSL's objects with owners, and its errors as statuses.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "absl/status/status.h"
#include "base/text.h"

namespace trainyard::http {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Freed<&BIO_free>>;
using PkeyPtr = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Freed<&X509_free>>;
using SslPtr = std::unique_ptr<SSL, Freed<&SSL_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using BioMethodPtr = std::unique_ptr<BIO_METHOD, Freed<&BIO_meth_free>>;

// What OpenSSL said last in this thread, which is then forgotten.
inline std::string TakeOpensslError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error" : reason;
}

inline absl::Status OpensslError(std::string_view what) {
  return absl::InvalidArgumentError(StrCat(what, ": ", TakeOpensslError()));
}

inline BioPtr MemoryBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace trainyard::http
