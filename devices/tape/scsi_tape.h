#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/result.h"
#include "devices/tape/cartridge_text.h"
#include "devices/tape/record_map.h"
#include "devices/tape/scsi_pages.h"
#include "devices/tape/scsi_port.h"
#include "devices/tape/tape_drive.h"

namespace fopd::devices {

// Tells which drive a port leads to.
struct DriveIdentity {
    std::string serial = {};
    std::string technology = {};  // The configured technology if the drive does not tell its own.
    std::vector<Designator> designators = {};
};

// The commands of a tape drive (SSC). All calls block, and belong on an Offload, one at a time.
// Results are those of TapeDrive.
//
// Tests the abilities of the drive when a cartridge is loaded. LTO drives locate blocks by number,
// and report the numbers of block and filemark. For other drives this class keeps a map of the
// blocks and filemarks that were passed since the cartridge was loaded. It explores the tape
// beyond: from filemark to filemark if the drive reports block numbers, otherwise by reading.
//
// While the tape is written, only writes are sent to the drive.
class ScsiTape {
public:
    // The port outlives it.
    explicit ScsiTape(ScsiPort& port) : port_(port) {}

    // kUnsupported: it is not a tape drive, or has no serial number. `technology` is assumed if the
    // product name does not tell the technology. Called first.
    Result<DriveIdentity> identify(const std::string& technology);

    // Nothing: the drive is still loading; the caller calls again.
    Result<std::optional<LoadedTape>> try_load();
    Result<void> unload();
    const std::optional<LoadedTape>& loaded() const { return loaded_; }
    // Empty if only the drive knows it. Sends no command.
    const std::optional<TapePosition>& known_position() const { return where_; }
    Result<TapePosition> position();

    Result<TapeRead> read(core::Buffer into);
    Result<TapeRoom> write(core::Buffer from);
    Result<TapeRoom> write_filemarks(std::uint32_t count, TapeDrive::Marks marks);
    Result<void> locate(std::uint64_t block);
    Result<void> skip_filemarks(std::uint32_t count);
    Result<void> to_end_of_data();

private:
    enum class Locate : std::uint8_t { kNone, kBy32Bits, kBy64Bits };
    enum class Numbers : std::uint8_t { kNone, kBlock, kBlockAndFilemarks };
    enum class Space : std::uint8_t { kBlocks = 0, kFilemarks = 1, kEndOfData = 3 };

    Result<ScsiReply> run(ScsiCommand command);
    Result<ScsiReply> run_after_changes(ScsiCommand command);
    Result<ScsiReply> ask(ScsiCommand command, core::Buffer into);
    Result<void> done(const Result<ScsiReply>& reply);
    Duration time_for(std::uint8_t code) const;
    Result<void> check() const;
    Result<void> check_position() const;
    void forget_position();

    Result<std::optional<LoadedTape>> prepare();
    CartridgeInfo describe_cartridge();
    void try_out();
    bool try_locate(Locate how);
    bool numbers_suffice() const;

    Result<ScsiReply> send_space(Space what, std::uint32_t count);
    Result<ScsiReply> send_locate(std::uint64_t block);
    Result<void> rewind();
    Result<LongPosition> ask_long_position();
    Result<void> ask_position();
    Result<std::uint64_t> ask_block();
    Result<void> moved(const Result<ScsiReply>& reply);
    TapeRoom wrote(std::uint32_t size_bytes, std::uint64_t count, bool early);
    Result<TapeRoom> did_not_fit(const ScsiSense& sense, std::uint32_t size_bytes,
                                 std::uint64_t count);
    Result<TapeRoom> append(const Result<ScsiReply>& reply, std::uint32_t size_bytes,
                            std::uint64_t count);
    Result<TapeRoom> synced(const Result<ScsiReply>& reply);
    Result<ScsiReply> send_read(core::Buffer into);
    Result<TapeRead> read_again(core::Buffer exact);
    Result<TapeRead> met(const ScsiReply& reply, core::Buffer into);
    Result<TapeRead> unreadable(const ScsiSense& sense);
    enum class Passed : std::uint8_t { kFilemark, kBlock };
    void passed(Passed record);

    Result<void> explore(std::uint64_t blocks, std::uint64_t filemarks);
    Result<void> explore_file();
    Result<void> explore_by_reading();
    Result<void> go_to(std::uint64_t block);
    Result<void> space_to(std::uint64_t block);

    ScsiPort& port_;
    std::string technology_;
    std::map<std::uint8_t, Duration> times_;  // By operation code.
    std::vector<std::byte> memory_;           // For blocks that are passed.
    std::optional<LoadedTape> loaded_;
    bool was_told_to_load_ = false;
    bool was_given_back_ = false;
    Locate locate_ = Locate::kNone;
    Numbers numbers_ = Numbers::kNone;
    std::optional<TapePosition> where_;
    bool unsynced_ = false;  // Something was written since the last sync.
    bool early_ = false;     // The last write met the early warning.
    // For drives without numbers of filemarks: the first part of the tape, and whether it is all.
    RecordMap map_;
    bool map_is_complete_ = false;
};

}  // namespace fopd::devices
