#include "capture/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "trace/test_directory.h"

namespace memscope::capture {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::atomic<int> children_that_ended = 0;

// What a program may have: a handler for SIGCHLD.
class HelperProcess : public testing::Test {
 protected:
  void SetUp() override {
    children_that_ended = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ++children_that_ended; };
    ASSERT_EQ(sigaction(SIGCHLD, &action, &before_), 0);
  }
  void TearDown() override { sigaction(SIGCHLD, &before_, nullptr); }

  // A shell that does this.
  pid_t start(const std::string& script) {
    script_ = script;
    const char* const arguments[] = {"/bin/sh", "-c", script_.c_str(), nullptr};
    return start_helper(arguments);
  }
  static void wait_for_end() {
    while (helper_runs()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::string said() const {
    std::ifstream file(directory_.path() / "said");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string file() const { return (directory_.path() / "said").string(); }

  TestDirectory directory_;

 private:
  std::string script_;
  struct sigaction before_ {};
};

void expect_no_child() {
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, 0), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(HelperProcess, IsNoChildOfTheProgram) {
  ASSERT_GT(start("sleep 0.2; echo done > " + file()), 0);
  EXPECT_TRUE(helper_runs());
  expect_no_child();  // and does not wait
  EXPECT_EQ(said(), "");
  wait_for_end();
  EXPECT_EQ(said(), "done\n");
  expect_no_child();
  EXPECT_EQ(children_that_ended, 0);
}

// As process 1 of a container, or what has asked for it: then an orphan would be a child.
TEST_F(HelperProcess, NorOfAProgramThatTakesInOrphans) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ASSERT_GT(start("sleep 0.2; echo done > " + file()), 0);
  expect_no_child();
  EXPECT_TRUE(helper_runs());
  wait_for_end();
  EXPECT_EQ(said(), "done\n");
  expect_no_child();
  EXPECT_EQ(children_that_ended, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(HelperProcess, NorWhereOrphansAreTakenInAndChildrenIgnored) {
  signal(SIGCHLD, SIG_IGN);
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ASSERT_GT(start("sleep 0.1; echo done > " + file()), 0);
  wait_for_end();
  EXPECT_EQ(said(), "done\n");
  expect_no_child();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// The parent of a process, 0 where there is no such process any more.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || text[name_end + 2] == 'Z') return 0;
  return static_cast<pid_t>(std::stol(text.substr(name_end + 4)));
}

pid_t child_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid != 0 && parent_of(pid) == parent) return pid;
  }
  return 0;
}

// It shares the program's memory, which must not outlive the program.
TEST_F(HelperProcess, TheParentThatStaysDoesNotOutliveTheProgram) {
  const pid_t program = fork();
  if (program == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    _exit(start("exec sleep 60") > 0 && pause() != 0 ? 0 : 1);
  }
  pid_t parent = 0, helper = 0;
  while (helper == 0) {
    parent = child_of(program);
    helper = parent == 0 ? 0 : child_of(parent);
  }
  kill(program, SIGKILL);
  while (waitpid(program, nullptr, 0) < 0 && errno == EINTR) {
  }
  while (parent_of(parent) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(parent_of(helper), 0) << "which goes on meanwhile";
  kill(helper, SIGKILL);
}

TEST_F(HelperProcess, AChildOfTheProgramIsStillWaitedFor) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(100'000);
    _exit(7);
  }
  ASSERT_GT(start("sleep 0.01"), 0);  // ends first
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(-1, &status, 0)) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(ended, child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(children_that_ended, 1);  // the child
  wait_for_end();
  EXPECT_EQ(children_that_ended, 1);
}

TEST_F(HelperProcess, HasNothingOfTheProgramsButTheLibraryPath) {
  const int fd = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(fd, 3);
  const int high = fcntl(fd, F_DUPFD, 700);
  setenv("SECRET_OF_THE_PROGRAM", "1", 1);
  setenv("LD_LIBRARY_PATH", "/a:/b", 1);
  ASSERT_GT(start("exec > " + file() +
                  "; ls /proc/$$/fd; readlink /proc/$$/fd/0; readlink /proc/$$/fd/2; env;"
                  " echo session $(cut -d' ' -f6 /proc/$$/stat) of $$"),
            0);
  wait_for_end();
  close(fd);
  close(high);
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("SECRET_OF_THE_PROGRAM");
  EXPECT_THAT(said(), StartsWith("0\n1\n2\n/dev/null\n/dev/null\n"));
  EXPECT_THAT(said(), HasSubstr("\nLD_LIBRARY_PATH=/a:/b\n"));
  EXPECT_THAT(said(), HasSubstr("\nMSMEMSCOPE_DISABLE=1\n"));
  EXPECT_THAT(said(), Not(HasSubstr("SECRET")));
  // Leader of a session of its own: "session 12 of 12".
  const size_t at = said().find("session ");
  ASSERT_NE(at, std::string::npos);
  const std::string line = said().substr(at, said().find('\n', at) - at);
  const size_t of = line.find(" of ");
  EXPECT_EQ(line.substr(8, of - 8), line.substr(of + 4));
}

TEST_F(HelperProcess, OneThatCannotBeStartedIsNone) {
  const char* const arguments[] = {"/no/such/program", nullptr};
  EXPECT_EQ(start_helper(arguments), 0);
  EXPECT_FALSE(helper_runs());
  expect_no_child();
}

TEST_F(HelperProcess, OneThatIsKilledHasEnded) {
  const pid_t helper = start("exec sleep 60");
  ASSERT_GT(helper, 0);
  EXPECT_TRUE(helper_runs());
  kill(helper, SIGKILL);
  wait_for_end();
  expect_no_child();
  EXPECT_EQ(children_that_ended, 0);
}

}  // namespace
}  // namespace memscope::capture
