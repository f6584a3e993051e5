// Goal: what is emitted is in the log, in its format, on one line, or is counted there.
// Method: a log with a clock that stands still, writing into a memory file or a pipe.
#include "daemon/log.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "daemon/log_writer.h"
#include "daemon/open_metrics.h"
#include "tests/catch.h"
#include "tests/daemon/fake_clock.h"

namespace log_test {

using namespace fopd;
using namespace fopd::daemon;
using core::Field;
using core::Level;

namespace {

constexpr Duration kLong = 30s;

std::string read_from_start(int fd) {
    std::string text;
    std::array<char, 65536> part{};
    for (off_t at = 0;; at = static_cast<off_t>(text.size())) {
        const ssize_t size = pread(fd, part.data(), part.size(), at);
        if (size <= 0) return text;
        text.append(part.data(), static_cast<std::size_t>(size));
    }
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t start = 0;
    for (std::size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
        lines.push_back(text.substr(start, end - start));
    }
    REQUIRE(start == text.size());
    return lines;
}

// A log into a memory file.
struct Fixture {
    explicit Fixture(LogFormat format = LogFormat::kText, Level level = Level::kInfo)
        : fd(memfd_create("log", MFD_CLOEXEC)) {
        REQUIRE(fd >= 0);
        auto started = Log::start({.level = level, .format = format, .fd = fd}, clock);
        REQUIRE(started.has_value());
        log = std::move(*started);
    }
    ~Fixture() {
        log.reset();
        close(fd);
    }

    std::string text() const {
        REQUIRE(log->flush(kLong));
        return read_from_start(fd);
    }

    FakeClock clock;
    int fd;
    std::unique_ptr<Log> log;
};

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
        reader = ends[0];
        writer = ends[1];
    }
    ~Pipe() {
        close(reader);
        close(writer);
    }
    int reader;
    int writer;
};

// The number after `key` in a line of the text format.
std::uint64_t count_in(const std::string& line, const std::string& key) {
    const std::size_t at = line.find(key);
    if (at == std::string::npos) return 0;
    return std::strtoull(line.c_str() + at + key.size(), nullptr, 10);
}

// What the lines account for: themselves, or the count they report.
std::uint64_t accounted_for(const std::vector<std::string>& lines) {
    std::uint64_t sum = 0;
    for (const std::string& line : lines) {
        const std::uint64_t reported = count_in(line, " count=");
        sum += reported > 0 ? reported : 1;
    }
    return sum;
}

}  // namespace

TEST_CASE("log text: time, level, event and fields stand on one line", "[daemon][log]") {
    Fixture log;

    core::emit(*log.log, Level::kInfo, "daemon.ready",
               {{"localities", std::uint64_t{2}},
                {"offset", std::int64_t{-7}},
                {"share", 0.25},
                {"dev", true},
                {"hash", std::string_view("ab12")}});

    REQUIRE(log.text() ==
            "2026-11-21T08:22:34.123456Z info fopd.daemon.ready localities=2 offset=-7 share=0.25 "
            "dev=true hash=ab12\n");
}

TEST_CASE("log text: values that would break the line are quoted and escaped", "[daemon][log]") {
    Fixture log;

    core::emit(*log.log, Level::kWarn, "x.y",
               {{"a", std::string_view("with blanks \"quoted\" \n done")},
                {"b", std::string_view("")},
                {"c", std::string_view("\x1b[31m\xff\xc3\xa9\x7f")},
                {"d", std::string_view("a=b")},
                {"e", std::string_view("back\\slash")},
                {"f", std::string_view("\xc2\x9b\xe2\x80\xa8\xe2\x80\xae")},
                {"g", std::string_view("nul\0nul", 7)},
                {"h", std::string_view("\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80")}});

    REQUIRE(log.text() ==
            "2026-11-21T08:22:34.123456Z warn fopd.x.y "
            R"(a="with blanks \"quoted\" \n done" b="" c="\x1b[31m\xff)"
            "\xc3\xa9"
            R"(\x7f" d="a=b" e="back\\slash" f="\xc2\x9b\xe2\x80\xa8\xe2\x80\xae" )"
            R"(g="nul\x00nul" h="\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80")"
            "\n");
}

TEST_CASE("log json: each line is an object with numbers as numbers", "[daemon][log]") {
    Fixture log(LogFormat::kJson);

    core::emit(*log.log, Level::kError, "disk.failed",
               {{"count", std::numeric_limits<std::uint64_t>::max()},
                {"low", std::numeric_limits<std::int64_t>::min()},
                {"ratio", 1e300},
                {"open", false},
                {"event", std::string_view("own")},
                {"name", std::string_view("a\"b\\c\n\x01\xff\xc2\x85\xf0\x9f\x98\x80")}});

    REQUIRE(
        log.text() ==
        R"({"time":"2026-11-21T08:22:34.123456Z","level":"error","event":"fopd.disk.failed",)"
        R"("count":18446744073709551615,"low":-9223372036854775808,"ratio":1e+300,"open":false,)"
        R"("event_":"own","name":"a\"b\\c\u000a\u0001\ufffd\u0085)"
        "\xf0\x9f\x98\x80\"}\n");
}

