#include "ps/output_lines.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace trainyard::ps {

std::string PrintOutputLine(const Output& output) {
  std::string line;
  for (const OutputValue& value : output.values) {
    if (value.values.size() != 1) continue;
    StrAppend(line, line.empty() ? "" : " ", value.name, "=", fmt::format("{:.6g}", value.values.front()));
  }
  return line;
}

OutputLines::OutputLines(Clock& clock, std::string graph)
    : clock_(clock), graph_(std::move(graph)), pace_(clock.Steady()) {}

OutputLines::~OutputLines() { Write(); }

void OutputLines::Add(Output output) {
  last_ = std::move(output);
  if (pace_.Take(clock_.Steady())) Write();
}

void OutputLines::Write() {
  const std::string line = PrintOutputLine(last_);
  if (!line.empty()) log::Info(line, {{"pass", last_.pass}, {"step", last_.step}, {"graph", graph_}});
  last_ = {};
}

}  // namespace trainyard::ps
