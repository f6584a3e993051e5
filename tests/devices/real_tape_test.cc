// Goal: a drive of this machine ends tapes, fails and is held as the interface of drives says.
// Method: FOPD_TEST_TAPE_DRIVE names the drive, whose cartridge is overwritten; without it nothing
// is tested. Only the first four bytes of a block are used: the kernel's scsi_debug keeps no
// others.
#include <cerrno>
#include <fstream>

#include <fcntl.h>

#include "tests/devices/tape_kinds.h"

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

constexpr TapeRow kReal{.library = TapeKind::kReal, .reactor = core::testing::Kind::kUring};
// The file by which scsi_debug is told to fail commands of this drive; empty: it cannot be told.
std::string fault_file() {
    const char* const path = std::getenv("FOPD_TEST_TAPE_FAULTS");
    return path == nullptr ? std::string() : path;
}

void tell(const std::string& line) {
    std::ofstream file(fault_file());
    file << line << std::endl;
    REQUIRE(file.good());
}

}  // namespace

TEST_CASE("devices real tape: a tape ends with a warning", "[devices][real]") {
    if (real_drive_path().empty()) return;
    TapeStage stage(kReal);
    stage.load_blank();
    std::uint64_t plenty = 0;
    auto room = stage.write("p");
    while (room == TapeRoom::kPlenty) {
        ++plenty;
        room = stage.write("p");
    }
    REQUIRE(room == TapeRoom::kEarlyWarning);
    REQUIRE(plenty > 1000);
    REQUIRE(stage.position().block == plenty + 1);
    REQUIRE(stage.marks(1) == TapeRoom::kEarlyWarning);
    REQUIRE(stage.sync().has_value());

    std::uint64_t more = 0;
    while (more < 100'000 && stage.write("e") == TapeRoom::kEarlyWarning) ++more;

    const TapePosition end = stage.position();
    REQUIRE(end == TapePosition{.block = plenty + 2 + more, .filemarks = 1});
    REQUIRE(stage.write("f") == TapeRoom::kFull);
    REQUIRE(stage.position() == end);
    REQUIRE(stage.locate(plenty).has_value());
    REQUIRE(stage.rest() == "p|" + std::string(more, 'e') + ".");
    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.write("x") == TapeRoom::kPlenty);
    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.rest() == "x.");
}

TEST_CASE("devices real tape: a write that fails leaves what was before it", "[devices][real]") {
    if (real_drive_path().empty() || fault_file().empty()) return;
    TapeStage stage(kReal);
    stage.load_blank();
    for (const char* const name : {"a", "b"}) REQUIRE(stage.write(name).has_value());
    REQUIRE(stage.sync().has_value());
    // WRITE fails with a medium error.
    tell("2 -1 0x0a 0 0 0x2 0x3 0x0c 0x0");

    REQUIRE(stage.write("c").error().code == Errc::kIo);
    tell("- 2 0x0a");
    // Not where nobody knows the tape to be.
    REQUIRE(stage.write("d").error().code == Errc::kIo);

    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.rest() == "ab.");
    REQUIRE(stage.write("e").has_value());
    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.rest() == "abe.");
}

TEST_CASE("devices real tape: a read that fails leaves a known position", "[devices][real]") {
    if (real_drive_path().empty() || fault_file().empty()) return;
    TapeStage stage(kReal);
    stage.load_blank();
    for (const char* const name : {"a", "b"}) REQUIRE(stage.write(name).has_value());
    REQUIRE(stage.locate(1).has_value());
    tell("2 -1 0x08 0 0 0x2 0x4 0x44 0x0");

    REQUIRE(stage.read().error().code == Errc::kIo);
    tell("- 2 0x08");

    REQUIRE(stage.position().block == 1);
    REQUIRE(stage.rest() == "b.");
}

TEST_CASE("devices real tape: nobody else has a drive with a loaded tape", "[devices][real]") {
    if (real_drive_path().empty()) return;
    const auto node = find_scsi_node(real_drive_path());
    REQUIRE(node.has_value());
    TapeStage stage(kReal);
    stage.load_blank();
    const auto open_it = [&] {
        return core::OwnedFd(::open(node->tape_path.c_str(), O_RDONLY | O_NONBLOCK));
    };

    REQUIRE(open_it().get() < 0);
    REQUIRE(errno == EBUSY);
    REQUIRE(stage.unload().has_value());
    const core::OwnedFd other = open_it();
    REQUIRE(other.get() >= 0);
    REQUIRE(stage.load().error().code == Errc::kBusy);
}

TEST_CASE("devices real tape: what is no SCSI device is told apart", "[devices]") {
    REQUIRE(find_scsi_node("/dev/null").error().code == Errc::kInvalid);
    REQUIRE(find_scsi_node("/").error().code == Errc::kInvalid);
    REQUIRE(find_scsi_node("/dev/there-is-no-such").error().code == Errc::kNotFound);
}