TEST_CASE("log json: a line with any bytes can be parsed", "[daemon][log]") {
    std::string every_byte;
    for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
    std::string pairs;
    for (int i = 128; i < 256; ++i) {
        for (int j = 0; j < 256; j += 15) {
            pairs += static_cast<char>(i);
            pairs += static_cast<char>(j);
        }
    }
    const std::array fields{Field{"bytes", std::string_view(every_byte)},
                            Field{every_byte, std::string_view(pairs)}, Field{"nan", std::nan("")},
                            Field{"inf", HUGE_VAL}};

    const std::string line =
        format_json({.level = Level::kInfo, .time = {}, .name = "a.b", .fields = fields});

    const auto json = nlohmann::json::parse(line, nullptr, false);
    REQUIRE(json.is_object());
    REQUIRE(json["time"] == "1970-01-01T00:00:00.000000Z");
    REQUIRE(json["nan"].is_null());
    REQUIRE(json["inf"].is_null());
    REQUIRE(lines_of(line).size() == 1);
}

TEST_CASE("log journal: an entry holds the journal's names and the fields", "[daemon][log]") {
    const std::array fields{Field{"key-one", std::string_view("two\nlines")},
                            Field{"n", std::uint64_t{5}}, Field{"event", true}};

    const std::string packed =
        format_journal({.level = Level::kWarn, .time = {}, .name = "a.b", .fields = fields});

    std::vector<std::string> entry;
    for (std::string_view rest = packed; !rest.empty();) {
        entry.emplace_back(next_journal_field(rest));
    }
    REQUIRE(entry ==
            std::vector<std::string>{"MESSAGE=fopd.a.b key-one=\"two\\nlines\" n=5 event=true",
                                     "PRIORITY=4", "SYSLOG_IDENTIFIER=fopd", "FOPD_EVENT=fopd.a.b",
                                     "FOPD_KEY_ONE=two\nlines", "FOPD_N=5", "FOPD_EVENT_=true"});
}

TEST_CASE("log level: each level has its word, and other words are refused", "[daemon][log]") {
    const Level level =
        GENERATE(Level::kTrace, Level::kDebug, Level::kInfo, Level::kWarn, Level::kError);

    REQUIRE(level_named(level_name(level)) == level);
    REQUIRE_FALSE(level_named("INFO").has_value());
    REQUIRE_FALSE(level_named("").has_value());
}

TEST_CASE("log level: a change holds from the next event on", "[daemon][log]") {
    Fixture log;

    core::emit(*log.log, Level::kDebug, "a.one");
    log.log->set_level(Level::kDebug);
    core::emit(*log.log, Level::kDebug, "a.two");
    log.log->set_level(Level::kError);
    log.log->emit(Level::kWarn, "a.three", {});
    core::emit(*log.log, Level::kError, "a.four");

    const auto lines = lines_of(log.text());
    REQUIRE(lines.size() == 2);
    REQUIRE_THAT(lines[0], ContainsSubstring("debug fopd.a.two"));
    REQUIRE_THAT(lines[1], ContainsSubstring("error fopd.a.four"));
}

TEST_CASE("log repeats: a burst passes, the rest is counted when the flood ends", "[daemon][log]") {
    Fixture log;
    for (int i = 0; i < 100; ++i) core::emit(*log.log, Level::kWarn, "io.slow");
    core::emit(*log.log, Level::kInfo, "other.event");
    REQUIRE(lines_of(log.text()).size() == RepeatLimiter::kBurst + 1);

    log.clock.advance(RepeatLimiter::kQuietAfter);
    const auto lines = lines_of(log.text());

    REQUIRE(lines.size() == RepeatLimiter::kBurst + 2);
    REQUIRE(lines.back() ==
            "2026-11-21T08:22:35.123456Z warn fopd.log.repeated event=fopd.io.slow count=80");
}

TEST_CASE("log repeats: events that are counted one by one are never suppressed", "[daemon][log]") {
    Fixture log;

    for (std::uint64_t i = 0; i < 40; ++i) {
        core::emit_each(*log.log, Level::kError, "daemon.config_refused", {{"number", i}});
    }

    const auto lines = lines_of(log.text());
    REQUIRE(lines.size() == 40);
    for (std::uint64_t i = 0; i < 40; ++i) {
        REQUIRE(lines[i].ends_with("fopd.daemon.config_refused number=" + std::to_string(i)));
    }
}

