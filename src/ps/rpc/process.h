// What of gRPC is set for the whole process.
#pragma once

namespace trainyard::ps {

// Once, before anything of gRPC's and before the first thread.
enum class Connections {
  kFew,   // that have much to say on them, as a graph's
  kMany,  // as those of a master
};
void TuneProcess(Connections connections = Connections::kFew);

}  // namespace trainyard::ps
