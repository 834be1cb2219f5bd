#include "tests/support/http_server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::testing_support {
namespace {

std::string ReadOutput(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void OpenSsl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const auto done = RunToEnd(std::move(arguments));
  TY_CHECK(done.ok(), Message(done.status()));
}

void MakeCa(const TempFolder& folder, std::string_view name) {
  OpenSsl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
           "30", "-subj", StrCat("/CN=", name), "-keyout", folder / StrCat(name, ".key"), "-out",
           folder / StrCat(name, ".crt")});
}

void MakeSigned(const TempFolder& folder, std::string_view name, const std::string& subject,
                const std::string& extensions) {
  const std::string request = folder / StrCat(name, ".csr");
  OpenSsl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject,
           "-keyout", folder / StrCat(name, ".key"), "-out", request});
  const std::string extension_file = folder / StrCat(name, ".ext");
  std::ofstream(extension_file) << extensions;
  OpenSsl({"x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
           "-CAcreateserial", "-days", "30", "-extfile", extension_file, "-out",
           folder / StrCat(name, ".crt")});
}

const char* Name(Protocol protocol) {
  switch (protocol) {
    case Protocol::kHttp2:
      return "h2";
    case Protocol::kHttps1:
      return "https1";
    case Protocol::kHttp1:
      return "http1";
  }
  return "";
}

// The first line that comes out of a pipe.
absl::StatusOr<std::string> ReadLine(int fd, absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  std::string line;
  while (Clock::System().Steady() < deadline) {
    pollfd poller{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&poller, 1, 1000) <= 0) continue;
    char c = 0;
    if (::read(fd, &c, 1) != 1) return absl::UnavailableError("it ended without a word");
    if (c == '\n') return line;
    line += c;
  }
  return absl::DeadlineExceededError("it does not say anything");
}

}  // namespace

absl::StatusOr<std::string> RunToEnd(std::vector<std::string> argv, absl::Duration timeout) {
  const TempFolder folder;
  ProcessSpec spec{.argv = std::move(argv)};
  spec.stdout_path = folder / "out";
  spec.stderr_path = folder / "err";
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, child.Wait(timeout));
  if (ShellCode(ended) != 0) {
    return absl::InternalError(StrCat(spec.argv[0], " ", PrintExit(ended), ": ", ReadOutput(folder / "err")));
  }
  return ReadOutput(folder / "out");
}

const Certificates& Certificates::Get() {
  static const Certificates& certificates = *[] {
    // Lives as long as the process; its folder goes with it.
    static Certificates made;
    const TempFolder& folder = made.folder;
    MakeCa(folder, "ca");
    MakeCa(folder, "other-ca");
    MakeSigned(folder, "server", "/CN=server", "subjectAltName=IP:127.0.0.1,DNS:kube.test\n");
    MakeSigned(folder, "client", "/CN=alice/O=dev", "extendedKeyUsage=clientAuth\n");
    made.ca_path = folder / "ca.crt";
    made.other_ca_path = folder / "other-ca.crt";
    made.server_key_path = folder / "server.key";
    made.server_certificate_path = folder / "server.crt";
    made.client_key_path = folder / "client.key";
    made.client_certificate_path = folder / "client.crt";
    made.ca = ReadOutput(made.ca_path);
    made.other_ca = ReadOutput(made.other_ca_path);
    made.client_certificate = ReadOutput(made.client_certificate_path);
    made.client_key = ReadOutput(made.client_key_path);
    return &made;
  }();
  return certificates;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Protocol protocol) {
  ProcessSpec spec{.argv = {"node", TRAINYARD_TEST_SUPPORT "/http_server.js", Name(protocol)}};
  if (protocol != Protocol::kHttp1) {
    const Certificates& certificates = Certificates::Get();
    spec.argv.push_back(certificates.server_key_path);
    spec.argv.push_back(certificates.server_certificate_path);
    spec.argv.push_back(certificates.ca_path);
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  spec.stdout_fd = writer.get();
  spec.stderr_fd = STDERR_FILENO;
  TY_ASSIGN_OR_RETURN(Child process, Child::Spawn(spec));
  writer.Reset();
  absl::StatusOr<std::string> line = ReadLine(reader.get(), absl::Seconds(60));
  if (!line.ok()) return Annotate(line.status(), "node http_server.js");
  const auto port = ParseNumber<int>(std::string_view(*line).substr(std::min<std::size_t>(5, line->size())));
  if (!port) return absl::InternalError(StrCat("node http_server.js says: ", *line));
  return std::unique_ptr<HttpServer>(new HttpServer(protocol, std::move(process), *port));
}

std::string HttpServer::url() const {
  return StrCat(protocol_ == Protocol::kHttp1 ? "http" : "https", "://127.0.0.1:", port_);
}

void HttpServer::Signal(int signal) {
  const absl::Status sent = process_.Kill(signal);
  TY_CHECK(sent.ok(), Message(sent));
}

}  // namespace trainyard::testing_support