TEST_CASE("log repeats: a flood that goes on is reported every ten seconds", "[daemon][log]") {
    Fixture log;
    for (int tenth = 0; tenth < 300; ++tenth) {
        for (int i = 0; i < 5; ++i) core::emit(*log.log, Level::kInfo, "a.flood");
        log.clock.advance(100ms);
        if (tenth % 10 == 9) REQUIRE(log.log->flush(kLong));
    }
    log.clock.advance(2s);

    const auto lines = lines_of(log.text());

    const auto reports = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find("fopd.log.repeated") != std::string::npos;
    });
    REQUIRE(reports >= 2);
    REQUIRE(reports <= 4);
    REQUIRE(accounted_for(lines) == 1500);
    // Ten a second, after the first burst.
    REQUIRE(lines.size() - static_cast<std::size_t>(reports) == 300 + RepeatLimiter::kBurst - 1);
}

TEST_CASE("log repeats: more names than there is room for share one limit", "[daemon][log]") {
    RepeatLimiter limiter;
    for (std::size_t i = 0; i < RepeatLimiter::kNamesMax; ++i) {
        REQUIRE(limiter.admit("name." + std::to_string(i), Level::kInfo, Instant{}));
    }
    for (std::uint32_t i = 0; i < RepeatLimiter::kBurst + 5; ++i) {
        limiter.admit("late." + std::to_string(i), Level::kInfo, Instant{});
    }

    const auto repeats = limiter.take(RepeatLimiter::Which::kAll, Instant{});

    REQUIRE(repeats.size() == 1);
    REQUIRE(repeats[0].name == RepeatLimiter::kOtherNames);
    REQUIRE(repeats[0].count == 5);
}

