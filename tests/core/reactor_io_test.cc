// Goal: every reactor keeps the contract of core/reactor.h about I/O.
// Method: the same coroutines run on all kinds; what needs real descriptors or threads on the real
// ones. Nothing depends on how long anything takes: long deadlines stand for "never".

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/io_at_once.h"
#include "core/owned_fd.h"
#include "core/remote.h"
#include "tests/core/reactor_log.h"
#include "tests/core/remote_reactor.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {
Task<void> write_and_read_back(Reactor* reactor, int fd) {
    const auto nothing = co_await reactor->nop();
    ENSURE(nothing.has_value() && *nothing == 0);
    const auto file = reactor->attach(fd);
    ENSURE(file.has_value());
    std::string text = "0123456789";
    const auto written = co_await reactor->write(*file, buffer_of(text), 5);
    ENSURE(written.has_value() && *written == 10);
    const auto data_synced = co_await reactor->sync_data(*file);
    ENSURE(data_synced.has_value() && *data_synced == 0);
    const auto synced = co_await reactor->sync(*file);
    ENSURE(synced.has_value() && *synced == 0);

    std::string back(64, '?');
    const auto read = co_await reactor->read(*file, buffer_of(back), 5);
    ENSURE(read.has_value() && *read == 10);  // A short read at the end is a length.
    ENSURE(back.substr(0, 11) == "0123456789?");
    const auto beyond = co_await reactor->read(*file, buffer_of(back), 4096);
    ENSURE(beyond.has_value() && *beyond == 0);
    reactor->detach(*file);
}
}  // namespace

TEST_CASE("core reactor: a file on disk or in memory is written, synced and read back", "[core]") {
    const Kind kind = any_kind();
    const bool in_memory = GENERATE(false, true);
    CAPTURE(kind, in_memory);
    Harness harness(kind);
    const TempFile temp_file;
    const MemoryFile memory_file;

    harness.run(
        write_and_read_back(&harness.reactor(), in_memory ? memory_file.fd() : temp_file.fd()));

    REQUIRE(harness->stats().io_submitted.get() == harness->stats().io_completed.get());
}

// Devices are nodes of devtmpfs, which says that it is a tmpfs.
TEST_CASE("core io: a file of tmpfs is in memory, and no device is", "[core]") {
    const MemoryFile memory_file;
    const OwnedFd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
    REQUIRE(device.get() >= 0);

    CHECK(is_in_memory(memory_file.fd()));
    CHECK_FALSE(is_in_memory(device.get()));
    CHECK_FALSE(is_in_memory(-1));
}

namespace {
Task<void> note_when_done(Reactor* reactor, File file, std::string* order, char name) {
    std::string into(8, '?');
    const auto read = co_await reactor->read(file, buffer_of(into), 0);
    ENSURE(read.has_value());
    order->push_back(name);
}
Task<void> read_beside(Reactor* reactor, int fd, std::string* order) {
    const auto file = reactor->attach(fd);
    ENSURE(file.has_value());
    Gate gate;
    reactor->spawn(gate, note_when_done(reactor, *file, order, 'a'));
    reactor->spawn(gate, note_when_done(reactor, *file, order, 'b'));
    order->push_back('1');
    co_await reactor->yield();
    order->push_back('2');
    co_await gate.close(*reactor);
    reactor->detach(*file);
}
}  // namespace

TEST_CASE("core reactor: reads of memory are over in a later turn, in order", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const MemoryFile file;
    std::string order;

    harness.run(read_beside(&harness.reactor(), file.fd(), &order));

    REQUIRE(order == "12ab");
}

namespace {
Task<Result<std::uint32_t>> read_once(Reactor* reactor, File file, WaitOptions wait) {
    std::string into(16, '?');
    co_return co_await reactor->read(file, buffer_of(into), 0, wait);
}
Task<Result<std::uint32_t>> poll_once(Reactor* reactor, int fd, std::uint32_t events,
                                      WaitOptions wait) {
    co_return co_await reactor->poll(fd, events, wait);
}
}  // namespace

TEST_CASE("core reactor: a bad descriptor is an error with its errno", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);

    const auto read = harness.run(read_once(&harness.reactor(), File{.fd = -1}, {}));

    REQUIRE(!read.has_value());
    REQUIRE(read.error().code == Errc::kInvalid);
    REQUIRE(read.error().os_errno == EBADF);
}

