// Goal: the audit trail's file has each of its events and the log has none of them, also after the
// file was renamed; what is lost is counted in the log. Method: logs that write to files.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin_audit.h"
#include "daemon/admin_reply.h"
#include "daemon/event_router.h"
#include "daemon/log.h"
#include "daemon/log_writer.h"
#include "tests/catch.h"
#include "tests/daemon/fake_clock.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::daemon;
using core::Level;

namespace {

constexpr Duration kLong = 30s;

std::string content_of(int fd) {
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
        const auto size = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
        if (size <= 0) return text;
        text.append(part.data(), static_cast<std::size_t>(size));
    }
}

std::string content_of(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    std::string text = content_of(fd);
    ::close(fd);
    return text;
}

std::vector<nlohmann::json> objects_in(const std::string& text) {
    std::vector<nlohmann::json> objects;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        objects.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
    }
    REQUIRE(begin == text.size());
    return objects;
}

// A log in memory and a trail in a file.
struct Trail {
    explicit Trail(Level level = Level::kInfo) {
        auto opened_log = Log::start({.level = level, .fd = log_fd}, clock);
        REQUIRE(opened_log.has_value());
        log = *std::move(opened_log);
        auto writer = FileWriter::open(path);
        REQUIRE(writer.has_value());
        auto opened_trail = Log::start({.level = Level::kTrace,
                                        .format = LogFormat::kJson,
                                        .writer = *std::move(writer),
                                        .losses = log.get()},
                                       clock);
        REQUIRE(opened_trail.has_value());
        trail = *std::move(opened_trail);
        events.emplace(*log, trail.get());
    }
    ~Trail() { ::close(log_fd); }

    void flush() {
        REQUIRE(trail->flush(kLong));
        REQUIRE(log->flush(kLong));
    }

    TempDir dir;
    const std::string path = dir / "audit.log";
    FakeClock clock;
    const int log_fd = ::memfd_create("log", MFD_CLOEXEC);
    std::unique_ptr<Log> log;
    std::unique_ptr<Log> trail;
    std::optional<EventRouter> events;
};

AdminRequest set_level() {
    return {.method = "POST",
            .path = "/v1/log-level",
            .query = {{"level", "debug"}},
            .caller = {.uid = 1000, .pid = 77, .user = "ann"}};
}

}  // namespace

TEST_CASE("daemon audit: administration is written with old and new values", "[daemon]") {
    Trail trail(Level::kError);  // The trail does not depend on the log's level.
    AdminReply reply = json_reply(kOk, "{}");
    reply.changes.push_back({.path = "log.level",
                             .old_value = "info",
                             .new_value = "debug",
                             .reload = config::Reload::kLive});
    audit(*trail.events, set_level(), reply);
    audit(*trail.events, set_level(),
          failure(kBadRequest, "the parameter level must be one of trace, debug"));
    trail.flush();
    CHECK(content_of(trail.log_fd).empty());
    const auto written = objects_in(content_of(trail.path));
    REQUIRE(written.size() == 3);
    CHECK(written[0]["event"] == "fopd.audit.administration");
    CHECK(written[0]["user"] == "ann");
    CHECK(written[0]["uid"] == 1000);
    CHECK(written[0]["pid"] == 77);
    CHECK(written[0]["verb"] == "/v1/log-level");
    CHECK(written[0]["parameters"] == "level=\"debug\"");
    CHECK(written[0]["result"] == "done");
    CHECK(written[1]["event"] == "fopd.audit.setting");
    CHECK(written[1]["user"] == "ann");
    CHECK(written[1]["key"] == "log.level");
    CHECK(written[1]["old"] == "info");
    CHECK(written[1]["new"] == "debug");
    CHECK(written[2]["result"] == "refused");
    CHECK(written[2]["reason"] == "the parameter level must be one of trace, debug");
}

TEST_CASE("daemon audit: a value cannot look like another parameter", "[daemon]") {
    Trail trail;
    AdminRequest request = set_level();
    request.query = {{"device", "d1\" sure=\"yes"}};
    audit_begin(*trail.events, request);
    trail.flush();
    const auto written = objects_in(content_of(trail.path));
    REQUIRE(written.size() == 1);
    CHECK(written[0]["parameters"] == "device=\"d1\\\" sure=\\\"yes\"");
    CHECK(written[0]["result"] == "begun");
}

TEST_CASE("daemon audit: a setting that waits for a restart says so", "[daemon]") {
    Trail trail;
    AdminReply reply = json_reply(kOk, "{}");
    reply.changes.push_back({.path = "log.audit",
                             .old_value = "/var/log/fopd/audit.log",
                             .new_value = "none",
                             .reload = config::Reload::kRestart});
    audit(*trail.events, set_level(), reply);
    trail.flush();
    const auto written = objects_in(content_of(trail.path));
    REQUIRE(written.size() == 2);
    CHECK(written[1]["takes_effect"] == "at the next start");
}

TEST_CASE("daemon audit: only requests that change something are audited", "[daemon]") {
    CHECK(is_audited(set_level()));
    CHECK_FALSE(is_audited({.method = "GET", .path = "/v1/status"}));
}

