#include "replay/order.h"

#include <gtest/gtest.h>

namespace memscope {
namespace {

constexpr ThreadId kA{1}, kB{2};

TEST(AddressOrder, LateFreeOfAnotherThreadBelongsToTheDisplacedBlock) {
  AddressOrder order(10);
  order.displaced(7, kB, 99);
  EXPECT_FALSE(order.quiet());
  EXPECT_FALSE(order.takes(8, kA, 100)) << "another address";
  EXPECT_TRUE(order.takes(7, kA, 100));
  EXPECT_FALSE(order.takes(7, kA, 101)) << "taken already: this one frees the new block";
  EXPECT_EQ(order.ambiguous(), 0u);
}

TEST(AddressOrder, FreeOfTheSameThreadFreesItsOwnBlock) {
  AddressOrder order(10);
  order.displaced(7, kB, 99);
  EXPECT_FALSE(order.takes(7, kB, 100));
  EXPECT_TRUE(order.takes(7, kA, 101)) << "the late one still finds its note";
}

TEST(AddressOrder, BeyondTheSkewIsAmbiguous) {
  AddressOrder order(10);
  order.displaced(7, kB, 99);
  EXPECT_FALSE(order.takes(7, kA, 110));
  EXPECT_EQ(order.ambiguous(), 1u);
}

TEST(AddressOrder, AnOpenNoteCountsAsAmbiguous) {
  AddressOrder order(10);
  order.displaced(7, kB, 99);
  EXPECT_EQ(order.ambiguous(), 1u);
}

TEST(AddressOrder, NotesAreBounded) {
  AddressOrder order(1'000'000);
  for (uint64_t i = 0; i < 10 * AddressOrder::kMaxNotes; ++i) order.displaced(i, kA, 100);
  EXPECT_EQ(order.ambiguous(), 10 * AddressOrder::kMaxNotes) << "each once, dropped or open";
}

TEST(AddressOrder, UnknownFreeJustBeforeAnotherThreadsAllocMayBeIts) {
  AddressOrder order(10);
  order.unknown_free(7, kA, 100);
  EXPECT_TRUE(order.unknown_near(110));
  EXPECT_FALSE(order.unknown_near(111));
  EXPECT_FALSE(order.maybe_freed(7, kA, 101)) << "one thread's own order is certain";
  EXPECT_TRUE(order.maybe_freed(7, kB, 101));
  EXPECT_FALSE(order.maybe_freed(7, kB, 102));
}

}  // namespace
}  // namespace memscope
