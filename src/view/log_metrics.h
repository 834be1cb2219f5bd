// What a line of a training script's log tells of its learning: "step 12 loss 0.3", "val_accuracy: 0.91".
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::view {

// Names and values, in the order in which they stand there. A name is taken
// - if one of its words is that of a common metric (loss, accuracy, ...), whatever stands between it and its
//   number: "loss 0.3", "loss=0.3", "train_loss: 0.3", {"loss": 0.3};
// - in a line that also says where it is (step=12, epoch 3, ...), if it is written NAME=NUMBER.
// Values that are no finite number are left out.
std::vector<std::pair<std::string, double>> ParseMetrics(std::string_view line);

}  // namespace trainyard::view
