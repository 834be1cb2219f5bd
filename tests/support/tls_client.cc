#include "tests/support/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::testing_support {
namespace {

absl::Status TlsError(std::string_view what) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return absl::UnauthenticatedError(StrCat(what, ": ", reason == nullptr ? "connection closed" : reason));
}

// Keeps SIGPIPE from killing the test while its client writes, and no longer: the server has to do without.
class QuietPipe {
 public:
  QuietPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~QuietPipe() {
    const timespec now{};
    while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
};

template <typename T, typename Read>
T* ReadPem(const std::string& pem, Read read) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  T* object = read(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return object;
}

void Configure(SSL_CTX* context, const TlsClientOptions& options) {
  X509* ca = ReadPem<X509>(options.ca_pem, PEM_read_bio_X509);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
  X509_free(ca);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (options.max_version != 0) SSL_CTX_set_max_proto_version(context, options.max_version);
  static constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, kProtocols, sizeof kProtocols - 1);
  if (options.certificate_pem.empty()) return;
  X509* certificate = ReadPem<X509>(options.certificate_pem, PEM_read_bio_X509);
  EVP_PKEY* key = ReadPem<EVP_PKEY>(options.key_pem, PEM_read_bio_PrivateKey);
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace

absl::StatusOr<Fd> ConnectTcp(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  const timeval bound{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    return ErrnoStatus(errno, StrCat("connect to port ", port));
  }
  return fd;
}

absl::StatusOr<std::unique_ptr<TlsClient>> TlsClient::Connect(const TlsClientOptions& options) {
  auto client = std::make_unique<TlsClient>();
  TY_ASSIGN_OR_RETURN(client->fd_, ConnectTcp(options.port));
  client->context_.reset(SSL_CTX_new(TLS_client_method()));
  Configure(client->context_.get(), options);
  client->ssl_.reset(SSL_new(client->context_.get()));
  SSL_set_fd(client->ssl_.get(), client->fd_.get());
  ERR_clear_error();
  const QuietPipe quiet;
  if (SSL_connect(client->ssl_.get()) != 1) return TlsError("handshake");
  return client;
}

absl::Status TlsClient::Send(std::string_view bytes) {
  const QuietPipe quiet;
  while (!bytes.empty()) {
    ERR_clear_error();
    std::size_t put = 0;
    if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put) != 1) return TlsError("write");
    bytes.remove_prefix(put);
  }
  return absl::OkStatus();
}

bool TlsClient::Fill() {
  char buffer[16384];
  std::size_t got = 0;
  ERR_clear_error();
  if (SSL_read_ex(ssl_.get(), buffer, sizeof buffer, &got) != 1) return false;
  read_.append(buffer, got);
  return true;
}

absl::StatusOr<std::string> TlsClient::ReadUntil(std::string_view end) {
  while (true) {
    const std::size_t at = read_.find(end);
    if (at != std::string::npos) {
      std::string taken = read_.substr(0, at + end.size());
      read_.erase(0, at + end.size());
      return taken;
    }
    if (!Fill()) {
      return absl::UnavailableError(
          StrCat("the connection ended before \"", Escaped(end), "\"; came: \"", Escaped(read_), "\""));
    }
  }
}

absl::StatusOr<std::string> TlsClient::ReadAnswer() {
  TY_ASSIGN_OR_RETURN(std::string answer, ReadUntil("\r\n\r\n"));
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t at = answer.find(kLength);
  if (at == std::string::npos) return answer;
  const std::string_view rest = std::string_view(answer).substr(at + kLength.size());
  const auto length = ParseNumber<std::size_t>(rest.substr(0, rest.find('\r')));
  if (!length) return absl::InternalError("not a length");
  while (read_.size() < *length) {
    if (!Fill()) return absl::UnavailableError(StrCat("the connection ended within a body; came: ", answer));
  }
  answer += read_.substr(0, *length);
  read_.erase(0, *length);
  return answer;
}

std::string TlsClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(read_, "");
}

void TlsClient::EndWriting() {
  const QuietPipe quiet;
  SSL_shutdown(ssl_.get());
  ::shutdown(fd_.get(), SHUT_WR);
}

void TlsClient::Reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  fd_.Reset();
}

std::string TlsClient::protocol() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

}  // namespace trainyard::testing_support