TEST_CASE("log flood: of 100 000 events of four threads each is written or counted",
          "[daemon][log]") {
    constexpr int kThreads = 4;
    constexpr int kEventsEach = 25'000;
    const core::PosixClock clock;
    const int fd = memfd_create("log", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    {
        auto log = Log::start({.fd = fd}, clock);
        REQUIRE(log.has_value());
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&log, t] {
                for (int i = 0; i < kEventsEach; ++i) {
                    const std::string name = "flood.kind" + std::to_string(i % 500);
                    core::emit(**log, Level::kInfo, name,
                               {{"thread", std::int64_t{t}}, {"i", std::int64_t{i}}});
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
    }

    const auto lines = lines_of(read_from_start(fd));
    close(fd);

    REQUIRE(accounted_for(lines) == std::uint64_t{kThreads} * kEventsEach);
}

TEST_CASE("log full: an output that takes nothing neither holds up emit() nor the end",
          "[daemon][log]") {
    const bool is_socket = GENERATE(false, true);
    CAPTURE(is_socket);
    std::array<int, 2> ends{};
    REQUIRE((is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())
                       : pipe2(ends.data(), O_CLOEXEC)) == 0);
    FakeClock clock;
    auto log = Log::start({.fd = ends[1]}, clock);
    REQUIRE(log.has_value());
    const std::string filling(500, 'x');

    for (int i = 0; i < 20'000; ++i) {
        clock.advance(100ms);
        core::emit(**log, Level::kInfo, "a.b", {{"filling", std::string_view(filling)}});
    }

    REQUIRE_FALSE((*log)->flush(10ms));
    log->reset();
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE("log full: dropped lines are reported once there is room", "[daemon][log]") {
    constexpr std::uint64_t kEmitted = 20'000;
    Pipe pipe;
    FakeClock clock;
    auto log = Log::start({.fd = pipe.writer}, clock);
    REQUIRE(log.has_value());
    for (std::uint64_t i = 0; i < kEmitted; ++i) {
        clock.advance(100ms);
        core::emit(**log, Level::kInfo, "a.b", {{"i", i}});
    }

    const core::MetricSource* const source = log->get();
    const std::string metrics = render_metrics(MetricsFormat::kText, {&source, 1});

    std::string text;
    std::thread reader([&] {
        std::array<char, 4096> part{};
        for (;;) {
            const ssize_t size = read(pipe.reader, part.data(), part.size());
            if (size <= 0) return;
            text.append(part.data(), static_cast<std::size_t>(size));
        }
    });
    log->reset();
    close(std::exchange(pipe.writer, -1));
    reader.join();

    const auto lines = lines_of(text);
    REQUIRE(count_in(lines.back(), "fopd.log.dropped count=") > 0);
    REQUIRE(accounted_for(lines) == kEmitted);
    std::uint64_t dropped = 0;
    for (const auto& line : lines) dropped += count_in(line, "fopd.log.dropped count=");
    REQUIRE(metrics.ends_with("\nfopd_log_events_dropped_total " + std::to_string(dropped) + "\n"));
}

TEST_CASE("log output: a closed pipe does not end the daemon", "[daemon][log]") {
    Pipe pipe;
    FakeClock clock;
    auto log = Log::start({.fd = pipe.writer}, clock);
    REQUIRE(log.has_value());
    close(std::exchange(pipe.reader, -1));

    core::emit(**log, Level::kInfo, "a.b");

    REQUIRE((*log)->flush(kLong));
}

TEST_CASE("log output: the flags of a shared descriptor stay as they are", "[daemon][log]") {
    Pipe pipe;
    FakeClock clock;
    const int before = fcntl(pipe.writer, F_GETFL);
    auto log = Log::start({.fd = pipe.writer}, clock);
    REQUIRE(log.has_value());
    core::emit(**log, Level::kInfo, "a.b");
    REQUIRE((*log)->flush(kLong));

    REQUIRE(fcntl(pipe.writer, F_GETFL) == before);
}

TEST_CASE("log journal: without a journal the message goes to standard error with its priority",
          "[daemon][log]") {
    if (access("/run/systemd/journal/socket", F_OK) == 0) {
        WARN("skipped: a journal runs here");
        return;
    }
    Fixture log(LogFormat::kJournald);

    core::emit(*log.log, Level::kError, "a.b", {{"why", std::string_view("no journal")}});

    REQUIRE(log.text() == "<3>fopd.a.b why=\"no journal\"\n");
}

namespace {

constexpr int kNotPossibleHere = 77;

// Runs `log_to(journal)` in a process and a mount namespace of its own, with the socket `journal`
// in the journal's place. Returns what it returned, or an exit code above 70.
template <typename LogTo>
int with_a_journal_of_our_own(LogTo&& log_to) {
    const auto run = [&] {
        if (unshare(CLONE_NEWNS) != 0) return kNotPossibleHere;
        if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
            return kNotPossibleHere;
        }
        if (mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0) return kNotPossibleHere;
        if (mkdir("/run/systemd", 0755) != 0 || mkdir("/run/systemd/journal", 0755) != 0) {
            return 71;
        }
        const int journal = socket(AF_UNIX, SOCK_DGRAM, 0);
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
        if (bind(journal, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 72;
        return log_to(journal);
    };
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(run());
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNotPossibleHere) WARN("skipped: no mount namespace to be had");
    return WEXITSTATUS(status);
}

int read_one_entry(int journal) {
    FakeClock clock;
    auto log = Log::start({.format = LogFormat::kJournald}, clock);
    if (!log) return 4;
    core::emit(**log, Level::kInfo, "a.b", {{"key", std::string_view("value")}});
    if (!(*log)->flush(kLong)) return 5;
    std::array<char, 4096> buffer{};
    const ssize_t size = recv(journal, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size <= 0) return 6;
    const std::string entry(buffer.data(), static_cast<std::size_t>(size));
    return entry == "MESSAGE=fopd.a.b key=value\nPRIORITY=6\nSYSLOG_IDENTIFIER=fopd\n"
                    "FOPD_EVENT=fopd.a.b\nFOPD_KEY=value\n"
               ? 0
               : 7;
}

// As a journal that hangs.
int read_nothing(int journal) {
    // Sends that find this full wait; there is no need for many.
    const int size_bytes = 1;
    setsockopt(journal, SOL_SOCKET, SO_RCVBUF, &size_bytes, sizeof(size_bytes));
    FakeClock clock;
    auto log = Log::start({.format = LogFormat::kJournald}, clock);
    if (!log) return 4;
    for (std::uint64_t i = 0; i < Log::kQueueEventsMax; ++i) {
        core::emit_each(**log, Level::kInfo, "a.b", {{"i", i}});
    }
    const int exit_code = (*log)->close() ? 5 : 0;
    [[maybe_unused]] const auto* const never_ends = log->release();
    return exit_code;
}

}  // namespace

TEST_CASE("log journal: the fields arrive at the journal's socket", "[daemon][log]") {
    const int result = with_a_journal_of_our_own(read_one_entry);

    REQUIRE((result == 0 || result == kNotPossibleHere));
}

TEST_CASE("log journal: one that does not read does not hold up the end", "[daemon][log]") {
    const int result = with_a_journal_of_our_own(read_nothing);

    REQUIRE((result == 0 || result == kNotPossibleHere));
}

TEST_CASE("log journal: standard error is the journal when systemd's variable names it",
          "[daemon][log]") {
    struct stat status{};
    REQUIRE(fstat(STDERR_FILENO, &status) == 0);
    const std::string stream = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);

    setenv("JOURNAL_STREAM", stream.c_str(), 1);
    REQUIRE(stderr_is_journal());
    setenv("JOURNAL_STREAM", "1:1", 1);
    REQUIRE_FALSE(stderr_is_journal());
    unsetenv("JOURNAL_STREAM");
    REQUIRE_FALSE(stderr_is_journal());
}

}  // namespace log_test