TEST_CASE("core reactor: polling a bad descriptor is an error", "[core]") {
    const Kind kind = real_kind();
    const int fd = GENERATE(-1, 987'654);
    CAPTURE(kind, fd);
    Harness harness(kind);
    const WaitOptions wait{.deadline = after(harness->now(), 60s)};

    const auto polled = harness.run(poll_once(&harness.reactor(), fd, POLLIN, wait));

    REQUIRE(!polled.has_value());
    REQUIRE(polled.error().os_errno == EBADF);
}

TEST_CASE("core reactor: the simulated world has nothing to poll", "[core]") {
    Harness harness(Kind::kVirtual);
    const TempFile file;

    const auto polled = harness.run(poll_once(&harness.reactor(), file.fd(), POLLIN, {}));

    REQUIRE(!polled.has_value());
    REQUIRE(polled.error().code == Errc::kUnsupported);
}

namespace {
Task<void> write_slots(Reactor* reactor, std::vector<File>* files) {
    for (std::size_t i = 0; i < files->size(); ++i) {
        std::string text = "file " + std::to_string(i);
        const auto written = co_await reactor->write((*files)[i], buffer_of(text), 0);
        ENSURE(written.has_value() && *written == text.size());
    }
    for (std::size_t i = 0; i < files->size(); ++i) {
        const std::string want = "file " + std::to_string(i);
        std::string back(want.size(), '?');
        const auto read = co_await reactor->read((*files)[i], buffer_of(back), 0);
        ENSURE(read.has_value() && *read == want.size());
        ENSURE(back == want);
    }
}
}  // namespace

TEST_CASE("core reactor: more files than slots, and slots used again", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind, {.file_entries = 3});
    std::vector<std::unique_ptr<TempFile>> temporary;
    for (int i = 0; i < 5; ++i) temporary.push_back(std::make_unique<TempFile>());

    for (int round = 0; round < 3; ++round) {
        std::vector<File> files;
        for (const auto& each : temporary) {
            const auto attached = harness->attach(each->fd());
            REQUIRE(attached.has_value());
            files.push_back(*attached);
        }
        harness.run(write_slots(&harness.reactor(), &files));
        for (const File& file : files) harness->detach(file);
        std::ranges::reverse(temporary);
    }
}

namespace {
Task<void> through_region(Reactor* reactor, int fd, Buffer region) {
    const Buffer first{.data = region.data, .size_bytes = 4096, .region = region.region};
    const Buffer second{.data = region.data + 8192, .size_bytes = 4096, .region = region.region};
    for (std::size_t i = 0; i < 4096; ++i) first.data[i] = static_cast<std::byte>(i % 251);
    const auto written = co_await reactor->write(File{.fd = fd}, first, 0);
    ENSURE(written.has_value() && *written == 4096);
    const auto read = co_await reactor->read(File{.fd = fd}, second, 0);
    ENSURE(read.has_value() && *read == 4096);
    ENSURE(std::ranges::equal(first.span(), second.span()));
}
}  // namespace

TEST_CASE("core reactor: memory of a registered region is written and read", "[core]") {
    const Kind kind = GENERATE(Kind::kUring, Kind::kVirtual);
    CAPTURE(kind);
    Harness harness(kind, {.region_entries = 1});
    const TempFile file;
    std::vector<std::byte> memory(64UL * 1024);
    for (int round = 0; round < 3; ++round) {
        const auto region = harness->attach_region(memory);
        REQUIRE(region.has_value());
        REQUIRE(region->region >= 0);
        harness.run(through_region(&harness.reactor(), file.fd(), *region));
        harness->detach_region(*region);
    }
}

TEST_CASE("core reactor: regions beyond the table are refused, files of poll have none", "[core]") {
    std::vector<std::byte> memory(4096);
    Harness uring(Kind::kUring, {.region_entries = 1});
    const auto first = uring->attach_region(memory);
    REQUIRE(first.has_value());
    REQUIRE(uring->attach_region(memory).error().code == Errc::kNoSpace);
    uring->detach_region(*first);

    Harness poll(Kind::kPoll);
    REQUIRE(poll->attach_region(memory).error().code == Errc::kUnsupported);
}

namespace {
enum class Ending { kDeadline, kPastDeadline, kCancel, kCancelledBefore };
}

TEST_CASE("core reactor: I/O that never completes ends by deadline or cancel", "[core]") {
    const Kind kind = real_kind();
    // poll(2) reads files only, and blocks in them.
    const bool read = kind == Kind::kPoll ? false : GENERATE(true, false);
    const auto ending = GENERATE(Ending::kDeadline, Ending::kPastDeadline, Ending::kCancel,
                                 Ending::kCancelledBefore);
    CAPTURE(kind, read, static_cast<int>(ending));
    Harness harness(kind);
    const Pipe pipe;
    Gate gate;
    CancelSource source;
    WaitOptions wait{.cancel = &source};
    if (ending == Ending::kDeadline) wait.deadline = after(harness->now(), 1ms);
    if (ending == Ending::kPastDeadline) wait.deadline = Instant{};
    if (ending == Ending::kCancel) {
        harness->spawn(gate, cancel_later(&harness.reactor(), &source, 3));
    }
    if (ending == Ending::kCancelledBefore) source.cancel();

    Reactor* const reactor = &harness.reactor();
    const auto ended = harness.run(read ? read_once(reactor, File{.fd = pipe.read_end()}, wait)
                                        : poll_once(reactor, pipe.read_end(), POLLIN, wait));

    REQUIRE(!ended.has_value());
    const bool by_time = ending == Ending::kDeadline || ending == Ending::kPastDeadline;
    REQUIRE(ended.error().code == (by_time ? Errc::kTimedOut : Errc::kCancelled));
    REQUIRE(harness->stats().io_submitted.get() == harness->stats().io_completed.get());
    drain(harness, gate);
}

