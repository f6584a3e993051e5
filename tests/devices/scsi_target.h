#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/tape/deck.h"
#include "devices/tape/scsi_command.h"
#include "devices/tape/scsi_library.h"
#include "devices/tape/tape_library_image.h"

namespace fopd::devices::testing {

// The abilities of a simulated drive.
struct ScsiTalents {
    enum class Locate : std::uint8_t { kNone, kBy32Bits, kBy64Bits };
    enum class Numbers : std::uint8_t { kNone, kBlock, kBlockAndFilemarks };

    Locate locate = Locate::kBy64Bits;
    Numbers numbers = Numbers::kBlockAndFilemarks;
    // It tells about itself and its cartridges; otherwise it refuses such questions.
    bool tells = true;
    // As the tapes of tgt: sense that the data end comes without a key that says so, blocks are
    // spaced over filemarks, and of a block only as many bytes are sent as were asked for in vain.
    bool sloppy = false;
};

// A library of SCSI devices over a TapeLibraryImage: a changer and its drives. Outlives the process
// that uses it.
class ScsiTarget {
public:
    ScsiTarget(TapeLibraryImage& image, ScsiTalents talents);
    ~ScsiTarget();
    ScsiTarget(const ScsiTarget&) = delete;
    ScsiTarget& operator=(const ScsiTarget&) = delete;

    // For one process at a time.
    ScsiLibraryPorts ports();
    // Power loss of all devices: what is in a drive is there still, but not threaded.
    void power_cycle();

    struct Drive {
        TapeDeck deck;
        bool threaded = false;
        // So many times the drive says that it becomes ready.
        std::uint32_t busy_answers = 0;
        // Answers to the next commands, which are not executed, or are with `executes_next`.
        std::deque<ScsiSense> next;
        bool executes_next = false;
        // The next filemarks that are not immediate fail, near the end of the tape.
        bool fails_next_sync = false;
        // All operation codes since the last look.
        std::vector<std::uint8_t> codes;
        std::string product = "ULTRIUM-TD9";
        bool held = false;
        bool held_by_others = false;
        Duration last_timeout{0};
    };
    Drive& drive(std::uint32_t index) { return drives_[index]; }

    struct Robot {
        std::deque<ScsiSense> next;
        std::vector<std::uint8_t> codes;
        bool tells_drives = true;
        bool tells_access = true;
        // Elements must be looked at first.
        bool must_look = false;
        // As a changer of tgt: reports are 8 bytes short.
        bool cuts_reports = false;
    };
    Robot& robot() { return robot_; }

private:
    class DrivePort;
    class RobotPort;

    ScsiReply drive_command(std::uint32_t index, const ScsiCommand& command);
    ScsiReply execute(std::uint32_t index, const ScsiCommand& command);
    ScsiReply describe_drive(std::uint32_t index, const ScsiCommand& command);
    ScsiReply ready(std::uint32_t index);
    ScsiReply load(std::uint32_t index, const ScsiCommand& command);
    ScsiReply read(std::uint32_t index, const ScsiCommand& command);
    ScsiReply write(std::uint32_t index, const ScsiCommand& command);
    ScsiReply write_filemarks(std::uint32_t index, const ScsiCommand& command);
    ScsiReply space(std::uint32_t index, const ScsiCommand& command);
    ScsiReply locate(std::uint32_t index, std::uint64_t block);
    ScsiReply position(std::uint32_t index, const ScsiCommand& command);
    ScsiReply attributes(std::uint32_t index, const ScsiCommand& command);
    ScsiReply data_end() const;
    bool thread(std::uint32_t index);
    CartridgeImage& cartridge(std::uint32_t index) { return *image_.at(kDriveAddress + index); }

    ScsiReply robot_command(const ScsiCommand& command);
    ScsiReply elements(const ScsiCommand& command);
    ScsiReply move(const ScsiCommand& command);

    TapeLibraryImage& image_;
    const ScsiTalents talents_;
    std::vector<Drive> drives_;
    Robot robot_;
};

}  // namespace fopd::devices::testing
