#include "tasks/task.h"

#include "base/text.h"

namespace trainyard::tasks {

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kTraining:
      return "training";
    case Kind::kEvaluation:
      return "evaluation";
    case Kind::kPrediction:
      return "prediction";
  }
  return "";
}

std::string Describe(const Task& task) {
  std::string text = StrCat("records [", task.records.begin, ", ", task.records.end, ") of ");
  switch (task.kind) {
    case Kind::kTraining:
      return StrCat(text, "epoch ", task.epoch + 1);
    case Kind::kEvaluation:
      return StrCat(text, "the evaluation of version ", task.version);
    case Kind::kPrediction:
      return StrCat(text, "the prediction");
  }
  return text;
}

}  // namespace trainyard::tasks
