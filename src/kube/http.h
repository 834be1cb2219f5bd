// An exchange with an API server: http/'s types, by the names that this folder uses.
#pragma once

#include "http/message.h"

namespace trainyard::kube {

using http::AddParameter;
using http::BodyReader;
using http::OpenedResponse;
using http::PercentDecoded;
using http::PercentEncoded;
using http::Request;
using http::Response;
using http::SameHeader;
using http::Transport;

}  // namespace trainyard::kube
