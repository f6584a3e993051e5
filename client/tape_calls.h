// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/object_call.h"
#include "client/slots.h"

namespace fopd::client {

// A recall of an object, as the server lists it.
struct RecallInfo {
    fop::Fid fid{};
    std::string name{};  // Empty: the object has none, or it is hidden from the caller.
    std::uint64_t size_bytes = 0;
    std::uint64_t place = 0;                // How many recalls are expected to end before it.
    Duration age{};                         // Since the first request for it.
    std::optional<Duration> expected_in{};  // When it is expected to end; none: unknown.
    bool is_reading = false;
    std::uint8_t priority = 0;
    std::string cartridge{};  // The barcode of the copy that will be read.
    std::string requester{};  // The first requester; empty: unknown, or hidden from the caller.
};
struct RecallQueue {
    std::vector<RecallInfo> recalls{};
    std::uint64_t total = 0;           // Including those that are not in `recalls`.
    std::optional<Duration> oldest{};  // The age of the oldest of all; none: unknown.
    std::string reason{};              // Why none of them is served; empty: they are served.
};
// The answer to a request for a recall.
struct StageInfo {
    bool waits = false;    // There is a recall to wait for.
    std::string reason{};  // Why it is not served; empty: it is served in its turn.
};

// A format of a cartridge that has not ended, as the server lists it.
struct FormatInfo {
    std::string cartridge{};  // Its barcode.
    std::string pool{};
    Duration age{};  // Since it was asked for.
    bool is_running = false;
};

// A copy of bytes of an object on a cartridge.
struct CopyInfo {
    std::string cartridge{};   // Its barcode, or the number in its label.
    std::string state{};       // The cartridge's state; empty: the node does not have it.
    std::uint64_t file = 0;    // The number of the tape file.
    std::uint64_t block = 0;   // The first block of the tape file.
    std::uint64_t offset = 0;  // The first byte in the object.
    std::uint64_t size_bytes = 0;
    std::uint64_t written_ns = 0;  // Since 1970 UTC.
};
struct ObjectCopies {
    std::vector<CopyInfo> copies{};     // By offset; as many as fit into a reply.
    bool on_disk = true;                // The bytes are on a disk as well.
    std::uint64_t pinned_until_ns = 0;  // The end of the pin, since 1970 UTC; 0: not pinned.
};

// A cartridge, as the server lists it.
struct Medium {
    std::string barcode{};
    std::string pool{};
    std::string technology{};
    std::string state{};
    std::string drive{};   // The drive that has loaded it; empty: none.
    std::string reason{};  // Why it is in this state.
    std::uint64_t capacity_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t dead_bytes = 0;
    std::uint64_t files = 0;
    std::uint64_t mounts = 0;
    std::uint32_t generation = 0;
    std::uint64_t scrubbed_s = 0;  // When a scrub ended last, since 1970 UTC; 0: never.
    std::uint64_t damaged_copies = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t failures = 0;  // Failed reads and writes since it was labelled.
};

// A cartridge that was taken out of use.
struct ExportInfo {
    std::uint64_t objects = 0;    // How many objects have copies on it.
    std::uint64_t only_here = 0;  // How many of these can be read from nowhere else.
    bool in_exchange = false;     // It lies in an import/export element, for people to take.
};

// Cartridges that were taken into use again.
struct ImportInfo {
    std::vector<Medium> media{};  // As many as fit into a reply.
    std::uint64_t total = 0;      // How many there are.
};

// The progress of a repack, scrub or rescue of a cartridge.
struct WorkInfo {
    fop::MediumWorkReply::State state = fop::MediumWorkReply::State::kNone;
    std::uint64_t copies = 0;  // The live copies when the work began, or when the node was started.
    std::uint64_t bytes = 0;   // The bytes of these copies.
    std::uint64_t copies_done = 0;
    std::uint64_t bytes_done = 0;
    std::uint64_t failures = 0;
    Duration elapsed{};
    std::string reason{};
    struct Failure {
        fop::Fid fid{};
        std::uint32_t file = 0;
        std::string name{};
        std::string reason{};
    };
    std::vector<Failure> failed{};  // The first of the failures.

