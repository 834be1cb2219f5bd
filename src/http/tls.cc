#include "http/tls.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/status.h"
#include "http/openssl.h"

namespace trainyard::http {
namespace {

constexpr std::string_view kNotTls =
    "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    "Client sent an HTTP request to an HTTPS server.\n";

// A socket as OpenSSL sees it. Ours and not OpenSSL's own, because that one lets SIGPIPE kill the process,
// and does not tell whether the socket has been read empty.
struct Socket {
  Fd fd;
  bool read_some = false;
  bool plain_http = false;  // the first byte is not TLS but a letter
  bool drained = false;     // the last read took all there was
  bool ended = false;       // the peer has closed its side
};

Socket& SocketOf(BIO* bio) { return *static_cast<Socket*>(BIO_get_data(bio)); }

int ReadSocket(BIO* bio, char* buffer, int size) {
  Socket& socket = SocketOf(bio);
  BIO_clear_retry_flags(bio);
  if (socket.plain_http) return -1;
  const ssize_t got = ::recv(socket.fd.get(), buffer, static_cast<std::size_t>(size), 0);
  if (got < 0) {
    socket.drained = true;
    if (errno == EAGAIN || errno == EINTR) BIO_set_retry_read(bio);
    return -1;
  }
  socket.drained = got < size;
  socket.ended = got == 0;
  if (got > 0 && !socket.read_some) {
    socket.read_some = true;
    socket.plain_http = *buffer >= 'A' && *buffer <= 'Z';
    if (socket.plain_http) return -1;
  }
  return static_cast<int>(got);
}

int WriteSocket(BIO* bio, const char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t put = ::send(SocketOf(bio).fd.get(), buffer, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(put);
}

long ControlSocket(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return SocketOf(bio).ended ? 1 : 0;
  return 0;
}

BioMethodPtr SocketMethod() {
  BioMethodPtr method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
  BIO_meth_set_read(method.get(), ReadSocket);
  BIO_meth_set_write(method.get(), WriteSocket);
  BIO_meth_set_ctrl(method.get(), ControlSocket);
  return method;
}

std::string Utf8(const ASN1_STRING* text) {
  unsigned char* bytes = nullptr;
  const int size = ASN1_STRING_to_UTF8(&bytes, text);
  if (size < 0) return "";
  std::string utf8(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return utf8;
}

std::vector<std::string> NamesOf(const X509_NAME* subject, int nid) {
  std::vector<std::string> names;
  for (int at = X509_NAME_get_index_by_NID(subject, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(subject, nid, at)) {
    names.push_back(Utf8(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

// Nobody without a name: a certificate that says nothing of its bearer proves nothing.
std::optional<Identity> IdentityOf(const SSL* ssl) {
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return std::nullopt;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  std::vector<std::string> users = NamesOf(subject, NID_commonName);
  if (users.empty() || users.back().empty()) return std::nullopt;
  return Identity{.user = std::move(users.back()), .groups = NamesOf(subject, NID_organizationName)};
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(SSL_CTX* context, BIO_METHOD* method, Fd fd) : ssl_(SSL_new(context)) {
    socket_.fd = std::move(fd);
    BIO* bio = BIO_new(method);
    TY_CHECK(ssl_ != nullptr && bio != nullptr, "out of memory");
    BIO_set_data(bio, &socket_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

  Result Read(char* buffer, std::size_t size) override {
    ERR_clear_error();
    std::size_t got = 0;
    const int done = SSL_read_ex(ssl_.get(), buffer, size, &got);
    if (done != 1) return Failed(done);
    if (!known_) {
      known_ = true;
      identity_ = IdentityOf(ssl_.get());
    }
    return {Io::kDone, got};
  }

  Result Write(std::string_view bytes) override {
    if (broken_) return {Io::kBroken};
    ERR_clear_error();
    std::size_t put = 0;
    const int done = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put);
    return done == 1 ? Result{Io::kDone, put} : Failed(done);
  }

  void EndWriting() override {
    ERR_clear_error();
    if (!broken_ && SSL_is_init_finished(ssl_.get()) != 0) SSL_shutdown(ssl_.get());
    ::shutdown(socket_.fd.get(), SHUT_WR);
  }

  bool MayHaveMore() const override { return !socket_.drained || SSL_has_pending(ssl_.get()) != 0; }

  const std::optional<Identity>& identity() const override { return identity_; }

 private:
  Result Failed(int done) {
    const int error = SSL_get_error(ssl_.get(), done);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      return {Io::kWait};
    }
    if (error == SSL_ERROR_ZERO_RETURN) return {Io::kEnd};
    if (socket_.plain_http && !broken_) {
      [[maybe_unused]] const ssize_t put =
          ::send(socket_.fd.get(), kNotTls.data(), kNotTls.size(), MSG_NOSIGNAL);
    }
    ERR_clear_error();
    broken_ = true;
    return {Io::kBroken};
  }

  Socket socket_;
  SslPtr ssl_;
  bool known_ = false;
  bool broken_ = false;
  std::optional<Identity> identity_;
};

// The protocol that we speak, if the client offers it; else none is agreed on, which means the same.
int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void* /*context*/) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* out = nullptr;
  if (SSL_select_next_proto(&out, size, kOurs, sizeof kOurs - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = out;
  return SSL_TLSEXT_ERR_OK;
}

absl::Status UseCertificate(SSL_CTX* context, const std::string& certificate_pem,
                            const std::string& key_pem) {
  const BioPtr chain = MemoryBio(certificate_pem);
  const X509Ptr leaf(PEM_read_bio_X509_AUX(chain.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return OpensslError("cannot read the server's certificate");
  }
  while (X509* next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return OpensslError("cannot use the chain of the server's certificate");
    }
  }
  ERR_clear_error();  // the end of the text is an error to the reader
  const PkeyPtr key(PEM_read_bio_PrivateKey(MemoryBio(key_pem).get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return OpensslError("cannot read the server's key");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return OpensslError("the server's key does not belong to its certificate");
  }
  return absl::OkStatus();
}

absl::Status TrustClients(SSL_CTX* context, const std::string& ca_pem) {
  const BioPtr text = MemoryBio(ca_pem);
  int count = 0;
  while (X509* next = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    const X509Ptr ca(next);
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1 ||
        SSL_CTX_add_client_CA(context, ca.get()) != 1) {
      return OpensslError("cannot use the authority of client certificates");
    }
    ++count;
  }
  if (count == 0) return OpensslError("cannot read the authority of client certificates");
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return absl::OkStatus();
}

}  // namespace

struct TlsContext::Shared {
  SslContextPtr context{SSL_CTX_new(TLS_server_method())};
  BioMethodPtr method = SocketMethod();
};

TlsContext::TlsContext(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
TlsContext::~TlsContext() = default;

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(const std::string& certificate_pem,
                                                             const std::string& key_pem,
                                                             const std::string& client_ca_pem) {
  auto shared = std::make_unique<Shared>();
  SSL_CTX* context = shared->context.get();
  TY_CHECK(context != nullptr && shared->method != nullptr, "out of memory");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // An end without TLS's own word for it is an end: HTTP says by itself how long a request is.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Clients keep their connections; a session to resume would only be memory.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  TY_RETURN_IF_ERROR(UseCertificate(context, certificate_pem, key_pem));
  if (!client_ca_pem.empty()) TY_RETURN_IF_ERROR(TrustClients(context, client_ca_pem));
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(shared)));
}

std::unique_ptr<ByteStream> TlsContext::Accept(Fd socket) const {
  return std::make_unique<TlsStream>(shared_->context.get(), shared_->method.get(), std::move(socket));
}

}  // namespace trainyard::http
