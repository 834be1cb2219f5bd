// Other numbers of trainers and pservers while a job runs. What was learnt, and which records were used, is
// kept.
//
// Each of these changes the job's meta in one transaction; the running graphs see it and follow
// (ps/pserver.h, ps/trainer.h). Whoever calls may die at any point: the job is then as before or as asked
// for. The pods are somebody else's: those that are too many end by themselves, with OK, and those that are
// new are waited for.
//
// Errors of all: NotFound: there is no such job, or it was begun without its program. FailedPrecondition: it
// has ended. InvalidArgument: it cannot have that many.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

// From the next step on the job has n trainers; those that are new take part when they come. What of the data
// is left is dealt anew. An elastic job (least_trainers < most_trainers) stays within its bounds, which are
// moved if need be.
absl::Status ScaleTrainers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n);

// At least n: for a trainer that has come by itself. InvalidArgument: the job may not grow that far by
// itself.
absl::Status GrowTrainers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n);

// Has the pservers write a checkpoint, and has n pservers go on from it with the same parameters cut anew.
// Steps that were done after that checkpoint are done again. All pservers must see each other's checkpoint
// files. DeadlineExceeded: the checkpoint was not written in time; nothing has changed.
absl::Status ScalePservers(kv::Store& store, IdSource& ids, const JobKeys& keys, int n,
                           absl::Duration timeout = absl::Minutes(2));

}  // namespace trainyard::ps