TEST_CASE("daemon audit: a long value is cut, and its size is said", "[daemon]") {
    Trail trail;
    AdminReply reply = json_reply(kOk, "{}");
    reply.changes.push_back({.path = "lrs.tbf.rules",
                             .old_value = std::string(1 << 20, 'r'),
                             .new_value = "[]",
                             .reload = config::Reload::kLive});
    audit(*trail.events, set_level(), reply);
    trail.flush();
    const auto written = objects_in(content_of(trail.path));
    REQUIRE(written.size() == 2);
    const std::string old = written[1]["old"];
    CHECK(old.size() < 3000);
    CHECK(old.ends_with("(1048576 bytes)"));
}

TEST_CASE("daemon audit: events go to the log, to the trail, or to both", "[daemon]") {
    Trail trail;
    emit(*trail.events, Level::kInfo, "daemon.ready");
    emit(*trail.events, Level::kInfo, "audit.denied");
    emit(*trail.events, Level::kWarn, "fabric.session_refused");
    trail.flush();
    const std::string log = content_of(trail.log_fd);
    CHECK(log.contains("daemon.ready"));
    CHECK(log.contains("fabric.session_refused"));
    CHECK_FALSE(log.contains("audit"));
    const auto written = objects_in(content_of(trail.path));
    REQUIRE(written.size() == 2);
    CHECK(written[0]["event"] == "fopd.audit.denied");
    CHECK(written[1]["event"] == "fopd.fabric.session_refused");
}

TEST_CASE("daemon audit: without a file of its own the trail is in the log", "[daemon]") {
    Trail trail;
    EventRouter alone(*trail.log, nullptr);
    emit(alone, Level::kInfo, "audit.denied");
    trail.flush();
    CHECK(content_of(trail.log_fd).contains("audit.denied"));
}

TEST_CASE("daemon audit: the log's level and rate limit do not hide the trail in the log",
          "[daemon]") {
    Trail trail(Level::kError);
    EventRouter alone(*trail.log, nullptr);
    for (int i = 0; i < 100; ++i) emit(alone, Level::kInfo, "audit.denied");
    emit(alone, Level::kInfo, "daemon.ready");
    trail.flush();
    const std::string log = content_of(trail.log_fd);
    CHECK(std::ranges::count(log, '\n') == 100);
    CHECK_FALSE(log.contains("daemon.ready"));
}

TEST_CASE("daemon audit: strangers who are refused all the time do not fill the trail",
          "[daemon]") {
    Trail trail;
    for (int i = 0; i < 1000; ++i) emit(*trail.events, Level::kWarn, "fabric.session_refused");
    trail.flush();
    CHECK(objects_in(content_of(trail.path)).size() < 100);
}

TEST_CASE("daemon audit: a line that was cut by a crash does not spoil the next one", "[daemon]") {
    TempDir dir;
    const std::string path = dir / "audit.log";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(::write(fd, "{\"time\":", 8) == 8);
    ::close(fd);
    auto writer = FileWriter::open(path);
    REQUIRE(writer.has_value());
    REQUIRE((*writer)->write("{}\n"));
    CHECK(content_of(path) == "{\"time\":\n{}\n");
}

TEST_CASE("daemon audit: a file that was renamed or removed is made again", "[daemon]") {
    Trail trail;
    emit(*trail.events, Level::kInfo, "audit.denied", {{"number", std::uint64_t{1}}});
    trail.flush();
    const std::string rotated = trail.path + ".1";
    REQUIRE(::rename(trail.path.c_str(), rotated.c_str()) == 0);
    emit(*trail.events, Level::kInfo, "audit.denied", {{"number", std::uint64_t{2}}});
    trail.flush();
    CHECK(objects_in(content_of(rotated)).size() == 1);
    REQUIRE(objects_in(content_of(trail.path)).size() == 1);
    CHECK(objects_in(content_of(trail.path))[0]["number"] == 2);
    struct stat status{};
    REQUIRE(::stat(trail.path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07) == 0);
}

TEST_CASE("daemon audit: what cannot be written is counted in the log", "[daemon]") {
    Trail trail;
    REQUIRE(::unlink(trail.path.c_str()) == 0);
    REQUIRE(::mkdir(trail.path.c_str(), 0700) == 0);
    emit(*trail.events, Level::kInfo, "audit.denied");
    REQUIRE(trail.trail->flush(kLong));  // Now it is lost,
    trail.flush();                       // and now reported.
    CHECK(content_of(trail.log_fd).contains("fopd.audit.lost count=1"));
}

TEST_CASE("daemon audit: only a regular file is written to", "[daemon]") {
    TempDir dir;
    const std::string path = dir / "audit.log";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK_FALSE(FileWriter::open(path).has_value());
    REQUIRE(::unlink(path.c_str()) == 0);
    REQUIRE(::symlink("elsewhere", path.c_str()) == 0);
    CHECK_FALSE(FileWriter::open(path).has_value());
    CHECK_FALSE(FileWriter::open(dir.path() + "/missing/audit.log").has_value());
}
