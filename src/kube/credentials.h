// Who we are to an API server: http/'s types, by the names that this folder uses.
#pragma once

#include "http/credentials.h"

namespace trainyard::kube {

using http::BasicHeader;
using http::BearerHeader;
using http::Credential;
using http::Credentials;
using http::NewFixedCredentials;
using http::NewTokenFileCredentials;

}  // namespace trainyard::kube
