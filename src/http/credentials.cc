#include "http/credentials.h"

#include "base/access.h"
#include "base/base64.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::http {
namespace {

constexpr absl::Duration kTokenAge = absl::Minutes(1);
constexpr std::size_t kMaxTokenBytes = std::size_t{64} * 1024;

class FixedCredentials final : public Credentials {
 public:
  explicit FixedCredentials(Credential credential) : credential_(std::move(credential)) {}
  absl::StatusOr<Credential> Get() override { return credential_; }
  void Refuse(const Credential&) override {}

 private:
  const Credential credential_;
};

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  TY_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxTokenBytes));
  std::string text(TrimToken(file));
  if (text.empty()) return absl::NotFoundError(StrCat(path, " is empty"));
  // It becomes a header: a line break in it would begin another one.
  if (text.find_first_of("\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(StrCat(path, " has more than one line: it is no token"));
  }
  return text;
}

class TokenFileCredentials final : public Credentials {
 public:
  TokenFileCredentials(std::string path, std::string fallback, Credential rest, Clock& clock)
      : path_(std::move(path)), rest_(std::move(rest)), clock_(clock), token_(std::move(fallback)) {}

  absl::StatusOr<Credential> Get() override {
    MutexLock lock(mu_);
    if (clock_.Steady() >= next_read_) TY_RETURN_IF_ERROR(Read());
    return Present();
  }

  void Refuse(const Credential& refused) override {
    MutexLock lock(mu_);
    if (refused == Present()) next_read_ = SteadyTime();
  }

 private:
  absl::Status Read() TY_REQUIRES(mu_) {
    absl::StatusOr<std::string> token = ReadToken(path_);
    if (token.ok()) {
      token_ = *std::move(token);
    } else if (token_.empty()) {
      return absl::UnauthenticatedError(StrCat("no token to authenticate with: ", token.status().message()));
    } else {
      log::Warn("failed to reload the token file; using the previous token",
                {{"file", path_}, {"error", token.status()}});
    }
    next_read_ = clock_.Steady() + kTokenAge;
    return absl::OkStatus();
  }

  Credential Present() const TY_REQUIRES(mu_) {
    Credential credential = rest_;
    credential.headers.push_back(BearerHeader(token_));
    return credential;
  }

  const std::string path_;
  const Credential rest_;
  Clock& clock_;
  Mutex mu_;
  std::string token_ TY_GUARDED_BY(mu_);
  SteadyTime next_read_ TY_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Credentials> NewFixedCredentials(Credential credential) {
  return std::make_unique<FixedCredentials>(std::move(credential));
}

std::unique_ptr<Credentials> NewTokenFileCredentials(std::string path, std::string fallback, Credential rest,
                                                     Clock& clock) {
  return std::make_unique<TokenFileCredentials>(std::move(path), std::move(fallback), std::move(rest), clock);
}

std::pair<std::string, std::string> BearerHeader(std::string_view token) {
  return {"Authorization", StrCat("Bearer ", token)};
}

std::pair<std::string, std::string> BasicHeader(std::string_view user, std::string_view password) {
  return {"Authorization", StrCat("Basic ", EncodeBase64(StrCat(user, ":", password)))};
}

}  // namespace trainyard::http
