// What of gRPC is set for the whole process.
#pragma once

namespace trainyard::ps {

// Once, before anything of gRPC's and before the first thread. For processes with few connections that have
// much to say on them, as a graph's is.
void TuneProcess();

}  // namespace trainyard::ps