namespace {
// Returns with what the kernel put into the buffer although the wait was cancelled; the buffer
// lives in this frame, so that a kernel that wrote later would write into freed memory.
Task<Result<std::uint32_t>> cancel_at_once(Reactor* reactor, int fd, CancelSource* source) {
    std::string into(4096, '?');
    const WaitOptions wait{.cancel = source};
    const auto read = co_await reactor->read(File{.fd = fd}, buffer_of(into), 0, wait);
    if (read) ENSURE(into.substr(0, *read) == std::string(*read, 'x'));
    co_return read;
}
Task<void> write_then_cancel(Reactor* reactor, const Pipe* pipe, CancelSource* source, int rounds) {
    for (int i = 0; i < rounds; ++i) co_await reactor->yield();
    pipe->write("xxxx");
    source->cancel();
}
}  // namespace

TEST_CASE("core reactor: a cancel that races the completion gives one of the two", "[core]") {
    for (int rounds = 0; rounds < 200; ++rounds) {
        Harness harness(Kind::kUring);
        const Pipe pipe;
        Gate gate;
        CancelSource source;
        harness->spawn(gate, write_then_cancel(&harness.reactor(), &pipe, &source, 1 + rounds % 4));

        const auto read = harness.run(cancel_at_once(&harness.reactor(), pipe.read_end(), &source));

        REQUIRE((read ? *read == 4 : read.error().code == Errc::kCancelled));
        drain(harness, gate);
    }
}

namespace {
struct TwoFds {
    int poll_this;
    int write_that;
};
TwoFds make_pair_of(const std::string& what) {
    int ends[2] = {-1, -1};
    if (what == "pipe") {
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    } else if (what == "socket") {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    } else {
        ends[0] = ::eventfd(0, EFD_CLOEXEC);
        ends[1] = ::dup(ends[0]);
    }
    return {.poll_this = ends[0], .write_that = ends[1]};
}
Task<void> write_later(Reactor* reactor, int fd) {
    co_await reactor->yield();
    co_await reactor->yield();
    const std::uint64_t one = 1;
    ENSURE(::write(fd, &one, sizeof one) == sizeof one);
}
}  // namespace

TEST_CASE("core reactor: poll sees present and later events", "[core]") {
    const Kind kind = real_kind();
    const std::string what = GENERATE("pipe", "socket", "eventfd");
    const bool before = GENERATE(true, false);
    CAPTURE(kind, what, before);
    Harness harness(kind);
    const TwoFds fds = make_pair_of(what);
    Gate gate;
    if (before) {
        const std::uint64_t one = 1;
        REQUIRE(::write(fds.write_that, &one, sizeof one) == sizeof one);
    } else {
        harness->spawn(gate, write_later(&harness.reactor(), fds.write_that));
    }

    const auto polled = harness.run(poll_once(&harness.reactor(), fds.poll_this, POLLIN, {}));

    REQUIRE(polled.has_value());
    REQUIRE((*polled & POLLIN) != 0);
    drain(harness, gate);
    ::close(fds.poll_this);
    ::close(fds.write_that);
}

namespace {
Task<void> read_number(Reactor* reactor, int fd, std::uint32_t index, int* right) {
    std::uint32_t number = 0;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    const auto read = co_await reactor->read(File{.fd = fd}, buffer_of(bytes),
                                             std::uint64_t{index} * sizeof number);
    if (read && *read == sizeof number && number == index) ++*right;
}
Task<void> do_nop(Reactor* reactor, int* right) {
    const auto done = co_await reactor->nop();
    if (done) ++*right;
}
}  // namespace

TEST_CASE("core reactor: far more operations at once than the ring has entries", "[core]") {
    constexpr std::uint32_t kCount = 2500;
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind, {.submission_entries = 8});
    const TempFile file;
    std::vector<std::uint32_t> numbers(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i) numbers[i] = i;
    const auto size = static_cast<ssize_t>(kCount * sizeof numbers[0]);
    REQUIRE(::pwrite(file.fd(), numbers.data(), static_cast<std::size_t>(size), 0) == size);
    Gate gate;
    int right = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
        harness->spawn(gate, read_number(&harness.reactor(), file.fd(), i, &right));
        harness->spawn(gate, do_nop(&harness.reactor(), &right));
    }

    drain(harness, gate);

    REQUIRE(right == 2 * kCount);
}

