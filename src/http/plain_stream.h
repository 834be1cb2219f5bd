// A socket without TLS as a connection's bytes.
#pragma once

#include <memory>

#include "base/fd.h"
#include "http/byte_stream.h"

namespace trainyard::http {

// On a socket that does not block. It proves nobody's identity.
std::unique_ptr<ByteStream> NewPlainStream(Fd socket);

}  // namespace trainyard::http
