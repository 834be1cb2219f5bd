// What a graph puts out, as lines of its log: for people, and for the dashboard, which plots them.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/pace.h"
#include "ps/tables.h"

namespace trainyard::ps {

// "mean_0=0.0573 acc=0.91"; of values with one number each. Pure.
std::string PrintOutputLine(const Output& output);

// Used by one thread.
class OutputLines {
 public:
  OutputLines(Clock& clock, std::string graph);
  // Writes what was put out last, if it is not written.
  ~OutputLines();
  OutputLines(const OutputLines&) = delete;
  OutputLines& operator=(const OutputLines&) = delete;

  // Writes it, or not, if it was written a moment ago.
  void Add(Output output);

 private:
  void Write();

  Clock& clock_;
  const std::string graph_;
  Pace pace_;
  Output last_;  // without values: it is written
};

}  // namespace trainyard::ps
