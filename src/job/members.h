// Who works on a job now, for those who work on it: what a member reads to find the others.
#pragma once

#include <string>
#include <string_view>

#include "job/account.h"
#include "job/job_view.h"

namespace trainyard::job {

// "<job>-members": the object that holds it.
std::string MembersName(std::string_view job);

// One line for each pod that runs, in the order of roles and indexes: role, index, the name that resolves,
// and the pod's uid, by which one that was made again is told from its predecessor.
std::string PrintMembers(const JobView& view, const Account& account);

// Short, and another for other members.
std::string Fingerprint(std::string_view members);

// As it is stored: the epoch in the first line, then the members.
std::string PrintMembersFile(std::int64_t epoch, std::string_view members);

}  // namespace trainyard::job