    bool runs() const { return state == fop::MediumWorkReply::State::kRunning; }
};

// Calls about objects on tape, and about the tape library of a server. Like those of ObjectClient,
// a call is repeated while the server answers "try again", and fails with a Problem.
class TapeCalls {
public:
    // `slots` outlives it.
    explicit TapeCalls(Slots& slots) : slots_(slots) {}

    struct StageWish {
        fop::Fid fid{};
        Duration pin{0};  // In whole seconds.
        std::uint8_t priority = fop::kRecallPriorityDefault;
        bool unpins = false;  // Only ends the pin.
    };
    // Asks for a recall of an object.
    Task<Outcome<StageInfo>> stage(StageWish wish, Wait wait);
    // Frees the disk's blocks of an object that is on tape.
    Task<Outcome<void>> release(fop::Fid fid, Wait wait);
    // The copies of the object on cartridges; empty if the server is too old to have tapes.
    Task<Outcome<ObjectCopies>> copies(fop::Fid fid, Wait wait);
    Task<Outcome<RecallQueue>> recalls(Wait wait);
    // The formats that wait for a drive or have begun, the oldest first; empty if the server is too
    // old to list them.
    Task<Outcome<std::vector<FormatInfo>>> formats(Wait wait);
    // Gives up the formats of a cartridge that wait for a drive.
    Task<Outcome<void>> cancel_format(std::string barcode, Wait wait);
    // How many calls of this client wait for tape now, and how long that may take. Updated every
    // few seconds after report_waiting(), which costs the server an answer each time.
    const Slots::TapeWait& waiting() const { return slots_.tape_wait(); }
    void report_waiting() { slots_.report_recalls(); }
    // Cancels the recall of an object.
    Task<Outcome<void>> cancel(fop::Fid fid, Wait wait);
    // Waits until all acknowledged objects of the pool are on tape.
    Task<Outcome<void>> sync(std::string pool, Wait wait);

    Task<Outcome<std::vector<Medium>>> media(Wait wait);
    // Says what a format may destroy. kRefuseData: nothing. kForgetData: copies of objects whose
    // bytes are also elsewhere. kLoseObjects: the last copies of objects as well.
    enum class Force : std::uint8_t { kRefuseData, kForgetData, kLoseObjects };
    struct FormatWish {
        std::string barcode{};
        std::string pool{};
        Force force = Force::kRefuseData;
    };
    Task<Outcome<void>> format(FormatWish wish, Wait wait);
    struct LoadWish {
        std::string barcode{};
        std::string drive{};
    };
    Task<Outcome<void>> load(LoadWish wish, Wait wait);
    Task<Outcome<void>> unload(std::string drive, Wait wait);
    struct ExportWish {
        std::string barcode{};
        // Also accept objects that cannot be read anywhere else; otherwise such an export fails.
        bool hides_objects = false;
    };
    Task<Outcome<ExportInfo>> export_medium(ExportWish wish, Wait wait);
    // Takes exported cartridges into use again: the one with this barcode; empty: all that can be
    // used.
    Task<Outcome<ImportInfo>> import_media(std::string barcode, Wait wait);
    enum class DriveUse : std::uint8_t { kUp, kDown };
    Task<Outcome<void>> set_drive(std::string drive, DriveUse use, Wait wait);

    struct WorkWish {
        std::string barcode{};
        fop::MediumWork::Kind kind = fop::MediumWork::Kind::kRepack;
        fop::MediumWork::Order order = fop::MediumWork::Order::kShow;
        std::string
            pool{};  // To begin a rescue: the pool of the new objects; empty: their old pools.
    };
    // Begins or ends the work, or does neither, as wish.order says; then returns its progress.
    Task<Outcome<WorkInfo>> work(WorkWish wish, Wait wait);

private:
    Slots& slots_;
};

}  // namespace fopd::client
