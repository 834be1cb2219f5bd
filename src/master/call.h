// One question of a worker that waits for its answer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "master/rpc/sessions.h"
#include "master/wire.pb.h"

namespace trainyard::master {

struct Call {
  std::shared_ptr<Session> session;
  std::uint64_t number = 0;

  void Reply(wire::Answer answer, std::vector<ps::Payload> payloads = {}) const {
    answer.set_number(number);
    session->Send(answer, std::move(payloads));
  }
  void Refuse(const absl::Status& why) const {
    wire::Answer answer;
    answer.set_code(static_cast<std::int32_t>(why.code()));
    answer.set_message(std::string(why.message()));
    Reply(std::move(answer));
  }
};

}  // namespace trainyard::master
