// How gRPC, and the memory of the process around it, is set for large frames between processes that stand by
// each other.
#pragma once

#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace trainyard::ps {

void Tune(grpc::ServerBuilder& builder);
void Tune(grpc::ChannelArguments& arguments);

}  // namespace trainyard::ps
