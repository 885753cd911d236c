#include "capture/process_stat.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace memscope::capture {
namespace {

TEST(ProcessStat, OfThisProcess) {
  ProcessStat process, thread;
  ASSERT_TRUE(read_process_stat(getpid(), &process));
  EXPECT_EQ(process.state, 'R');
  EXPECT_GT(process.start_ticks, 0u);
  ASSERT_TRUE(read_thread_stat(getpid(), &thread));
  EXPECT_EQ(thread.start_ticks, process.start_ticks) << "the main thread began with it";
}

TEST(ProcessStat, AnEndedChildIsAZombieUntilSomebodyWaits) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  ProcessStat stat;
  ASSERT_TRUE(read_process_stat(child, &stat));
  EXPECT_EQ(stat.state, 'Z');
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(read_process_stat(child, &stat));
}

// The name stands in parentheses between pid and state.
TEST(ProcessStat, ANameMayHoldParenthesesAndBlanks) {
  char before[16];
  prctl(PR_GET_NAME, before);
  ProcessStat plain, odd;
  ASSERT_TRUE(read_process_stat(getpid(), &plain));
  prctl(PR_SET_NAME, ") Z (1 2) 3");
  ASSERT_TRUE(read_process_stat(getpid(), &odd));
  prctl(PR_SET_NAME, before);
  EXPECT_EQ(odd.state, 'R');
  EXPECT_EQ(odd.start_ticks, plain.start_ticks);
}

}  // namespace
}  // namespace memscope::capture
