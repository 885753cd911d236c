// Tidying up behind processes that are gone: every event is there before, meanwhile and afterwards.
#include "trace/dead_slabs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "trace/process_identity.h"
#include "trace/reader.h"
#include "trace/test_directory.h"
#include "trace/trace_builder.h"

namespace memscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Where kCpu{Layer::kTensor, {Device::kCpu, Device::kNoIndex}};

struct Read {
  std::vector<uint64_t> addresses;
  std::vector<std::string> damage;
  std::string ended;
};

Read read_trace(const fs::path& directory) {
  Read read;
  auto opened = TraceReader::open(directory);
  if (!opened) {
    ADD_FAILURE() << opened.error().message;
    return read;
  }
  TraceReader& reader = opened.value();
  for (Event event; reader.next(event);) {
    if (event.kind == EventKind::kAlloc) read.addresses.push_back(event.addr);
  }
  read.damage = reader.damage();
  read.ended = reader.info().ended;
  return read;
}

// A process that is there until told to go; then a zombie; gone when waited for.
class Child {
 public:
  Child() {
    int go[2];
    int tell[2];
    EXPECT_EQ(pipe(go) | pipe(tell), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(go[1]);
      const ProcessIdentity own = own_identity();
      (void)!write(tell[1], &own, sizeof(own));
      char byte;
      (void)!read(go[0], &byte, 1);
      _exit(0);
    }
    close(go[0]);
    close(tell[1]);
    go_ = go[1];
    EXPECT_EQ(read(tell[0], &identity_, sizeof(identity_)), ssize_t{sizeof(identity_)});
    close(tell[0]);
  }
  ~Child() {
    if (go_ >= 0) gone();
  }
  void end() {  // and wait until it has, without taking its status
    close(go_);
    go_ = -1;
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void gone() {
    end();
    waitpid(pid_, nullptr, 0);
  }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  pid_t pid_ = 0;
  int go_ = -1;
  ProcessIdentity identity_;
};

void set_owner(const fs::path& directory, const ProcessIdentity& owner) {
  std::string slab = read_bytes(directory / kSlabName);
  std::memcpy(slab.data() + offsetof(SlabHeader, pid), &owner.pid, 8);
  std::memcpy(slab.data() + offsetof(SlabHeader, start_ticks), &owner.start_ticks, 8);
  std::memcpy(slab.data() + offsetof(SlabHeader, place), &owner.place, 8);
  write_bytes(directory / kSlabName, slab);
  std::string log = read_bytes(directory / kLogName);
  std::memcpy(log.data() + offsetof(LogHeader, pid), &owner.pid, 8);
  write_bytes(directory / kLogName, log);
}

// A trace as a death leaves it: lane 1 partly in the log, lane 2 in the slab alone.
class DeadSlabs : public testing::Test {
 protected:
  DeadSlabs() { make(process()); }
  fs::path process() const { return directory_ / "run-1" / "host-x-1"; }

  static void make(const fs::path& process) {
    TraceBuilder builder(process, {.process_record = false});
    LaneBuilder& lane = builder.lane(1);
    const uint32_t stack = lane.stack({{"a.py", "f", 1}});
    lane.alloc(10, 1, 8, kCpu, stack);
    lane.seal();
    lane.alloc(30, 3, 8, kCpu, stack);
    builder.lane(2).alloc(20, 2, 8, kCpu, 0);
    builder.lane(2).alloc(uint64_t{5} << 32, 4, 8, kCpu, 0);  // a long time: a Time record
    ASSERT_TRUE(builder.kill().ok());
  }
  static ProcessIdentity dead() {
    Child child;
    child.gone();
    return child.identity();
  }
  SealResult seal() const { return seal_dead_slab(process().c_str(), true); }

