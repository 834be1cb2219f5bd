#include "http/outbox.h"

#include <gtest/gtest.h>

namespace trainyard::http {
namespace {

std::shared_ptr<const std::string> OutPiece(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

TEST(Outbox, GivesWhatWasPutInHoweverLittleIsTakenAtATime) {
  for (std::size_t step = 1; step < 20; ++step) {
    Outbox box;
    box.Add("head ");
    box.Add("", OutPiece(std::string(40, 'p')));
    box.AddChunk(OutPiece("0123456789abcdef"));
    box.Add("end");
    std::vector<char> buffer(16);
    std::string out;
    std::size_t pieces = 0;
    while (!box.empty()) {
      const std::string_view next = box.Gather(buffer);
      ASSERT_FALSE(next.empty());
      const std::size_t taken = std::min(step, next.size());
      out += next.substr(0, taken);
      pieces += box.Consume(taken);
    }
    EXPECT_EQ(out, "head " + std::string(40, 'p') + "10\r\n0123456789abcdef\r\nend") << step;
    EXPECT_EQ(pieces, 56U);
  }
}

TEST(Outbox, OffersTheSameBytesAgainUntilTheyAreTaken) {
  Outbox box;
  box.Add("one");
  std::vector<char> buffer(16);
  EXPECT_EQ(box.Gather(buffer), "one");
  box.Add(" two");
  EXPECT_EQ(box.Gather(buffer), "one two");
}

}  // namespace
}  // namespace trainyard::http