namespace {
Task<void> poll_until_cancel(Reactor* reactor, int fd, CancelSource* source, int* cancelled) {
    const WaitOptions wait{.cancel = source};
    const auto polled = co_await reactor->poll(fd, POLLIN, wait);
    if (!polled && polled.error().code == Errc::kCancelled) ++*cancelled;
}
}  // namespace

TEST_CASE("core reactor: a great many waits are cancelled at once", "[core]") {
    constexpr int kCount = 500;
    const Kind kind = real_kind();
    const int rounds = GENERATE(1, 4);
    CAPTURE(kind, rounds);
    Harness harness(kind, {.submission_entries = 8});
    const Pipe pipe;
    Gate gate;
    CancelSource source;
    int cancelled = 0;
    for (int i = 0; i < kCount; ++i) {
        harness->spawn(gate,
                       poll_until_cancel(&harness.reactor(), pipe.read_end(), &source, &cancelled));
    }
    harness->spawn(gate, cancel_later(&harness.reactor(), &source, rounds));

    drain(harness, gate);

    REQUIRE(cancelled == kCount);
}

namespace {
Task<Result<std::uint32_t>> read_huge(Reactor* reactor, int fd, std::span<std::byte> memory) {
    // The address space is mapped without pages: only what the file holds is ever touched.
    co_return co_await reactor->read(File{.fd = fd}, buffer_of(memory), 0);
}
}  // namespace

TEST_CASE("core reactor: a buffer of 4 GiB is not mistaken for an empty one", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    constexpr std::size_t kSize = 4ULL << 30;
    Harness harness(kind);
    const TempFile file;
    REQUIRE(::pwrite(file.fd(), "hello", 5, 0) == 5);
    void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);

    const auto read = harness.run(read_huge(&harness.reactor(), file.fd(),
                                            std::span(static_cast<std::byte*>(memory), kSize)));

    REQUIRE(read.has_value());
    REQUIRE(*read == 5);
    ::munmap(memory, kSize);
}

TEST_CASE("core reactor: a ring that goes away on another thread leaves this one's alone",
          "[core]") {
    // The kernel itself protects the default kind of ring; others it does not.
    const auto mine = make_real_reactor(Kind::kUring, {}, {.sqpoll = true});
    const TempFile file;
    mine->run_until_done(write_and_read_back(mine.get(), file.fd()));
    {
        RemoteReactor other(Kind::kUring, {}, {.sqpoll = true});
        REQUIRE(mine->run_until_done(remote_results(mine.get(), &other.reactor())) == 233);
        other.stop();
    }  // Destroyed here, though another thread used it.

    const WaitOptions wait{.deadline = after(mine->now(), 20ms)};
    const Pipe pipe;
    const auto turns = mine->stats().turns.get();
    const auto polled = mine->run_until_done(poll_once(mine.get(), pipe.read_end(), POLLIN, wait));
    REQUIRE(polled.error().code == Errc::kTimedOut);
    REQUIRE(mine->stats().turns.get() - turns < 100);  // It slept.
    mine->run_until_done(write_and_read_back(mine.get(), file.fd()));
}

namespace {
struct Chain final : IoOp {
    explicit Chain(Reactor& owner) : IoOp(&on_done), reactor(owner) {}
    static void on_done(IoOp& op) {
        auto& self = static_cast<Chain&>(op);
        self.results.push_back(self.result);
        self.reactor.post(self.message);
        if (self.results.size() < 5) self.reactor.submit(self);
    }
    Reactor& reactor;
    std::vector<int> results;
    std::vector<int> delivered;
    struct Note final : Message {
        explicit Note(Chain& owner) : Message(&on_deliver), chain(owner) {}
        static void on_deliver(Message& message) {
            Chain& chain = static_cast<Note&>(message).chain;
            chain.delivered.push_back(1);
        }
        Chain& chain;
    } message{*this};
};
Task<void> until_delivered(Reactor* reactor, const Chain* chain) {
    while (chain->delivered.size() < 5) {
        const auto slept = co_await reactor->sleep_for(100us);
        ENSURE(slept.has_value());
    }
}
}  // namespace

TEST_CASE("core reactor: a completion may post and submit again", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Chain chain(harness.reactor());
    harness->submit(chain);

    harness.run(until_delivered(&harness.reactor(), &chain));

    REQUIRE(chain.results == std::vector<int>{0, 0, 0, 0, 0});
}