  void expect_whole() const {
    const Read read = read_trace(process());
    EXPECT_THAT(read.addresses, ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(read.damage, IsEmpty());
  }
  bool has_slab() const { return fs::exists(process() / kSlabName); }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(DeadSlabs, GoIntoTheLogAndAreDeleted) {
  set_owner(process(), dead());
  expect_whole();
  EXPECT_EQ(seal(), SealResult::kSealed);
  EXPECT_FALSE(has_slab());
  expect_whole();
  EXPECT_EQ(read_trace(process()).ended, "killed") << "nobody knows how, but it had no end";
  EXPECT_EQ(seal(), SealResult::kNoSlab);
}

// What we have appended when we are killed ourselves: any number of bytes.
TEST_F(DeadSlabs, LoseNothingWhereTheSealingIsCutShortAnywhere) {
  set_owner(process(), dead());
  const std::string log = read_bytes(process() / kLogName);
  const std::string slab = read_bytes(process() / kSlabName);
  ASSERT_EQ(seal(), SealResult::kSealed);
  const std::string sealed = read_bytes(process() / kLogName);
  ASSERT_GT(sealed.size(), log.size());
  for (size_t size = log.size(); size <= sealed.size(); ++size) {
    // The header's mark comes last of all.
    write_bytes(process() / kLogName,
                log.substr(0, sizeof(LogHeader)) +
                    sealed.substr(sizeof(LogHeader), size - sizeof(LogHeader)));
    write_bytes(process() / kSlabName, slab);
    expect_whole();
    ASSERT_EQ(seal(), SealResult::kSealed) << size;
    ASSERT_FALSE(has_slab());
    expect_whole();
  }
}

// The process died in the middle of an append: its slot is still in the slab.
TEST_F(DeadSlabs, ReplaceAChunkThatWasCutShort) {
  set_owner(process(), dead());
  const std::string log = read_bytes(process() / kLogName);
  const std::string slab = read_bytes(process() / kSlabName);
  for (size_t size = sizeof(LogHeader); size < log.size(); ++size) {
    write_bytes(process() / kLogName, log.substr(0, size));
    write_bytes(process() / kSlabName, slab);
    ASSERT_EQ(seal(), SealResult::kSealed) << size;
    expect_whole();
  }
}

TEST_F(DeadSlabs, StayWhileTheirProcessLives) {
  Child child;
  set_owner(process(), child.identity());
  EXPECT_EQ(seal(), SealResult::kAlive);
  child.end();  // a zombie by now: nobody has waited for it
  EXPECT_EQ(seal(), SealResult::kSealed);
  expect_whole();
}

TEST_F(DeadSlabs, AreKnownByTheStartOfTheirProcessWhereItsPidHasBeenReused) {
  ProcessIdentity earlier = own_identity();
  set_owner(process(), earlier);
  EXPECT_EQ(seal(), SealResult::kAlive);
  earlier.start_ticks -= 1;
  set_owner(process(), earlier);
  EXPECT_EQ(seal(), SealResult::kSealed);
}

// A pid of another machine or container says nothing here; nor does a slab that tells no owner.
TEST_F(DeadSlabs, StayWhereNobodyHereCanTell) {
  ProcessIdentity elsewhere = dead();
  ASSERT_NE(elsewhere.place, 0u);
  for (const uint64_t place : {uint64_t{0}, elsewhere.place + 1}) {
    elsewhere.place = place;
    set_owner(process(), elsewhere);
    EXPECT_EQ(seal(), SealResult::kAlive);
    EXPECT_TRUE(has_slab());
  }
}

TEST_F(DeadSlabs, StayAsTheyAreWhereSomethingIsDamaged) {
  set_owner(process(), dead());
  const std::string log = read_bytes(process() / kLogName);
  const std::string slab = read_bytes(process() / kSlabName);
  const auto untouched = [&](const std::string& a, const std::string& b) {
    write_bytes(process() / kLogName, a);
    write_bytes(process() / kSlabName, b);
    EXPECT_EQ(seal(), SealResult::kLeft);
    EXPECT_EQ(read_bytes(process() / kLogName), a);
    EXPECT_EQ(read_bytes(process() / kSlabName), b);
  };
  std::string damaged = log;
  damaged[sizeof(LogHeader) + 4] ^= 1;  // in a chunk's header
  untouched(damaged, slab);
  damaged = log;
  damaged[0] ^= 1;
  untouched(damaged, slab);
  damaged = slab;
  damaged[8] ^= 1;  // the format's version
  untouched(log, damaged);
}

TEST_F(DeadSlabs, AreSealedByOneAtATime) {
  set_owner(process(), dead());
  const int log = open((process() / kLogName).c_str(), O_RDWR);
  int tell[2];
  ASSERT_EQ(pipe(tell), 0);
  const pid_t other = fork();
  if (other == 0) {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    const char locked = fcntl(log, F_SETLK, &whole) == 0 ? 'y' : 'n';
    (void)!write(tell[1], &locked, 1);
    pause();
  }
  char locked = 0;
  ASSERT_EQ(read(tell[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  EXPECT_EQ(seal(), SealResult::kLeft);
  EXPECT_TRUE(has_slab());
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(seal(), SealResult::kSealed);
  close(log), close(tell[0]), close(tell[1]);
  expect_whole();
}

TEST_F(DeadSlabs, AreFoundWhereMetaJsonSays) {
  set_owner(process(), dead());
  const fs::path elsewhere = directory_ / "elsewhere.slab";
  fs::rename(process() / kSlabName, elsewhere);
  write_bytes(process() / kMetaName, R"({"schema":1,"slab":")" + elsewhere.string() + R"("})");
  EXPECT_EQ(seal_dead_slab(process().c_str(), false), SealResult::kNoSlab) << "did not look";
  EXPECT_EQ(seal(), SealResult::kSealed);
  EXPECT_FALSE(fs::exists(elsewhere));
  expect_whole();
}

TEST_F(DeadSlabs, OfARunAreCounted) {
  set_owner(process(), dead());
  const fs::path run = process().parent_path();
  make(run / "host-x-2");
  set_owner(run / "host-x-2", own_identity());
  make(run / "host-x-3");
  set_owner(run / "host-x-3", dead());
  write_bytes(run / "host-x-3" / kLogName, "no log");
  make(run / "host-x-4");
  fs::remove(run / "host-x-4" / kSlabName);
  std::atomic<uint32_t> stop = 1;
  EXPECT_EQ(seal_dead_slabs(run.c_str(), true, &stop).sealed, 0u);
  const SealCounts counts = seal_dead_slabs(run.c_str(), true);
  EXPECT_EQ(counts.sealed, 1u);
  EXPECT_EQ(counts.alive, 1u);
  EXPECT_EQ(counts.left, 1u);
  EXPECT_EQ(seal_dead_slabs((directory_ / "nowhere").c_str(), true).left, 0u);
}

}  // namespace
}  // namespace memscope
