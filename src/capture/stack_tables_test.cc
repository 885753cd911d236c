#include "capture/stack_tables.h"

#include <gtest/gtest.h>

#include <vector>

#include "capture/agent_state.h"
#include "capture/native_stack.h"

namespace memscope::capture {
namespace {

TEST(FixedTable, FindsWhatWasInsertedAndNothingElse) {
  std::vector<char> memory(FixedTable::bytes_for(64));
  FixedTable table;
  table.attach(memory.data(), 64);
  EXPECT_EQ(table.find(5), 0u);
  table.insert(5, 50);
  table.insert(5 + 64, 51);  // the same place: goes to the next
  EXPECT_EQ(table.find(5), 50u);
  EXPECT_EQ(table.find(5 + 64), 51u);
  EXPECT_EQ(table.find(5 + 128), 0u);
}

TEST(FixedTable, IsFullBeforeLookUpsCouldRunForEver) {
  std::vector<char> memory(FixedTable::bytes_for(64));
  FixedTable table;
  table.attach(memory.data(), 64);
  uint64_t key = 1;
  while (!table.full()) table.insert(key++, 1);
  EXPECT_GE(table.used(), 40u);
  EXPECT_LT(table.used(), 64u) << "an empty place ends a look-up";
  table.clear();
  EXPECT_EQ(table.find(1), 0u);
  EXPECT_FALSE(table.full());
}

TEST(StackTables, TheDeepestStackFitsIntoEmptyTables) {
  // Every frame may need a node and a frame; a table takes three quarters of its places.
  for (const auto& sizes : {StackTables::kLarge, StackTables::kSmall}) {
    std::vector<char> memory(StackTables::bytes_for(sizes));
    StackTables tables;
    tables.attach(memory.data(), sizes);
    EXPECT_LE(tables.max_frames, sizes.nodes * 3 / 4);
    EXPECT_LE(tables.max_frames, sizes.frames * 3 / 4);
  }
}

TEST(StackTables, AllLanesTogetherStayWithinTheAgentsEightMebibytes) {
  EXPECT_LE(kLargeLanes * StackTables::bytes_for(StackTables::kLarge) +
                (kLanes - kLargeLanes) * StackTables::bytes_for(StackTables::kSmall) +
                native_stack::memory_bytes(),
            size_t{8} << 20);
}

}  // namespace
}  // namespace memscope::capture
